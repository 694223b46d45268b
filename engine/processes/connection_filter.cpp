// Defines `accept` and `accept4` for the whole program, so that Gloo's and c10d's listening sockets drop other users'
// connections. It asks the kernel by netlink (sock_diag) who owns the other end. Both are exported symbols: hiding them
// silently removes the protection.
#include "engine/processes/connection_filter.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace stepladder {
namespace {

// The addresses as the kernel wants them: four words, of which IPv4 uses the first.
struct ConnectionEnd {
  int family = AF_UNSPEC;
  std::array<std::uint32_t, 4> address{};
  std::uint16_t port = 0;  // in the network's order

  bool is_loopback() const {
    return family == AF_INET ? ntohl(address[0]) >> 24 == 127
                             : address == std::array<std::uint32_t, 4>{0, 0, 0, htonl(1)};
  }
};

ConnectionEnd end_of(const sockaddr_storage& address) {
  ConnectionEnd end{.family = address.ss_family};
  // The port is at the same offset in both families (RFC 3493, sections 3.3 and 3.4).
  end.port = reinterpret_cast<const sockaddr_in&>(address).sin_port;
  if (end.family == AF_INET) {
    end.address[0] = reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr;
    return end;
  }
  const in6_addr& sixteen = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  std::memcpy(end.address.data(), &sixteen, sizeof end.address);
  if (IN6_IS_ADDR_V4MAPPED(&sixteen)) end = {.family = AF_INET, .address = {end.address[3]}, .port = end.port};
  return end;
}

struct Owner {
  bool is_open = false;
  uid_t user = 0;
};

// The owner of the TCP socket whose own end is `local`. Asks the kernel for this one socket (man 7 sock_diag), which
// takes some microseconds however many connections there are. Nothing if it can't be found.
std::optional<Owner> owner_of(const ConnectionEnd& local, const ConnectionEnd& remote) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 wanted;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.wanted.sdiag_family = static_cast<std::uint8_t>(local.family);
  request.wanted.sdiag_protocol = IPPROTO_TCP;
  request.wanted.idiag_states = ~0U;
  request.wanted.id.idiag_sport = local.port;
  request.wanted.id.idiag_dport = remote.port;
  std::memcpy(request.wanted.id.idiag_src, local.address.data(), sizeof local.address);
  std::memcpy(request.wanted.id.idiag_dst, remote.address.data(), sizeof remote.address);
  request.wanted.id.idiag_cookie[0] = request.wanted.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;

  const int kernel = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) return std::nullopt;
  alignas(nlmsghdr) std::array<std::byte, 8192> answer{};
  ssize_t size = ::send(kernel, &request, sizeof request, 0);
  if (size > 0) size = ::recv(kernel, answer.data(), answer.size(), 0);
  ::close(kernel);
  nlmsghdr header{};
  inet_diag_msg found{};
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof found))) return std::nullopt;
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
  return Owner{.is_open = found.idiag_state == TCP_ESTABLISHED, .user = found.idiag_uid};
}

}  // namespace

bool is_from_another_user(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return false;
  const ConnectionEnd own = end_of(address);
  size = sizeof address;
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return true;  // closed
  const ConnectionEnd other = end_of(address);
  if (const auto owner = owner_of(other, own)) return !owner->is_open || owner->user != ::geteuid();
  // A socket of this machine without an owner has been closed, unless the kernel can't be asked at all.
  return other.is_loopback() && owner_of(own, other);
}

namespace {

int accept_from_this_user(int listening, sockaddr* address, socklen_t* size, int flags) {
  const auto connection = static_cast<int>(::syscall(SYS_accept4, listening, address, size, flags));
  if (connection < 0 || !is_from_another_user(connection)) return connection;
  ::close(connection);
  errno = EAGAIN;
  return -1;
}

}  // namespace
}  // namespace stepladder

extern "C" {
[[gnu::visibility("default")]] int accept(int listening, sockaddr* address, socklen_t* size) {
  return stepladder::accept_from_this_user(listening, address, size, 0);
}

[[gnu::visibility("default")]] int accept4(int listening, sockaddr* address, socklen_t* size, int flags) {
  return stepladder::accept_from_this_user(listening, address, size, flags);
}
}
