// The native runtime before a launcher that a test plays: one that dies, comes back, answers late or not at all.
#include "runtime/native/native_runtime.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/log.h"
#include "image/image.h"
#include "sys/descriptor_message.h"

namespace osb::runtime {
namespace {

using namespace std::chrono_literals;

// The other end of the socket, driven by the test: nothing is answered unless it says so.
class LauncherDouble {
 public:
  struct Question {
    wire::Head head;
    std::string bytes;
    std::string id() const {
      const auto* key = reinterpret_cast<const wire::SandboxRequest*>(bytes.data())->id.text;
      return {key, ::strnlen(key, sizeof(wire::Key))};
    }
  };

  explicit LauncherDouble(std::string path) : path_(std::move(path)) {}

  void come() {
    listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 16), 0);
  }

  void die() {
    listener_.reset();
    client_.reset();
    ::unlink(path_.c_str());
    asked.clear();
  }

  void look() {
    if (listener_ && !client_) client_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    alignas(8) char buffer[wire::kMaxMessage];
    for (Fd descriptor; client_;) {
      auto n = sys::receive_with_descriptor(client_.get(), buffer, sizeof buffer, MSG_DONTWAIT, descriptor);
      if (n <= 0) return;
      Question question{.head = {}, .bytes = std::string(buffer, static_cast<std::size_t>(n))};
      std::memcpy(&question.head, buffer, sizeof question.head);
      asked.push_back(std::move(question));
    }
  }

  const Question* find(wire::Op op) const {
    for (const auto& question : asked)
      if (question.head.op == op) return &question;
    return nullptr;
  }

  Question take(wire::Op op) {
    for (auto at = asked.begin(); at != asked.end(); ++at) {
      if (at->head.op != op) continue;
      auto question = std::move(*at);
      asked.erase(at);
      return question;
    }
    ADD_FAILURE() << "nobody asked for " << static_cast<int>(op);
    return {};
  }

  template <class Reply>
  void answer(const Question& question, Reply reply, std::size_t size = sizeof(Reply)) {
    reply.head.seq = question.head.seq;
    sys::send_with_descriptor(client_.get(), &reply, size, -1);
  }
  void answer_status(const Question& question, int sys) {
    wire::StatusReply reply;
    reply.head.op = question.head.op;
    reply.sys = sys;
    answer(question, reply);
  }
  void answer_list(const Question& question, const std::vector<SandboxId>& ids) {
    wire::ListReply reply;
    for (const auto& id : ids) id.text().copy(reply.entries[reply.count++].id.text, sizeof(wire::Key));
    answer(question, reply, sizeof reply - (wire::ListReply::kPage - reply.count) * sizeof(wire::ListEntry));
  }

  void tell_end(const SandboxId& id) {
    wire::ExitedEvent event;
    id.text().copy(event.id.text, sizeof event.id.text);
    sys::send_with_descriptor(client_.get(), &event, sizeof event, -1);
  }

  std::deque<Question> asked;

 private:
  std::string path_;
  Fd listener_;
  Fd client_;
};

// Made once: it takes longer than all that is tested here.
struct SharedImages {
  SharedImages() {
    char name[] = "/tmp/osb-images-XXXXXX";
    if (::mkdtemp(name) == nullptr) return;
    directory = name;
    if (auto opened = image::Store::open(directory)) store = *std::move(opened);
  }
  ~SharedImages() {
    store.reset();
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }
  std::string directory;
  std::unique_ptr<image::Store> store;
};

SharedImages& shared_images() {
  static SharedImages images;
  return images;
}

class BeforeALauncher : public testing::Test {
 protected:
  template <class T>
  using Slot = std::shared_ptr<std::optional<T>>;

