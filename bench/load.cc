#include "load.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <deque>
#include <stdexcept>

#include "interrupt.h"
#include "machine.h"

namespace bench {
namespace {

constexpr std::size_t kRepair = ~std::size_t{0};
constexpr int kSilenceMs = 30'000, kLastAnswerMs = 3'000;

struct Connection {
  int fd = -1;
  std::size_t step = 0;
  std::string in;
  Clock::time_point began;
  Memo memo;
};

// An answer that is wholly in `in`, or status 0.
struct Answer {
  int status = 0;
  std::string_view body;
  bool closes = false;
};

bool same_text(std::string_view head, std::string_view name, std::size_t& at) {
  for (at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    if (head.size() - at - 2 < name.size()) return false;
    bool same = true;
    for (std::size_t index = 0; same && index < name.size(); ++index) same = (head[at + 2 + index] | 0x20) == (name[index] | 0x20);
    if (same) return at += 2 + name.size(), true;
  }
  return false;
}

Answer look(const std::string& in) {
  std::string_view text = in;
  auto end = text.find("\r\n\r\n");
  if (end == std::string_view::npos || text.size() < 12) return {};
  std::string_view head = text.substr(0, end + 2), body = text.substr(end + 4);
  Answer answer;
  std::from_chars(text.data() + 9, text.data() + 12, answer.status);
  std::size_t at = 0;
  if (same_text(head, "content-length: ", at)) {
    std::size_t size = 0;
    std::from_chars(head.data() + at, head.data() + head.size(), size);
    if (body.size() < size) return {};
  } else if (same_text(head, "transfer-encoding: chunked", at)) {
    if (!body.ends_with("0\r\n\r\n")) return {};
  }
  answer.body = body;
  answer.closes = same_text(head, "connection: close", at);
  return answer;
}

class Load {
 public:
  explicit Load(const LoadSettings& settings) : settings_(settings), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~Load() {
    for (auto& one : connections_) ::close(one.fd);
    ::close(epoll_);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  LoadResult run() {
    for (std::size_t index = 0; index < settings_.clients; ++index) {
      auto& one = connections_.emplace_back();
      one.memo.client = index;
      connect(one);
    }
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    MachineCpu cpu = machine_cpu();
    start_ = Clock::now();
    for (auto& one : connections_) begin(one);
    while (active_ > 0) wait();  // told to end, no round begins, and those under way go to their end
    check_interrupted();
    result_.seconds = seconds_since(start_);
    ::getrusage(RUSAGE_SELF, &after);
    MachineCpu later = machine_cpu();
    auto spent = [](const rusage& use) {
      return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
             static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    };
    result_.generator_share = (spent(after) - spent(before)) / result_.seconds / cores();
    result_.machine_share = later.total > cpu.total ? (later.busy - cpu.busy) / (later.total - cpu.total) : 0;
    for (auto& one : connections_) result_.memos.push_back(one.memo);
    return std::move(result_);
  }

 private:
  void connect(Connection& one) {
    if (one.fd >= 0) ::close(one.fd);
    one.fd = settings_.address.dial();
    one.in.clear();
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &one}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, one.fd, &event);
  }
  bool over() const {
    return interrupted() || (settings_.most > 0 && begun_ >= settings_.most) || seconds_since(start_) >= settings_.seconds;
  }
  void begin(Connection& one) {
    if (over()) return;
    ++begun_;
    ++active_;
    one.step = 0;
    one.began = Clock::now();
    ask(one, settings_.steps[0]);
  }
  void ask(Connection& one, const Step& step) {
    out_.clear();
    step.write(out_, one.memo);
    for (std::size_t sent = 0; sent < out_.size();) {
      ssize_t n = ::send(one.fd, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // the hang-up is seen when its answer is read
      sent += static_cast<std::size_t>(n);
    }
  }
  void wait() {
    epoll_event events[64];
    int count = ::epoll_wait(epoll_, events, 64, interrupted() ? kLastAnswerMs : kSilenceMs);
    if (count == 0) check_interrupted();
    if (count == 0) throw std::runtime_error("the server is silent for 30 s");
    for (int index = 0; index < count; ++index) receive(*static_cast<Connection*>(events[index].data.ptr));
  }
  void receive(Connection& one) {
    char chunk[16384];
    ssize_t n = ::recv(one.fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      connect(one);
      return fail(one, "the server hung up");
    }
    one.in.append(chunk, static_cast<std::size_t>(n));
    Answer answer = look(one.in);
    if (answer.status == 0) return;
    bool repairs = one.step == kRepair;
    bool good = repairs || settings_.steps[one.step].read(answer.status, answer.body, one.memo);
    std::string why = good ? "" : std::to_string(answer.status) + " " + std::string(answer.body.substr(0, 200));
    one.in.clear();
    if (answer.closes) connect(one);
    if (repairs)
      finish(one);
    else if (!good)
      fail(one, why);
    else if (++one.step < settings_.steps.size())
      ask(one, settings_.steps[one.step]);
    else
      complete(one);
  }
  void complete(Connection& one) {
    ++result_.done;
    result_.samples.push_back(micros_since(one.began));
    finish(one);
  }
  void fail(Connection& one, const std::string& why) {
    ++result_.errors;
    if (result_.first_error.empty()) result_.first_error = why;
    if (result_.errors > 1000 && result_.done == 0) throw std::runtime_error("nothing but errors: " + result_.first_error);
    if (one.step == kRepair || !settings_.repair.write || one.memo.id.empty()) return finish(one);
    one.step = kRepair;
    ask(one, settings_.repair);
  }
  void finish(Connection& one) {
    --active_;
    begin(one);
  }

  const LoadSettings& settings_;
  int epoll_;
  std::deque<Connection> connections_;
  Clock::time_point start_;
  std::size_t active_ = 0, begun_ = 0;
  std::string out_;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const LoadSettings& settings) { return Load(settings).run(); }

}  // namespace bench
