// One gibibyte: into a sandbox, out of it, and as a plain copy from file to file through a unix socket between two processes.
#pragma once
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "http.h"
#include "process.h"

namespace bench {

inline constexpr std::size_t kTransferBytes = std::size_t{1} << 30;
inline constexpr std::size_t kTransferBlock = 256 * 1024;

// Reads and writes until the input ends, as cp(1) would.
inline std::size_t pump(int from, int to) {
  auto block = std::make_unique<char[]>(kTransferBlock);
  std::size_t moved = 0;
  for (ssize_t n; (n = ::read(from, block.get(), kTransferBlock)) > 0; moved += static_cast<std::size_t>(n))
    for (ssize_t at = 0; at < n;) {
      ssize_t sent = ::write(to, block.get() + at, static_cast<std::size_t>(n - at));
      if (sent <= 0) return moved;
      at += sent;
    }
  return moved;
}

class Transfer {
 public:
  Transfer(fs::path work, std::uint16_t port, std::string door, std::string token)
      : source_(work / "gib"), copy_(work / "gib-copy"), port_(port), door_(std::move(door)), token_(std::move(token)) {
    std::string block(1 << 20, '\0');
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2654435761u >> 13);
    std::ofstream out(source_, std::ios::binary);
    for (std::size_t size = 0; size < kTransferBytes; size += block.size()) out << block;
  }
  ~Transfer() {
    std::error_code ignored;
    fs::remove(source_, ignored);
    fs::remove(copy_, ignored);
  }

  double plain() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socket pair");
    auto at = Clock::now();
    pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      int out = ::open(copy_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::_exit(pump(ends[1], out) == kTransferBytes ? 0 : 1);
    }
    ::close(ends[1]);
    int in = ::open(source_.c_str(), O_RDONLY | O_CLOEXEC);
    pump(in, ends[0]);
    ::close(in);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error("the copy is not whole");
    return micros_since(at);
  }

  double upload() {
    std::string lead =
        "--B\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n\r\n{\"path\":\"/workspace/gib\"}\r\n"
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"gib\"\r\n\r\n";
    std::string tail = "\r\n--B--\r\n";
    auto at = Clock::now();
    Http direct(port_);
    int in = ::open(source_.c_str(), O_RDONLY | O_CLOEXEC);
    int out = direct.begin("POST", door_ + "/files/upload", token_ + "Content-Type: multipart/form-data; boundary=B\r\n",
                           lead.size() + kTransferBytes + tail.size());
    bool sent = ::write(out, lead.data(), lead.size()) > 0 && pump(in, out) == kTransferBytes && ::write(out, tail.data(), tail.size()) > 0;
    ::close(in);
    Reply reply = direct.finish();
    if (!sent || reply.status != 200) throw std::runtime_error("upload: " + std::to_string(reply.status) + " " + reply.body.substr(0, 200));
    return micros_since(at);
  }

  double download() {
    auto at = Clock::now();
    Http direct(port_);
    int from = direct.begin("GET", door_ + "/files/download?path=/workspace/gib", token_ + "Connection: close\r\n", 0);
    int out = ::open(copy_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    auto moved = pump(from, out);  // with the head, which is short
    ::close(out);
    if (moved < kTransferBytes) throw std::runtime_error("download: only " + std::to_string(moved) + " bytes");
    return micros_since(at);
  }

 private:
  fs::path source_, copy_;
  std::uint16_t port_;
  std::string door_, token_;
};

}  // namespace bench