  void SetUp() override {
    log::set_level(log::Level::error);
    char name[] = "/tmp/osb-runtime-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    launcher_.emplace(directory_ + "/launch.sock");
    launcher_->come();
    NativeOptions options;
    options.images = shared_images().store.get();
    options.launch.run_dir = directory_;
    options.launch.launch_path = "/bin/false";  // nobody comes but who the test sends
    options.launch.return_patience = patience_;
    auto started = begin(NativeRuntime::start(io_, std::move(options)));
    launcher_->answer(next(wire::Op::hello), wire::HelloReply{});
    if (leaves_first_) {
      next(wire::Op::list);
      another_comes();
      launcher_->answer(next(wire::Op::hello), wire::HelloReply{});
      answer_lists({});  // of the comparison, or of the start that asks again: both come
    }
    answer_lists({});
    pump([&] { return started->has_value(); });
    ASSERT_TRUE(**started);
    runtime_ = std::move(***started);
    runtime_->set_ended_handler([this](const Ended& ended) { ended_.push_back(ended.id.text()); });
  }

  void TearDown() override {
    if (runtime_) {
      auto stopped = begin(stop_runtime());
      for (int i = 0; i < 200 && !launcher_->find(wire::Op::stop); ++i) step();
      launcher_->die();
      pump([&] { return stopped->has_value(); });
    }
    runtime_.reset();
    io_.restart();
    io_.poll();
    log::set_level(log::Level::info);
    std::filesystem::remove_all(directory_);
  }

  void another_comes() {
    launcher_->die();
    step();
    launcher_->come();
  }

  Task<bool> stop_runtime() {
    co_await runtime_->stop(false);
    co_return true;
  }

  template <class T>
  static Task<void> fill(Task<T> task, Slot<T> slot) {
    auto value = co_await std::move(task);
    slot->emplace(std::move(value));
  }
  template <class T>
  Slot<T> begin(Task<T> task) {
    auto slot = std::make_shared<std::optional<T>>();
    asio::co_spawn(io_, fill<T>(std::move(task), slot), [](std::exception_ptr) {});
    return slot;
  }

  void step() {
    io_.restart();
    io_.poll();
    launcher_->look();
    ::usleep(500);
  }
  void pump(const std::function<bool()>& done) {
    for (auto end = std::chrono::steady_clock::now() + 10s; !done(); step())
      if (std::chrono::steady_clock::now() > end) return ADD_FAILURE() << "not within 10 s";
  }
  LauncherDouble::Question next(wire::Op op) {
    pump([&] { return launcher_->find(op) != nullptr; });
    return launcher_->take(op);
  }
  void answer_lists(const std::vector<SandboxId>& ids) { launcher_->answer_list(next(wire::Op::list), ids); }
  void answer_create(const LauncherDouble::Question& question) { launcher_->answer(question, wire::CreateReply{}); }
  SandboxId made() {
    auto id = SandboxId::random();
    auto create = begin(runtime_->create(id, host(), 0));
    answer_create(next(wire::Op::create));
    pump([&] { return create->has_value(); });
    EXPECT_TRUE(**create);
    return id;
  }
  static SandboxSpec host() {
    SandboxSpec spec;
    spec.image = "host";
    return spec;
  }

  std::chrono::milliseconds patience_ = 10s;
  bool leaves_first_ = false;
  std::string directory_;
  asio::io_context io_;
  std::optional<LauncherDouble> launcher_;
  std::unique_ptr<NativeRuntime> runtime_;
  std::vector<std::string> ended_;
};

TEST_F(BeforeALauncher, AQuestionWhileItIsAwayIsAnsweredByTheNextOne) {
  launcher_->die();
  step();
  auto usage = begin(runtime_->usage(SandboxId::random()));
  for (int i = 0; i < 20; ++i) step();
  EXPECT_FALSE(usage->has_value());
  launcher_->come();
  launcher_->answer_status(next(wire::Op::usage), ENOENT);
  pump([&] { return usage->has_value(); });
  EXPECT_EQ((**usage).error().kind(), Errc::not_found);
}

class BriefPatience : public BeforeALauncher {
 protected:
  BriefPatience() { patience_ = 50ms; }
};

TEST_F(BriefPatience, AQuestionToOneThatStaysAwayIsUnavailable) {
  launcher_->die();
  auto usage = begin(runtime_->usage(SandboxId::random()));
  pump([&] { return usage->has_value(); });
  EXPECT_EQ((**usage).error().kind(), Errc::unavailable);
  EXPECT_FALSE((**usage).error().hint().empty());
}

