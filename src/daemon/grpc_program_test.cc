#include "daemon/grpc_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/program_exit.h"
#include "base/text.h"
#include "http/listener.h"

namespace osb::daemon {
namespace {

// Stands in for opensandbox-grpc: a script of the test.
class GrpcProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-grpc-program-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
    config_.port = 0;
  }
  void TearDown() override {
    for (const char* name : {"/program", "/starts"}) ::unlink((dir_ + name).c_str());
    ::rmdir(dir_.c_str());
  }

  std::string program(const std::string& line) const {
    auto path = dir_ + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << line << "\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }
  GrpcProgram with(const std::string& line) { return {io_, config_, program(line), dir_ + "/relay.sock"}; }

  void run_until_stopped(GrpcProgram& grpc) {
    asio::co_spawn(io_, grpc.stop(), [](std::exception_ptr failed) { EXPECT_FALSE(failed); });
    io_.restart();
    io_.run_for(std::chrono::seconds(20));
  }
  static bool has_children() { return ::waitpid(-1, nullptr, WNOHANG | __WALL) >= 0 || errno != ECHILD; }

  std::string dir_;
  GrpcConfig config_;
  asio::io_context io_{1};
};

TEST_F(GrpcProgramTest, EndsWhenItsLifelineCloses) {
  auto grpc = with("exec cat");
  ASSERT_TRUE(grpc.start());
  EXPECT_TRUE(has_children());
  run_until_stopped(grpc);
  EXPECT_FALSE(has_children());
}

TEST_F(GrpcProgramTest, IsKilledWhenItDoesNotHeedItsLifeline) {
  auto grpc = with("exec sleep 1000");
  ASSERT_TRUE(grpc.start());
  run_until_stopped(grpc);
  EXPECT_FALSE(has_children());
}

TEST_F(GrpcProgramTest, IsStartedAgainWhenItEnds) {
  auto starts = dir_ + "/starts";
  auto grpc = with("echo started >> " + starts + "; test $(wc -l < " + starts + ") -ge 2 && exec cat");
  ASSERT_TRUE(grpc.start());
  auto lines = [&] {
    std::ifstream file(starts);
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  };
  for (int i = 0; i < 400 && lines() < 2; ++i) io_.run_for(std::chrono::milliseconds(25));
  EXPECT_EQ(lines(), 2);
  run_until_stopped(grpc);
  EXPECT_FALSE(has_children());
}

TEST_F(GrpcProgramTest, ThatCanNeverRunHereIsNotStartedAgainAndItsPortCloses) {
  auto starts = dir_ + "/starts";
  auto grpc = with(cat("echo started >> ", starts, "; exit ", kExitNeverHere));
  auto port = grpc.start();
  ASSERT_TRUE(port);
  for (int i = 0; i < 400 && !grpc.has_given_up(); ++i) io_.run_for(std::chrono::milliseconds(25));
  EXPECT_TRUE(grpc.has_given_up());
  io_.restart();
  EXPECT_EQ(io_.run_for(std::chrono::seconds(2)), 0u) << "nothing is left to do, so nothing is started later";
  std::ifstream file(starts);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, "started\n");
  auto free = http::listen_on_tcp(config_.listen, *port);
  EXPECT_TRUE(free) << "whoever calls is refused, and does not wait for nobody";
  run_until_stopped(grpc);
  EXPECT_FALSE(has_children());
}

// With room for the listener and the two ends of its pipe the program can be started, but not watched.
TEST_F(GrpcProgramTest, ThatCannotBeWatchedIsEndedAndLeavesNoZombie) {
  std::vector<Fd> low;  // numbers the program itself wants to have below the limit
  do low.emplace_back(::fcntl(0, F_DUPFD_CLOEXEC, 3));
  while (low.back().get() < 32);
  auto start_with_room_for = [](GrpcProgram& grpc, rlim_t descriptors) {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    Fd next(::fcntl(0, F_DUPFD_CLOEXEC, 3));
    rlimit tight{static_cast<rlim_t>(next.get()) + descriptors, before.rlim_max};
    next.reset();
    ::setrlimit(RLIMIT_NOFILE, &tight);
    auto started = grpc.start();
    ::setrlimit(RLIMIT_NOFILE, &before);
    return started;
  };
  {
    auto grpc = with("exec cat");
    auto refused = start_with_room_for(grpc, 3);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().sys(), EMFILE);
    EXPECT_TRUE(refused.error().what().contains("pidfd_open")) << refused.error().what();
    EXPECT_FALSE(has_children());
  }
  auto grpc = with("exec cat");
  EXPECT_TRUE(start_with_room_for(grpc, 4)) << "the control: one descriptor more, and it runs";
  EXPECT_TRUE(has_children());
  run_until_stopped(grpc);
  EXPECT_FALSE(has_children());
}

}  // namespace
}  // namespace osb::daemon
