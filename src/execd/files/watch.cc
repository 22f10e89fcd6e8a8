#include "execd/files/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "base/text.h"
#include "execd/events.h"
#include "execd/files/dir_stream.h"
#include "execd/files/paths.h"
#include "execd/replies.h"
#include "execd/runs/follow.h"

namespace osb::execd::files {
namespace {

using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

constexpr auto kPingEvery = std::chrono::seconds(3);
constexpr auto kOtherHalf = std::chrono::milliseconds(2);  // of a move: the kernel tells both halves at once, but not as one
constexpr std::uint32_t kInside = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB;
constexpr std::uint32_t kItself = IN_DELETE_SELF | IN_MOVE_SELF;

// Turns the kernel's events into ours. All calls are short; scan() is one directory.
class Watcher {
 public:
  static Result<std::unique_ptr<Watcher>> make(std::string root, bool recursive) {
    int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) return failed("watch", root, errno);
    auto watcher = std::unique_ptr<Watcher>(new Watcher(fd, std::move(root), recursive));
    watcher->root_watch_ = ::inotify_add_watch(fd, watcher->root_.c_str(), kInside | kItself);
    if (watcher->root_watch_ < 0) return failed("watch", watcher->root_, errno);
    watcher->paths_[watcher->root_watch_] = watcher->root_;
    if (recursive) watcher->to_scan_.push_back(watcher->root_);
    return watcher;
  }

  int release_fd() { return fd_.release(); }
  bool ended() const { return ended_; }
  bool waiting() const { return !gone_path_.empty(); }  // for the other half of a move

  // Looks for directories in one that is watched; false when none waits. `tell`: what is found was just made.
  bool scan(int fd, std::string& out, bool tell) {
    if (to_scan_.empty()) return false;
    std::string dir = std::move(to_scan_.back());
    to_scan_.pop_back();
    auto stream = stream_over(open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | (dir == root_ ? 0 : O_NOFOLLOW)));
    std::size_t seen = 0;
    while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
      if (is_dots(entry->d_name)) continue;
      if (++seen > kMaxNamesSeen) {
        overflow(out, dir);
        break;
      }
      std::string path = join(dir, entry->d_name);
      if (tell) event(out, "created", path);
      if (entry->d_type == DT_DIR) add(fd, path, out);
    }
    return true;
  }

  void take(int fd, std::string_view bytes, std::string& out) {
    while (bytes.size() >= sizeof(inotify_event)) {
      inotify_event head;
      std::memcpy(&head, bytes.data(), sizeof head);
      std::string_view name = bytes.substr(sizeof head, head.len);
      name = name.substr(0, name.find('\0'));
      bytes.remove_prefix(sizeof head + head.len);
      take_one(fd, head, name, out);
    }
  }

  // A name that went and came nowhere we see.
  void settle(std::string& out) {
    if (gone_path_.empty()) return;
    event(out, "deleted", gone_path_);
    if (gone_directory_) forget_below(gone_path_);
    gone_path_.clear();
  }

 private:
  Watcher(int fd, std::string root, bool recursive) : fd_(fd), root_(std::move(root)), recursive_(recursive) {}

  void event(std::string& out, std::string_view type, std::string_view path, std::string_view from = {}) {
    out += cat("{\"type\":\"", type, "\",\"path\":");
    append_json_string(out, path);
    if (!from.empty()) {
      out += ",\"from\":";
      append_json_string(out, from);
    }
    out += cat(",\"timestamp\":", wall_now_millis(), ",\"seq\":", ++seq_, "}\n\n");
  }
  void overflow(std::string& out, std::string_view path) { event(out, "overflow", path); }

  void add(int fd, const std::string& path, std::string& out) {
    int watch = paths_.size() < kMaxWatched ? ::inotify_add_watch(fd, path.c_str(), kInside | IN_ONLYDIR | IN_DONT_FOLLOW) : -1;
    if (watch < 0 && paths_.size() < kMaxWatched && errno != ENOSPC) return;  // gone meanwhile
    if (watch < 0) return overflow(out, path);
    paths_[watch] = path;
    to_scan_.push_back(path);
  }

  void forget_below(std::string_view path) {
    std::string prefix = cat(path, "/");
    for (auto& [watch, known] : paths_)
      if (known == path || known.starts_with(prefix)) known.clear();  // its last events name nothing any more
  }

  void rename_below(std::string_view from, std::string_view to) {
    std::string prefix = cat(from, "/");
    for (auto& [watch, known] : paths_)
      if (known == from || known.starts_with(prefix)) known = cat(to, known.substr(from.size()));
  }

  void take_one(int fd, const inotify_event& head, std::string_view name, std::string& out) {
    if (head.mask & IN_Q_OVERFLOW) return overflow(out, root_);
    auto known = paths_.find(head.wd);
    if (known == paths_.end()) return;
    if (head.mask & IN_IGNORED) return void(paths_.erase(known));
    if (known->second.empty()) return;
    std::string path = name.empty() ? known->second : join(known->second, name);
    bool came_back = (head.mask & IN_MOVED_TO) && head.cookie == gone_cookie_ && !gone_path_.empty();
    if (!came_back) settle(out);
    if (head.wd == root_watch_ && (head.mask & kItself)) return end(out);
    bool directory = head.mask & IN_ISDIR;
    if (came_back) {
      event(out, "moved", path, gone_path_);
      if (directory) rename_below(gone_path_, path);
      gone_path_.clear();
    } else if (head.mask & IN_MOVED_FROM) {
      gone_path_ = path;
      gone_cookie_ = head.cookie;
      gone_directory_ = directory;
    } else if (head.mask & (IN_CREATE | IN_MOVED_TO)) {
      event(out, "created", path);
      if (directory && recursive_) add(fd, path, out);
    } else {
      event(out, head.mask & IN_DELETE ? "deleted" : head.mask & IN_ATTRIB ? "attrib" : "modified", path);
    }
  }

  void end(std::string& out) {
    if (!std::exchange(ended_, true)) event(out, "deleted", root_);
  }

  Fd fd_;
  std::string root_;
  bool recursive_;
  int root_watch_ = -1;
  std::map<int, std::string> paths_;  // by watch; empty: of a directory that left
  std::vector<std::string> to_scan_;
  std::string gone_path_;  // one that moved away, until it is known where to
  std::uint32_t gone_cookie_ = 0;
  bool gone_directory_ = false;
  bool ended_ = false;
  std::uint64_t seq_ = 0;
};