// The order that left sandboxes behind: a create waits for the launcher's return, the comparison asks for the list before it is
// made, does not find it there, and tells its end, while it lives.
TEST_F(BeforeALauncher, ACreateThatWaitsForItsReturnIsNotTakenForALostSandbox) {
  auto lost = made();
  launcher_->die();
  step();
  auto id = SandboxId::random();
  auto create = begin(runtime_->create(id, host(), 0));
  step();
  launcher_->come();
  auto question = next(wire::Op::create);
  answer_lists({});
  for (int i = 0; i < 20; ++i) step();
  answer_create(question);
  pump([&] { return create->has_value() && !ended_.empty(); });
  EXPECT_TRUE(**create);
  EXPECT_EQ(ended_, std::vector<std::string>{lost.text()});
}

TEST_F(BeforeALauncher, WhatTheNextOneHasAndNobodyKnowsIsEndedUntilItIsGone) {
  another_comes();
  auto orphan = SandboxId::random();
  answer_lists({orphan});
  auto first = next(wire::Op::destroy);
  EXPECT_EQ(first.id(), orphan.text());
  launcher_->answer_status(first, EIO);
  auto second = next(wire::Op::destroy);
  EXPECT_EQ(second.id(), orphan.text());
  launcher_->answer_status(second, 0);
}

TEST_F(BeforeALauncher, ADeleteWhoseAnswerWasLostIsAskedOfTheNextOne) {
  auto id = made();
  auto gone = begin(runtime_->destroy(id));
  EXPECT_EQ(next(wire::Op::destroy).id(), id.text());
  another_comes();
  auto again = next(wire::Op::destroy);
  EXPECT_EQ(again.id(), id.text());
  launcher_->answer_status(again, 0);
  pump([&] { return gone->has_value(); });
  EXPECT_TRUE(**gone);
}

TEST_F(BeforeALauncher, ACreateThatWasLostWithItIsAskedOfTheNextOneIfNothingCameOfIt) {
  auto id = SandboxId::random();
  auto create = begin(runtime_->create(id, host(), 0));
  next(wire::Op::create);
  another_comes();
  auto left = next(wire::Op::destroy);
  EXPECT_EQ(left.id(), id.text());
  EXPECT_EQ(launcher_->find(wire::Op::create), nullptr) << "not before it is known that nothing lives";
  launcher_->answer_status(left, ENOENT);
  answer_create(next(wire::Op::create));
  pump([&] { return create->has_value(); });
  EXPECT_TRUE(**create);
  EXPECT_TRUE(ended_.empty());
}

TEST_F(BeforeALauncher, ACreateThatTheNextOneHasAdoptedIsEndedAndAskedAgain) {
  auto id = SandboxId::random();
  auto create = begin(runtime_->create(id, host(), 0));
  next(wire::Op::create);
  another_comes();
  launcher_->answer_status(next(wire::Op::destroy), 0);
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(launcher_->find(wire::Op::create), nullptr) << "not before it has ended";
  launcher_->tell_end(id);
  answer_create(next(wire::Op::create));
  pump([&] { return create->has_value(); });
  EXPECT_TRUE(**create);
  EXPECT_TRUE(ended_.empty()) << "of the one that was asked for nothing has ended";
  launcher_->tell_end(id);
  pump([&] { return !ended_.empty(); });
}

// More questions than the socket holds wait; none is refused.
TEST_F(BeforeALauncher, AThousandDeletesAtOnceToABusyOneAreAllAsked) {
  std::vector<Slot<Result<>>> deletes;
  for (int i = 0; i < 1000; ++i) deletes.push_back(begin(runtime_->destroy(SandboxId::random())));
  io_.restart();
  io_.poll();  // it reads nothing meanwhile
  pump([&] {
    while (launcher_->find(wire::Op::destroy)) launcher_->answer_status(launcher_->take(wire::Op::destroy), 0);
    return std::ranges::all_of(deletes, [](const auto& each) { return each->has_value(); });
  });
  for (const auto& each : deletes) EXPECT_TRUE(**each);
}

// A restart at once: the launcher that answers the door is the one that is about to close it.
class LeavingFirst : public BeforeALauncher {
 protected:
  LeavingFirst() { leaves_first_ = true; }
};

TEST_F(LeavingFirst, IsFollowedByOneThatStays) { made(); }

}  // namespace
}  // namespace osb::runtime
