// For links to other machines: ssh, whose output is read while it runs. A program that is only awaited is
// run_program's.
#include "app/process/piped_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace stepladder {
namespace {

constexpr std::size_t most_at_once = 1 << 20;
constexpr std::size_t kept_errors = 8 << 10;

}  // namespace

PipedProcess::Streams PipedProcess::start(const std::vector<std::string>& command, bool has_terminal,
                                          const std::vector<std::string>& environment) {
  // A socket can be written to without SIGPIPE when the program has closed it.
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw std::system_error(errno, std::generic_category(), "no socket can be opened");
  Descriptor in(sockets[0]);
  const Descriptor theirs(sockets[1]);
  Pipe out, err;
  for (const int ours : {in.get(), out.read.get(), err.read.get()}) ::fcntl(ours, F_SETFL, O_NONBLOCK);
  // A session has no terminal, so a program that may ask on ours stays in our group.
  Process process({.command = command,
                   .environment = environment,
                   .input = theirs.get(),
                   .output = out.write.get(),
                   .errors = err.write.get(),
                   .group = has_terminal ? Launch::Group::ours : Launch::Group::session});
  return {std::move(in), std::move(out.read), std::move(err.read), std::move(process)};
}

PipedProcess::PipedProcess(const std::vector<std::string>& command, bool has_terminal,
                           const std::vector<std::string>& environment)
    : streams_(start(command, has_terminal, environment)) {}

PipedProcess::~PipedProcess() {
  for (Descriptor* ours : {&streams_.in, &streams_.out, &streams_.err}) ours->reset();
  streams_.process.end();
}

void PipedProcess::close_input() {
  closes_input_ = true;
  write_some();
}

void PipedProcess::write_some() {
  Descriptor& in = streams_.in;
  while (in && written_ < to_write_.size()) {
    const ssize_t count = ::send(in.get(), to_write_.data() + written_, to_write_.size() - written_, MSG_NOSIGNAL);
    if (count > 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      if (errno != EAGAIN) in.reset();
      break;
    }
  }
  if (written_ > most_at_once || written_ == to_write_.size()) {
    to_write_.erase(0, written_);
    written_ = 0;
  }
  if (closes_input_ && to_write_.empty()) in.reset();
}

// Returns whether there was any.
bool PipedProcess::read_from(Descriptor& descriptor, std::string& into) {
  if (!descriptor) return false;
  char piece[64 << 10];
  const ssize_t count = ::read(descriptor.get(), piece, sizeof piece);
  if (count > 0) into.append(piece, static_cast<std::size_t>(count));
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) descriptor.reset();
  return count > 0;
}

void PipedProcess::poll(std::string& read) {
  write_some();
  while (read.size() < most_at_once && read_from(streams_.out, read)) {
  }
  // Its end first: what it wrote before is in the pipe.
  const bool ended = ended_ || (!streams_.out && streams_.process.has_ended());
  while (read_from(streams_.err, errors_))
    if (errors_.size() > kept_errors) errors_.erase(0, errors_.size() - kept_errors);
  ended_ = ended;
}

void PipedProcess::add_to(std::vector<pollfd>& waiting) const {
  const auto add = [&](const Descriptor& stream, short events) {
    if (stream) waiting.push_back({.fd = stream.get(), .events = events, .revents = 0});
  };
  if (unwritten() > 0) add(streams_.in, POLLOUT);
  add(streams_.out, POLLIN);
  add(streams_.err, POLLIN);
}

}  // namespace stepladder
