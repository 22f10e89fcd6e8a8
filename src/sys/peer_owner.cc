#include "sys/peer_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace osb::sys {
namespace {

struct Ends {
  sockaddr_storage local{};
  sockaddr_storage peer{};
};

std::optional<Ends> ends_of(int fd) {
  Ends ends;
  socklen_t local = sizeof ends.local, peer = sizeof ends.peer;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&ends.local), &local) != 0) return std::nullopt;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&ends.peer), &peer) != 0) return std::nullopt;
  if (ends.local.ss_family != ends.peer.ss_family) return std::nullopt;
  return ends;
}

// Port and address as inet_diag wants them; both stay in network order.
bool put(const sockaddr_storage& from, __be16& port, __be32* address) {
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    port = v4.sin_port;
    address[0] = v4.sin_addr.s_addr;
    return true;
  }
  if (from.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
  port = v6.sin6_port;
  ::memcpy(address, &v6.sin6_addr, sizeof v6.sin6_addr);
  return true;
}

struct Question {
  nlmsghdr head{};
  inet_diag_req_v2 body{};
};

// The peer's socket is the one whose source is what our socket calls its peer.
std::optional<Question> question_about(int fd) {
  auto ends = ends_of(fd);
  if (!ends) return std::nullopt;
  Question out;
  out.head.nlmsg_len = sizeof out;
  out.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  out.head.nlmsg_flags = NLM_F_REQUEST;
  out.body.sdiag_family = static_cast<__u8>(ends->peer.ss_family);
  out.body.sdiag_protocol = IPPROTO_TCP;
  out.body.idiag_states = ~0u;
  out.body.id.idiag_cookie[0] = out.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  bool known =
      put(ends->peer, out.body.id.idiag_sport, out.body.id.idiag_src) && put(ends->local, out.body.id.idiag_dport, out.body.id.idiag_dst);
  return known ? std::optional(out) : std::nullopt;
}

struct Owner {
  std::uint32_t uid;
  std::uint32_t inode;  // 0: no program holds the socket any more
};

std::optional<Owner> ask(int netlink, const Question& question) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  auto sent = ::sendto(netlink, &question, sizeof question, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  if (sent != static_cast<ssize_t>(sizeof question)) return std::nullopt;
  alignas(nlmsghdr) char buffer[4096];
  sockaddr_nl from{};
  socklen_t size = sizeof from;
  // The kernel answers before sendto returns; a wait here would be a fault, not a delay.
  auto got = ::recvfrom(netlink, buffer, sizeof buffer, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg))) || from.nl_pid != 0) return std::nullopt;
  const auto* head = reinterpret_cast<const nlmsghdr*>(buffer);
  if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return std::nullopt;
  const auto* told = reinterpret_cast<const inet_diag_msg*>(NLMSG_DATA(head));
  if (told->idiag_state != TCP_ESTABLISHED && told->idiag_state != TCP_FIN_WAIT1 && told->idiag_state != TCP_FIN_WAIT2) return std::nullopt;
  if (told->id.idiag_sport != question.body.id.idiag_sport || told->id.idiag_dport != question.body.id.idiag_dport) return std::nullopt;
  return Owner{told->idiag_uid, told->idiag_inode};
}

}  // namespace

// The kernel tells root as the owner of a socket that its program has closed. Such a socket has no inode, and it never gets
// one again: when a second look still finds the inode of the first, the uid of the first was that of a living owner.
std::optional<std::uint32_t> peer_owner(int connected_tcp_socket) {
  auto question = question_about(connected_tcp_socket);
  if (!question) return std::nullopt;
  Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return std::nullopt;
  auto first = ask(netlink.get(), *question);
  auto second = first ? ask(netlink.get(), *question) : std::nullopt;
  if (!first || !second || second->inode == 0 || first->inode != second->inode || first->uid != second->uid) return std::nullopt;
  return first->uid;
}

}  // namespace osb::sys