// True when there is something to read; false after a while without.
Task<bool> readable(std::shared_ptr<Descriptor> descriptor) {
  Timer timer(descriptor->get_executor(), kPingEvery);
  timer.async_wait([descriptor](boost::system::error_code error) {
    boost::system::error_code ignored;
    if (!error) descriptor->cancel(ignored);
  });
  auto [error] = co_await descriptor->async_wait(Descriptor::wait_read, nothrow);
  co_return !error;
}

// Reads what there is into events; at most one buffer, so that the answer stays bounded.
void drain(Watcher& watcher, int fd, std::string& out, bool last) {
  alignas(inotify_event) char bytes[16 * 1024];
  auto n = ::read(fd, bytes, sizeof bytes);
  if (n > 0) watcher.take(fd, {bytes, static_cast<std::size_t>(n)}, out);
  if (last) watcher.settle(out);
  while (out.size() < 256 * 1024 && watcher.scan(fd, out, true)) {
  }
}

Task<void> stream_events(std::unique_ptr<Watcher> watcher, http::Responder& responder) {
  auto executor = co_await asio::this_coro::executor;
  auto descriptor = std::make_shared<Descriptor>(executor, watcher->release_fd());
  int fd = descriptor->native_handle();
  std::string out;
  while (watcher->scan(fd, out, false)) co_await yield_now();
  events::append_ping(out);
  auto headers = runs::event_stream_headers();
  auto sent = co_await responder.begin(200, std::move(headers), out);
  while (sent && !watcher->ended()) {
    out.clear();
    drain(*watcher, fd, out, false);
    if (out.empty() && watcher->waiting()) {
      co_await sleep_for(kOtherHalf);
      drain(*watcher, fd, out, true);
    }
    if (out.empty()) {
      bool more = co_await readable(descriptor);
      if (!more) events::append_ping(out);
    }
    sent = co_await responder.chunk(out);
  }
  if (sent) sent = co_await responder.end();
}

struct Counted {
  explicit Counted(std::size_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  std::size_t& count_;
};

Result<std::unique_ptr<Watcher>> begin_watch(const Setup& setup, const http::Request& request) {
  TRY(auto values, query_values(request, "path"));
  TRY(auto recursive, query_values(request, "recursive"));
  if (values.empty()) return Error(Errc::invalid_argument, "the query parameter \"path\" is required").with_code("MISSING_QUERY");
  TRY(auto path, expand(setup, values.front()));
  return Watcher::make(std::move(path), !recursive.empty() && (recursive.front() == "true" || recursive.front() == "1"));
}

}  // namespace

Task<void> watch(Sandbox& sandbox, http::Request& request, http::Responder& responder) {
  if (sandbox.file_watches >= kMaxWatchStreams)
    co_return co_await reply_error(responder, 429, "RUNTIME_ERROR", "16 watches are open; close one first");
  Counted counted(sandbox.file_watches);
  auto watcher = begin_watch(sandbox.setup, request);
  if (!watcher) co_return co_await reply_failure(responder, std::move(watcher).error());
  co_await stream_events(*std::move(watcher), responder);
}

}  // namespace osb::execd::files
