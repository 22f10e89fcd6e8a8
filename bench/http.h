// One keep-alive connection to a server: just enough HTTP/1.1 to time it, and nothing that would add to the time.
#pragma once
#include <cstdint>
#include <string>

namespace bench {

// Where a server listens: a unix socket when `socket` is set, TCP otherwise.
struct Address {
  std::string socket{};
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;

  std::string authority() const;
  int dial() const;  // a connected, blocking socket; throws

  static Address unix_socket(std::string path) { return {.socket = std::move(path)}; }
  static Address loopback(std::uint16_t port) { return {.port = port}; }
  // "host:port" or "[v6]:port" or "host" with the port for plain http.
  static Address parse(const std::string& authority);
};

struct Reply {
  int status = 0;
  std::string head, body;
};

class Http {
 public:
  explicit Http(Address address) : address_(std::move(address)) {}
  ~Http() { drop(); }
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // `headers` are whole lines, each with its CRLF.
  Reply call(const std::string& method, const std::string& path, const std::string& headers, const std::string& body);
  // A request that switches protocols; what follows is read with take().
  int upgrade(const std::string& path, const std::string& headers, const std::string& body);
  // The head of a request whose body the caller writes to the socket it gets, and its answer.
  int begin(const std::string& method, const std::string& path, const std::string& headers, std::size_t length);
  Reply finish();
  // Sends without waiting for the answer; finish() reads it.
  void send(const std::string& method, const std::string& path, const std::string& headers, const std::string& body);

  std::string take(std::size_t size);
  void drop();
  bool reachable();  // GET /health answers 200
  const Address& address() const { return address_; }

 private:
  bool was_closed() const;
  void fill();
  std::string line();
  Reply read_head();
  void read_body(Reply& reply);

  Address address_;
  int fd_ = -1;
  std::string buffer_;
};

// The text value of a key, wherever it stands in the answer.
std::string json_text(const std::string& body, const std::string& key);

}  // namespace bench
