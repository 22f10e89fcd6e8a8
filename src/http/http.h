// The HTTP facade: what handlers and callers see. Parsing and sockets stay behind it.
//
// HTTP/1.1 only. Every limit is enforced before memory is spent; see Limits.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/fd.h"
#include "base/result.h"

namespace osb::http {

struct Header {
  std::string name;
  std::string value;
};

// Header fields in the order they came; names compare without case.
class Headers {
 public:
  std::string_view get(std::string_view name) const;  // first value, or empty
  bool has(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  void add(std::string name, std::string value) {
    if (fields_.capacity() == 0) fields_.reserve(kUsualFields);
    fields_.push_back({std::move(name), std::move(value)});
  }
  void set(std::string_view name, std::string value);  // replaces all
  void remove(std::string_view name);
  const std::vector<Header>& fields() const { return fields_; }
  void clear() { fields_.clear(); }

 private:
  static constexpr std::size_t kUsualFields = 8;
  std::vector<Header> fields_;
};

struct Limits {
  std::size_t header_bytes = 16 * 1024;  // request line and all fields
  std::size_t header_fields = 100;
  std::size_t target_bytes = 8 * 1024;
  std::size_t body_bytes = 1024 * 1024;  // for read_all; streamed bodies are bounded by their reader
  std::chrono::seconds header_deadline{10};
  std::chrono::seconds idle_deadline{75};        // keep-alive, longer than any published client keeps one
  std::chrono::seconds body_stall_deadline{30};  // no byte of a body for this long = gone
  std::chrono::seconds write_stall_deadline{60};
  std::size_t connections = 4096;
};

// A byte stream; TCP, unix socket or anything else with a descriptor.
class Stream {
 public:
  virtual ~Stream() = default;
  // 0 = end of stream. Errors: Errc::unavailable (peer gone), Errc::timeout.
  virtual Task<Result<std::size_t>> read_some(std::span<char> into) = 0;
  virtual Task<Result<>> write_all(std::string_view bytes) = 0;
  virtual void set_deadline(std::chrono::steady_clock::duration from_now) = 0;  // for the reads and writes that follow, each
  virtual void clear_deadline() = 0;
  virtual void shutdown_write() noexcept = 0;
  virtual void close() noexcept = 0;  // wakes a pending read or write with an error
};

class BodyReader {
 public:
  virtual ~BodyReader() = default;
  virtual std::optional<std::uint64_t> content_length() const = 0;  // nullopt: chunked
  virtual bool done() const = 0;
  virtual Task<Result<std::size_t>> read_some(std::span<char> into) = 0;  // 0 = end of body; trailers are dropped
  // The whole body, or Errc::too_large before more than `limit` bytes are buffered.
  Task<Result<std::string>> read_all(std::size_t limit);
};

struct Request {
  std::string method;
  std::string target;  // as sent
  std::string path;    // raw path part of target (percent-encoding kept)
  std::string query;   // raw, without '?'
  Headers headers;
  std::string peer;                       // "127.0.0.1:4711" or "unix"
  std::optional<std::uint32_t> peer_uid;  // whose socket it is, where the server was told how to find out
  std::string request_id;                 // from X-Request-ID when it is 1..128 of [A-Za-z0-9._:-], else 32 hex made here
  BodyReader* body = nullptr;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  static Response json(int status, std::string body);
  static Response text(int status, std::string body);
  static Response empty(int status) { return {status, {}, {}}; }
};

// Writes one response. Exactly one of send(), begin()+chunk()*+end(), upgrade() is called.
// Content-Length (also 0) or chunked framing, Date-less; X-Request-ID is added by the server on every response.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual Task<Result<>> send(Response response) = 0;
  // Header and first chunk leave in one write when `first` is not empty. With one Content-Length among `headers` the
  // body is framed by it instead of chunks, and chunk() and end() hold the handler to it.
  virtual Task<Result<>> begin(int status, Headers headers, std::string_view first = {}) = 0;
  virtual Task<Result<>> chunk(std::string_view bytes) = 0;
  virtual Task<Result<>> end() = 0;
  // `length` bytes of an open file from `offset`, as chunk() would send them. Errc::unavailable when the file ends before.
  virtual Task<Result<>> send_file(int fd, std::uint64_t offset, std::uint64_t length);
  // Sends the head (101, or a final status with a raw body) and hands over the byte stream. Bytes the client
  // already sent come first in reads. The connection closes when the handler returns.
  virtual Task<Result<Stream*>> upgrade(int status, Headers headers) = 0;
  virtual bool started() const = 0;  // a status line was written
  // Returns when the client has gone (its side ended or was reset); meant to be raced against slow work, then cancelled.
  // Call it once the request body is read. The default, for fakes, returns only when cancelled.
  virtual Task<void> closed();
};

// Handlers are coroutines that outlive no request; they may keep references to the service that owns them.
using Handler = std::function<Task<void>(Request&, Responder&)>;

// ---- server ---------------------------------------------------------------------------------------

class Server {
 public:
  Server(asio::io_context& io, Limits limits, Handler handler);
  ~Server();
  // Each may be called several times; a port of 0 picks a free one, returned.
  Result<std::uint16_t> listen_tcp(const std::string& address, std::uint16_t port);
  Result<> listen_unix(const std::string& path, unsigned mode);  // replaces a stale socket file
  Result<> listen_fd(Fd listening_socket);                       // adopted, e.g. made outside a sandbox
  // Asked once for every connection; the answer is Request::peer_uid. Set before the first listen.
  using FindPeer = std::function<std::optional<std::uint32_t>(int fd)>;
  void set_find_peer(FindPeer find);
  // Stops accepting, lets running requests finish for `grace`, then closes.
  Task<void> stop(std::chrono::steady_clock::duration grace);
  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- client ---------------------------------------------------------------------------------------

// Where to connect. A descriptor target is an unconnected TCP socket (made in another network namespace).
struct Target {
  enum class Kind { tcp, unix_path } kind = Kind::tcp;
  std::string host_or_path;
  std::uint16_t port = 0;
  static Target tcp(std::string host, std::uint16_t port) { return {Kind::tcp, std::move(host), port}; }
  static Target unix_socket(std::string path) { return {Kind::unix_path, std::move(path), 0}; }
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;                    // Host, Content-Length / Transfer-Encoding are set by the client
  std::string body;                   // ignored when body_source is set
  BodyReader* body_source = nullptr;  // streamed: Content-Length when known, else chunked
};

// One connection to one target: request, then response, keep-alive where both sides agree.
class ClientConnection {
 public:
  virtual ~ClientConnection() = default;
  struct Head {
    int status = 0;
    Headers headers;
  };
  virtual Task<Result<Head>> start(ClientRequest request) = 0;  // sends, reads the response head
  virtual BodyReader& body() = 0;                               // of the response
  virtual bool reusable() const = 0;                            // body read to its end and keep-alive agreed
  // After a 101 the bytes belong to the caller; buffered ones come first. Before, only its deadlines are for the caller:
  // stream().set_deadline(...) bounds each wait of start() and body(). Without it reads wait for as long as it takes.
  virtual Stream& stream() = 0;
  virtual void close() noexcept = 0;
};

Task<Result<std::unique_ptr<ClientConnection>>> connect(Target target, std::chrono::steady_clock::duration deadline);
// `socket` is an unconnected TCP socket; connects it to 127.0.0.1:port of its own network namespace.
Task<Result<std::unique_ptr<ClientConnection>>> connect_fd(Fd socket, std::uint16_t port, std::chrono::steady_clock::duration deadline);

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};
// connect + start + read_all(limit) + close, within `deadline` altogether.
Task<Result<ClientResponse>> fetch(Target target, ClientRequest request, std::chrono::steady_clock::duration deadline, std::size_t limit);

// ---- helpers --------------------------------------------------------------------------------------

// Percent-decoding of one path segment or query value; nullopt on a bad escape or an encoded NUL.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text);  // RFC 3986 unreserved kept
// Decoded pairs in order; a bad escape gives Errc::invalid_argument.
Result<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query);
std::string_view reason_phrase(int status);
bool is_token(std::string_view text);  // RFC 9110 token
bool is_hop_by_hop(std::string_view header_name);
// Copies both directions until either side ends; half-close is passed on. Idle longer than `idle` ends it.
Task<void> tunnel(Stream& a, Stream& b, std::chrono::steady_clock::duration idle);

}  // namespace osb::http
