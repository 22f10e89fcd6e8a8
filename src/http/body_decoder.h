// BodyDecoder: the bytes of a body out of the bytes of a connection. Sans-I/O; never looks past the message's end.
//
// Chunked coding is read in its strict form: hexadecimal sizes, CRLF line ends, at most 256 bytes of extensions a
// chunk and 16 KiB a message, at most 8 KiB of trailers. Extensions and trailers are dropped: nothing after the head may change
// what was decided on the head.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/head.h"

namespace osb::http {

class BodyDecoder {
 public:
  BodyDecoder() : BodyDecoder(Framing{}) {}
  explicit BodyDecoder(Framing framing);

  struct Step {
    std::size_t consumed = 0;
    std::size_t produced = 0;
  };
  // Decodes as much of `in` as fits into `out`. `out` may be where `in` begins: output never overtakes input.
  Step decode(std::string_view in, char* out, std::size_t capacity);
  // The connection ended: the end of a body that is delimited so, a failure of any other that is not done.
  void end_of_stream();

  bool done() const noexcept { return state_ == State::done; }
  bool failed() const noexcept { return state_ == State::failed; }
  std::string_view problem() const noexcept { return problem_; }  // once failed
  bool truncated() const noexcept { return truncated_; }          // it failed because the connection ended
  const Framing& framing() const noexcept { return framing_; }
  // How many bytes may be read from the connection without reading past this body; 0 when only decode() knows.
  std::uint64_t plain_bytes() const noexcept;

 private:
  enum class State {
    plain,
    size,
    size_more,
    extension,
    size_end,
    data_cr,
    data_lf,
    trailer_start,
    trailer,
    trailer_end,
    end_lf,
    done,
    failed
  };
  void step(unsigned char c);
  void start_size(unsigned char c);
  void more_size(unsigned char c);
  void in_extension(unsigned char c);
  void end_size(unsigned char c);
  void in_trailer(unsigned char c);
  void fail(std::string_view problem);

  Framing framing_;
  State state_ = State::done;
  std::uint64_t left_ = 0;  // of the length, or of the current chunk
  std::size_t digits_ = 0;
  std::size_t chunk_extension_ = 0;
  std::size_t extensions_ = 0;
  std::size_t trailers_ = 0;
  std::string_view problem_;
  bool truncated_ = false;
};

}  // namespace osb::http
