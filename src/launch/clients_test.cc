#include "launch/clients.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace osb::launch {
namespace {

class ClientsTest : public testing::Test, protected Clients::Owner {
 protected:
  Result<> watch_client(int fd, std::uint64_t client) override {
    if (refuse_) return Error::from_errno("watch", ENOSPC);
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    EXPECT_EQ(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), 0);
    came_.push_back(client);
    return Ok{};
  }
  void unwatch(int fd) override { EXPECT_EQ(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr), 0); }
  void dispatch(std::uint64_t client, Received& message) override {
    if (const auto* head = message.as<wire::Head>()) clients_.reply_status({client, head->seq}, head->op, EBUSY, "not now");
  }
  void on_client_gone(std::uint64_t client) override { gone_.push_back(client); }

  // The far end of a new connection.
  Fd come() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    clients_.accept(Fd(ends[0]), ::getuid());
    return Fd(ends[1]);
  }
  static bool is_turned_away(const Fd& end) {
    char byte = 0;
    return ::recv(end.get(), &byte, 1, 0) == 0;
  }

  Fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  bool refuse_ = false;
  std::vector<std::uint64_t> came_, gone_;
  Clients clients_{*this, epoll_};
};

TEST_F(ClientsTest, GetTheAnswerToWhatTheyAsked) {
  Fd one = come(), other = come();
  wire::Head question{.op = wire::Op::list, .seq = 7};
  ASSERT_EQ(::send(other.get(), &question, sizeof question, 0), static_cast<ssize_t>(sizeof question));
  for (auto client : came_) clients_.read(client);
  wire::StatusReply answer;
  ASSERT_EQ(::recv(other.get(), &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.head.seq, 7u);
  EXPECT_EQ(answer.head.op, wire::Op::list);
  EXPECT_EQ(answer.sys, EBUSY);
  EXPECT_STREQ(answer.detail, "not now");
  EXPECT_EQ(::recv(one.get(), &answer, sizeof answer, 0), -1);  // not for this one
}

TEST_F(ClientsTest, AreForgottenWhenTheyHangUp) {
  EXPECT_FALSE(clients_.had_any());
  Fd one = come();
  ASSERT_EQ(came_.size(), 1u);
  EXPECT_GE(clients_.socket_of(came_[0]), 0);
  one.reset();
  clients_.read(came_[0]);
  EXPECT_EQ(gone_, came_);
  EXPECT_TRUE(clients_.empty() && clients_.had_any());
  EXPECT_EQ(clients_.socket_of(came_[0]), -1);
  clients_.reply_status({came_[0], 1}, wire::Op::list, 0);  // to nobody
}

TEST_F(ClientsTest, AllHearWhatIsToldToAll) {
  Fd one = come(), other = come();
  wire::Head event{.op = wire::Op::exited};
  clients_.broadcast(&event, sizeof event);
  for (const Fd* end : {&one, &other}) {
    wire::Head heard;
    EXPECT_EQ(::recv(end->get(), &heard, sizeof heard, 0), static_cast<ssize_t>(sizeof heard));
    EXPECT_EQ(heard.op, wire::Op::exited);
  }
}

TEST_F(ClientsTest, AreTurnedAwayWhenThereAreTooManyOrNoneCanBeWatched) {
  std::vector<Fd> ends;
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(is_turned_away(ends.emplace_back(come())));
  EXPECT_TRUE(is_turned_away(come()));
  clients_.drop(came_[3]);
  refuse_ = true;
  EXPECT_TRUE(is_turned_away(come()));
  refuse_ = false;
  EXPECT_FALSE(is_turned_away(come()));
}

TEST(ReadCreate, TakesNoLessThanItsLayers) {
  Received message;
  wire::CreateRequest sent, got;
  sent.layer_count = 2;
  std::memcpy(message.bytes, &sent, sizeof sent);
  message.size = sizeof sent - sizeof sent.layers + 2 * sizeof(wire::Digest);
  EXPECT_TRUE(read_create(message, got));
  EXPECT_EQ(got.layer_count, 2u);
  --message.size;
  EXPECT_FALSE(read_create(message, got));
  message.size = sizeof(wire::Head);
  EXPECT_FALSE(read_create(message, got));
}

}  // namespace
}  // namespace osb::launch
