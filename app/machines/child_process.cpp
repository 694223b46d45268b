#include "app/machines/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "app/format.h"

extern char** environ;

namespace stepladder {
namespace {

constexpr std::size_t most_at_once = 1 << 20;
constexpr std::size_t kept_errors = 8 << 10;

struct Pipe {
  int ours = -1, theirs = -1;
};

Pipe opened(int result, const int (&ends)[2]) {
  if (result != 0) throw std::runtime_error(std::string("no pipe can be opened: ") + std::strerror(errno));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

Pipe pipe_to_read() {
  int ends[2];
  return opened(::pipe2(ends, O_CLOEXEC), ends);
}

// A socket can be written to without SIGPIPE when the child has closed it.
Pipe pipe_to_write() {
  int ends[2];
  return opened(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ends);
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// Ours, without what `more` sets anew ("NAME=VALUE") or removes ("NAME").
std::vector<char*> environment_with(const std::vector<std::string>& more) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable; ++variable) {
    const auto replaces = [&](const std::string& other) { return name_of(*variable) == name_of(other); };
    if (std::none_of(more.begin(), more.end(), replaces)) variables.push_back(*variable);
  }
  for (const std::string& variable : more)
    if (variable.find('=') != std::string::npos) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  return variables;
}

void close(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, bool has_terminal,
                           const std::vector<std::string>& more_environment) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment = environment_with(more_environment);
  const Pipe in = pipe_to_write(), out = pipe_to_read(), err = pipe_to_read();
  in_ = in.ours, out_ = out.ours, err_ = err.ours;
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in.theirs, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out.theirs, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err.theirs, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A session has no terminal, so a program that may ask on ours is only a process group of its own.
  const int apart = has_terminal ? 0 : POSIX_SPAWN_SETSID;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(apart | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  const int error = ::posix_spawnp(&pid_, arguments[0], &files, &attributes, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  for (const int theirs : {in.theirs, out.theirs, err.theirs}) ::close(theirs);
  if (error == 0) return;
  for (int* ours : {&in_, &out_, &err_}) close(*ours);
  throw std::runtime_error(command.front() + " cannot be started: " + std::strerror(error));
}

ChildProcess::~ChildProcess() {
  for (int* ours : {&in_, &out_, &err_}) close(*ours);
  if (ended_) return;
  ::kill(pid_, SIGTERM);
  for (int tries = 0; tries < 50; ++tries) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ChildProcess::close_input() {
  closes_input_ = true;
  write_some();
}

void ChildProcess::write_some() {
  while (in_ >= 0 && written_ < to_write_.size()) {
    const ssize_t count = ::send(in_, to_write_.data() + written_, to_write_.size() - written_, MSG_NOSIGNAL);
    if (count > 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      if (errno != EAGAIN) close(in_);
      break;
    }
  }
  if (written_ > most_at_once || written_ == to_write_.size()) {
    to_write_.erase(0, written_);
    written_ = 0;
  }
  if (closes_input_ && to_write_.empty()) close(in_);
}

// Returns whether there was any.
bool ChildProcess::read_from(int& descriptor, std::string& into) {
  if (descriptor < 0) return false;
  char piece[64 << 10];
  const ssize_t count = ::read(descriptor, piece, sizeof piece);
  if (count > 0) into.append(piece, static_cast<std::size_t>(count));
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close(descriptor);
  return count > 0;
}

void ChildProcess::turn(std::string& read) {
  write_some();
  while (read.size() < most_at_once && read_from(out_, read)) {
  }
  while (read_from(err_, errors_))
    if (errors_.size() > kept_errors) errors_.erase(0, errors_.size() - kept_errors);
  if (ended_ || out_ >= 0) return;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return;
  ended_ = true;
  while (read_from(err_, errors_)) {
  }
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void ChildProcess::add_to(std::vector<pollfd>& waiting) const {
  if (in_ >= 0 && unwritten() > 0) waiting.push_back({.fd = in_, .events = POLLOUT, .revents = 0});
  if (out_ >= 0) waiting.push_back({.fd = out_, .events = POLLIN, .revents = 0});
  if (err_ >= 0) waiting.push_back({.fd = err_, .events = POLLIN, .revents = 0});
}

std::string output_of(const std::vector<std::string>& command, const std::string& input,
                      const std::vector<std::string>& more_environment, bool has_terminal,
                      std::chrono::seconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  ChildProcess child(command, has_terminal, more_environment);
  child.write(input);
  child.close_input();
  std::string output, piece;
  while (!child.has_ended()) {
    piece.clear();
    child.turn(piece);
    output += piece;
    std::vector<pollfd> waiting;
    child.add_to(waiting);
    if (piece.empty()) ::poll(waiting.data(), waiting.size(), 20);
    if (std::chrono::steady_clock::now() > give_up)
      throw std::runtime_error(command.front() + " has not answered for " + std::to_string(patience.count()) + " s");
  }
  if (child.exit_status() == 0) return output;
  std::string errors = child.errors();
  while (errors.ends_with('\n')) errors.pop_back();
  if (errors.empty()) errors = "ended with status " + std::to_string(child.exit_status());
  throw std::runtime_error(command.front() + ": " + harmless(errors));
}

}  // namespace stepladder
