// For tests only: a service over fakes, operations that can be left half-way, and the audit lines it wrote.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "lifecycle/fake_runtime.h"
#include "lifecycle/fake_store.h"
#include "lifecycle/service.h"

namespace osb::lifecycle {

inline const Caller kAlice{"alice", false, "req-a"};
inline const Caller kBob{"bob", false, "req-b"};
inline const Caller kLocal{"local", true, "req-l"};

// A wall clock the tests can turn.
inline std::int64_t g_wall_offset_micros = 0;
inline WallTime turned_wall_clock() { return {wall_now().micros + g_wall_offset_micros}; }

class ServiceFixture : public ::testing::Test {
 protected:
  // An operation that was begun; its answer arrives when the loop runs.
  template <class T>
  struct Begun {
    std::shared_ptr<std::optional<T>> slot;
    bool done() const { return slot->has_value(); }
    T& value() { return **slot; }
  };

  void SetUp() override {
    log::set_level(log::Level::error);
    g_wall_offset_micros = 0;
    options_.wall_clock = turned_wall_clock;
    options_.boot_id = "boot-1";
    make_service();
    ASSERT_TRUE(run(service_->start()));
  }

  void TearDown() override { stop_service(); }

  void make_service() {
    audit_ = audit::Log::to([this](std::string_view line) -> Result<> {
      if (before_audit_) before_audit_();
      if (audit_fails_) return Error(Errc::unavailable, "write audit.jsonl: No space left on device");
      lines_.emplace_back(line);
      return Ok{};
    });
    service_ = std::make_unique<Service>(io_, store_, *audit_, images_, runtime_, options_);
    runtime_.on_ended([this](const runtime::Ended& ended) { service_->on_ended(ended); });
  }

  void stop_service() {
    if (!service_) return;
    run_void(service_->stop());
    service_.reset();
    io_.restart();
    io_.poll();
  }

  // As after kill -9: the service is gone, the store and the runtime are as they were.
  Result<> restart() {
    stop_service();
    make_service();
    return run(service_->start());
  }

  template <class T>
  static Task<void> fill(Task<T> task, std::shared_ptr<std::optional<T>> slot) {
    auto value = co_await std::move(task);
    slot->emplace(std::move(value));
  }

  template <class T>
  Begun<T> begin(Task<T> task) {
    auto slot = std::make_shared<std::optional<T>>();
    asio::co_spawn(io_.get_executor(), fill<T>(std::move(task), slot), [](std::exception_ptr) {});
    return {slot};
  }

  // Runs the loop until `condition`; false after five seconds.
  template <class Condition>
  bool until(Condition condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return condition();
  }

  // Everything that can happen without waiting has happened.
  void settle() {
    io_.restart();
    io_.poll();
  }

  template <class T>
  T run(Task<T> task) {
    auto begun = begin(std::move(task));
    EXPECT_TRUE(until([&] { return begun.done(); })) << "the operation never answered";
    return std::move(begun.value());
  }

  void run_void(Task<void> task) {
    bool done = false;
    asio::co_spawn(io_.get_executor(), std::move(task), [&done](std::exception_ptr) { done = true; });
    EXPECT_TRUE(until([&] { return done; }));
  }

  static SandboxSpec spec(std::optional<std::int64_t> timeout = 600) {
    SandboxSpec out;
    out.image = "host";
    out.entrypoint = {"tail", "-f", "/dev/null"};
    out.timeout_seconds = timeout;
    out.metadata = {{"tag", "demo"}};
    return out;
  }

  Sandbox make(const Caller& caller = kAlice, std::optional<std::int64_t> timeout = 600) {
    auto made = run(service_->create(spec(timeout), caller));
    EXPECT_TRUE(made) << made.error().what();
    return *std::move(made);
  }

  State state(const SandboxId& id) {
    auto found = service_->get(id, kLocal);
    EXPECT_TRUE(found) << "no such sandbox";
    return found ? found->status.state : State::pending;
  }
  bool exists(const SandboxId& id) { return static_cast<bool>(service_->get(id, kLocal)); }

  static WallTime in_millis(std::int64_t millis) { return {turned_wall_clock().micros + millis * 1000}; }

  // "action outcome" of every audit line, oldest first.
  std::vector<std::string> audited() const {
    std::vector<std::string> out;
    for (const auto& line : lines_) {
      auto object = boost::json::parse(line).as_object();
      out.push_back(cat(std::string_view(object.at("action").as_string()), " ", std::string_view(object.at("outcome").as_string())));
    }
    return out;
  }
  boost::json::object last_audit() const { return boost::json::parse(lines_.back()).as_object(); }

  asio::io_context io_;
  FakeStore store_;
  FakeImages images_;
  FakeRuntime runtime_{io_};
  Options options_;
  std::unique_ptr<audit::Log> audit_;
  std::vector<std::string> lines_;
  bool audit_fails_ = false;
  std::function<void()> before_audit_;
  std::unique_ptr<Service> service_;
};

}  // namespace osb::lifecycle
