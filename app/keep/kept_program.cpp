// For all keepers. The far program has it too, so it uses nothing but storage's smallest parts.
#include "app/keep/kept_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

namespace stepladder {
namespace {

using namespace std::chrono_literals;

constexpr auto quiet_at_end = 200ms;  // until then others may print more on an ended program's output
constexpr auto between_last_looks = 25ms;

}  // namespace

void become_keeper(std::initializer_list<int> ignored_signals) {
  for (const int signal : ignored_signals) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "stepladder-keep");
}

void leave_streams(std::initializer_list<int> streams) {
  const int null = ::open("/dev/null", O_RDWR);
  for (const int stream : streams) ::dup2(null, stream);
  if (null > STDERR_FILENO) ::close(null);
}

bool keep_trying(std::chrono::milliseconds patience, std::chrono::milliseconds pause,
                 const std::function<bool()>& attempt) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!attempt()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

KeptProgram::KeptProgram(Process program, Descriptor out, Descriptor err, std::chrono::milliseconds held_patience)
    : process_(std::move(program)), out_(std::move(out)), err_(std::move(err)), held_patience_(held_patience) {
  process_.leave_alone();
}

void KeptProgram::poll(std::chrono::milliseconds patience, const OnOutput& on_output, int other) {
  const bool has_ended = ended_ != Clock::time_point();
  if (has_ended) patience = std::min<std::chrono::milliseconds>(patience, between_last_looks);
  pollfd ends[] = {{.fd = out_.get(), .events = POLLIN, .revents = 0},
                   {.fd = err_.get(), .events = POLLIN, .revents = 0},
                   {.fd = other, .events = POLLIN, .revents = 0},
                   {.fd = has_ended ? -1 : process_.handle(), .events = POLLIN, .revents = 0}};
  if (::poll(ends, std::size(ends), static_cast<int>(patience.count())) < 0) return;
  const bool has_out = ends[0].revents != 0 && read_from(out_, STDOUT_FILENO, on_output);
  const bool has_err = ends[1].revents != 0 && read_from(err_, STDERR_FILENO, on_output);
  is_quiet_ = !has_out && !has_err;
  if (!is_quiet_) last_output_ = Clock::now();
}

bool KeptProgram::read_from(Descriptor& end, int stream, const OnOutput& on_output) {
  char piece[64 * 1024];
  const ssize_t count = ::read(end.get(), piece, sizeof piece);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count <= 0) {  // a terminal whose program has exited gives EIO
    end.reset();
    return false;
  }
  on_output(stream, {piece, static_cast<std::size_t>(count)});
  return true;
}

bool KeptProgram::is_over() {
  if (!process_.has_ended()) return false;
  const auto now = Clock::now();
  if (ended_ == Clock::time_point()) {
    ended_ = last_output_ = now;
    is_quiet_ = false;  // that look may have been before its last output
  }
  if (!out_ && !err_) return true;
  return (is_quiet_ && now - last_output_ > quiet_at_end) || now - ended_ > held_patience_;
}

}  // namespace stepladder
