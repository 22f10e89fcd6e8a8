#include "transfer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

#include "interrupt.h"

namespace bench {
namespace {

constexpr const char* kGroup = "transfer";
constexpr std::size_t kBlock = 256 * 1024;

// Reads and writes until the input ends, as cp(1) would.
std::size_t pump(int from, int to) {
  auto block = std::make_unique<char[]>(kBlock);
  std::size_t moved = 0;
  for (ssize_t n; (n = ::read(from, block.get(), kBlock)) > 0; moved += static_cast<std::size_t>(n))
    for (ssize_t at = 0; at < n;) {
      ssize_t sent = interrupted() ? -1 : ::write(to, block.get() + at, static_cast<std::size_t>(n - at));
      if (sent <= 0) return moved;
      at += sent;
    }
  return moved;
}

class Transfer {
 public:
  Transfer(const fs::path& work, std::size_t mib, Address address, Door door)
      : source_(work / "source"), copy_(work / "copy"), bytes_(mib << 20), address_(std::move(address)), door_(std::move(door)) {
    std::string block(1 << 20, '\0');
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2654435761u >> 13);
    int out = ::open(source_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (std::size_t size = 0; size < bytes_; size += block.size())
      if (::write(out, block.data(), block.size()) != static_cast<ssize_t>(block.size())) throw std::runtime_error("no room for the file");
    ::close(out);
  }
  ~Transfer() {
    std::error_code ignored;
    fs::remove(source_, ignored);
    fs::remove(copy_, ignored);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  double plain() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socket pair");
    auto at = Clock::now();
    pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      int out = ::open(copy_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::_exit(pump(ends[1], out) == bytes_ ? 0 : 1);
    }
    ::close(ends[1]);
    int in = ::open(source_.c_str(), O_RDONLY | O_CLOEXEC);
    pump(in, ends[0]);
    ::close(in);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    check_interrupted();
    if (status != 0) throw std::runtime_error("the copy is not whole");
    return micros_since(at);
  }

  double upload() {
    std::string lead =
        "--B\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n\r\n{\"path\":\"/workspace/file\"}\r\n"
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\r\n";
    std::string tail = "\r\n--B--\r\n";
    auto at = Clock::now();
    Http direct(address_);
    int in = ::open(source_.c_str(), O_RDONLY | O_CLOEXEC);
    int out = direct.begin("POST", door_.path + "/files/upload", door_.headers + "Content-Type: multipart/form-data; boundary=B\r\n",
                           lead.size() + bytes_ + tail.size());
    bool sent = ::write(out, lead.data(), lead.size()) > 0 && pump(in, out) == bytes_ && ::write(out, tail.data(), tail.size()) > 0;
    ::close(in);
    check_interrupted();
    Reply reply = direct.finish();
    if (!sent || reply.status != 200) throw std::runtime_error("upload: " + std::to_string(reply.status) + " " + reply.body.substr(0, 200));
    return micros_since(at);
  }

  double download() {
    auto at = Clock::now();
    Http direct(address_);
    int from = direct.begin("GET", door_.path + "/files/download?path=/workspace/file", door_.headers + "Connection: close\r\n", 0);
    int out = ::open(copy_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    auto moved = pump(from, out);  // with the head, which is short
    ::close(out);
    check_interrupted();
    if (moved < bytes_) throw std::runtime_error("download: only " + std::to_string(moved) + " bytes");
    return micros_since(at);
  }

 private:
  fs::path source_, copy_;
  std::size_t bytes_;
  Address address_;
  Door door_;
};

}  // namespace

void measure_transfer(Context& context) {
  std::string size = std::to_string(context.options.transfer_mib) + " MiB";
  Row& plain = context.rows.add(kGroup, kPlainCopy);
  Row& upload = context.rows.ours(kGroup, kUpload);
  Row& download = context.rows.ours(kGroup, kDownload);
  plain.note = upload.note = download.note = size;
  try {
    Daemon daemon(context.build, context.work, "transfer");
    daemon.start();
    Client client(daemon.tcp());
    Transfer transfer(context.work, context.options.transfer_mib, daemon.tcp().address,
                      client.door(client.create(R"("cpu":"2","memory":"4Gi","disk":"3Gi")")));
    for (int turn = 0; turn < (context.options.quick ? 1 : 5); ++turn) {
      plain.samples.push_back(transfer.plain());
      upload.samples.push_back(transfer.upload());
      download.samples.push_back(transfer.download());
    }
  } catch (const std::exception& error) {
    plain.unusable = upload.unusable = download.unusable = first_line(error.what());
  }
}

}  // namespace bench
