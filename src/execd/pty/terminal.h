// Terminal: one session of /pty, and Terminals, the table of them.
//
// A session outlives its connections: what the shell writes goes into a ring of 1 MiB by byte offset, whether somebody is
// there or not, and a client that comes back reads on from an offset. One client at a time is attached. While it
// is, the shell is read no further than 256 KiB ahead of what was sent to it, so a slow client slows the shell down and
// loses nothing; a client that takes nothing for ten seconds is dropped and the shell goes on.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "execd/process.h"
#include "execd/ring.h"

namespace osb::execd {

struct Sandbox;
class Attachment;

class Terminal : public std::enable_shared_from_this<Terminal> {
 public:
  static constexpr std::size_t kRingBytes = 1024 * 1024;
  static constexpr std::size_t kAhead = 256 * 1024;

  Terminal(std::string id, std::string cwd, std::string command);

  const std::string& id() const { return id_; }
  bool running() const { return process_ != nullptr; }
  bool has_tty() const { return tty_; }
  const Ring& output() const { return output_; }
  const std::shared_ptr<Process>& process() const { return process_; }  // null: nothing runs
  bool gone() const { return gone_; }
  bool attached() const { return client_ != nullptr; }
  std::int64_t used_nanos() const { return used_nanos_; }

  // Starts the shell, or the session's command, unless it runs already; then `tty` does not count.
  Result<> start(Sandbox& sandbox, bool tty);
  // Kills everything it runs and sends the client away; nobody finds it any more.
  void remove();

  // ---- the one place of a client
  void seat(Attachment& client);
  // Asks whoever has the place to leave, with force after two seconds; false when it is still taken after five.
  Task<bool> take_over(Attachment& client);
  void leave(const Attachment& client);

  // Which of the two outputs the byte at `offset` came from, and where that run of bytes ends.
  struct Run {
    std::uint64_t end;
    bool error_output;
  };
  Run run_at(std::uint64_t offset) const;

 private:
  Task<void> read_output(Sandbox& sandbox, std::shared_ptr<Process> process);
  std::size_t read_one(OutputPipe& pipe, bool error_output, std::size_t most);
  void append(std::string_view bytes, bool error_output);
  bool client_lags() const;

  std::string id_;
  std::string cwd_;      // absolute; empty: the sandbox's own
  std::string command_;  // empty: an interactive shell
  Ring output_{kRingBytes, nullptr};
  std::vector<Run> runs_;  // of what the client has not got yet; without a client, or with a tty, empty
  std::shared_ptr<Process> process_;
  Attachment* client_ = nullptr;
  std::list<Timer*> waiting_;  // for the place
  bool tty_ = true;
  bool gone_ = false;
  std::int64_t used_nanos_;
};

class Terminals {
 public:
  static constexpr std::size_t kMost = 64;

  // Errc::exhausted when every place is taken by a terminal that runs, is attached or was made a moment ago.
  Result<std::shared_ptr<Terminal>> add(std::string cwd, std::string command);
  std::shared_ptr<Terminal> find(std::string_view id) const;
  bool remove(std::string_view id);

 private:
  bool make_room();
  std::vector<std::shared_ptr<Terminal>> terminals_;
};

}  // namespace osb::execd
