#include "engine/processes/connection_filter.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "engine/processes/rendezvous.h"

namespace stepladder {
namespace {

constexpr uid_t nobody = 65'534;

// Another process connects as this user and says a letter.
pid_t connect_as(uid_t user, int port, char letter) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(60);  // a failed test must not leave a process that waits for ever
  if (::setuid(user) != 0) ::_exit(1);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (!connected || ::write(socket, &letter, 1) != 1) ::_exit(1);
  char answer = 0;
  ::_exit(::read(socket, &answer, 1) == 1 ? 0 : 2);  // 2: the other end has closed it
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

bool has_connection(int socket) {  // waits for one
  pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 10'000) == 1;
}

TEST(ConnectionFilter, AcceptsThisUser) {
  ListeningSocket listening("127.0.0.1", 0);
  const int port = listening.port();
  const int socket = listening.release();
  const pid_t own = connect_as(::getuid(), port, 'a');
  const int connection = ::accept(socket, nullptr, nullptr);
  ASSERT_GE(connection, 0);
  EXPECT_FALSE(is_from_another_user(connection));
  EXPECT_EQ(::write(connection, "b", 1), 1);
  EXPECT_EQ(status_of(own), 0);
  ::close(connection);
  ::close(socket);
}

TEST(ConnectionFilter, ClosesConnectionsOfOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  ListeningSocket listening("127.0.0.1", 0);
  const int port = listening.port();
  const int socket = listening.release();
  const pid_t other = connect_as(nobody, port, 'x');
  ASSERT_TRUE(has_connection(socket));
  const pid_t own = connect_as(::getuid(), port, 'a');
  int connection = -1;
  do {
    connection = ::accept(socket, nullptr, nullptr);
  } while (connection < 0 && errno == EAGAIN);
  char letter = 0;
  EXPECT_EQ(::read(connection, &letter, 1), 1);
  EXPECT_EQ(letter, 'a');
  EXPECT_EQ(::write(connection, "b", 1), 1);
  EXPECT_EQ(status_of(own), 0);
  EXPECT_EQ(status_of(other), 2);
  ::close(connection);
  ::close(socket);
}

TEST(ConnectionFilter, DoesNotWaitForTheNextConnection) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  ListeningSocket listening("127.0.0.1", 0);
  const int port = listening.port();
  const int socket = listening.release();
  const pid_t other = connect_as(nobody, port, 'x');
  ASSERT_TRUE(has_connection(socket));
  EXPECT_EQ(::accept(socket, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(status_of(other), 2);
  ::close(socket);
}

TEST(ConnectionFilter, LeavesOtherSocketsAlone) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_FALSE(is_from_another_user(ends[0]));
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace stepladder
