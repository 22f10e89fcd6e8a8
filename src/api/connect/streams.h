// Both ends of a call over HTTP/1.1: messages out of request bodies, messages into response bodies.
#pragma once
#include <memory>
#include <string>

#include "api/connect/envelope.h"
#include "api/connect/protocol.h"
#include "api/rpc/call.h"
#include "api/rpc/status.h"

namespace osb::api::connect {

// A body that is one message as it is.
class WholeIn final : public rpc::In {
 public:
  explicit WholeIn(std::string message) : message_(std::move(message)) {}
  Task<Result<std::optional<std::string>>> next() override;

 private:
  std::optional<std::string> message_;
};

// Enveloped messages of a body that was read already.
class FramesIn final : public rpc::In {
 public:
  explicit FramesIn(std::string bytes);
  Task<Result<std::optional<std::string>>> next() override;

 private:
  Unpacker unpacker_;
};

// Enveloped messages as the body brings them.
class BodyIn final : public rpc::In {
 public:
  explicit BodyIn(http::BodyReader& body);
  Task<Result<std::optional<std::string>>> next() override;

 private:
  http::BodyReader& body_;
  Unpacker unpacker_;
  std::unique_ptr<char[]> block_;
};

// The one message of a unary answer.
class KeptOut final : public rpc::Out {
 public:
  Task<Result<>> send(std::string message) override;
  std::string message;
};

// Enveloped messages, each written when it is sent; the head goes out with the first.
class FramedOut final : public rpc::Out {
 public:
  FramedOut(http::Responder& responder, const Protocol& protocol, http::Headers headers);
  Task<Result<>> send(std::string message) override;
  Task<void> finish(rpc::Status status);

 private:
  Task<Result<>> write(std::string frame);

  http::Responder& responder_;
  Protocol protocol_;
  http::Headers headers_;
};

std::string end_frame(const Protocol& protocol, const rpc::Status& status);
// "name: value" lines, as gRPC-Web and the gRPC program read them.
std::string trailer_lines(const rpc::Status& status);

}  // namespace osb::api::connect
