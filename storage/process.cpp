// Starts programs for app, engine and the far program by posix_spawn(3), which doesn't copy the page tables of a
// process with gigabytes of tensors and is safe beside other threads.
#include "storage/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

extern char** environ;

namespace stepladder {
namespace {

constexpr int fourth_stream = STDERR_FILENO + 1;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Our variables with the changes.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    const auto replaces = [&](const std::string& other) { return name_of(*variable) == name_of(other); };
    if (std::ranges::none_of(changes, replaces)) variables.emplace_back(*variable);
  }
  for (const std::string& change : changes)
    if (change.find('=') != std::string::npos) variables.push_back(change);
  return variables;
}

// The file of a program, found as execvp(3) does on the PATH that the program will have; its name if there is none.
std::string file_of(const std::string& program, const std::vector<std::string>& variables) {
  if (program.empty() || program.find('/') != std::string::npos) return program;
  std::string_view rest = "/bin:/usr/bin";
  for (const std::string& variable : variables)
    if (name_of(variable) == "PATH") rest = std::string_view(variable).substr(5);
  while (true) {
    const std::size_t end = rest.find(':');
    std::string file(rest.substr(0, end));
    file += (file.empty() ? "./" : "/") + program;
    struct stat about = {};
    if (::stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
    if (end == std::string_view::npos) return program;
    rest.remove_prefix(end + 1);
  }
}

// How posix_spawn(3) is to prepare the new process.
class Attributes {
 public:
  // Throws std::system_error without descriptors for the streams.
  explicit Attributes(const Launch& launch)
      : input_(above_streams(launch.input)),
        output_(above_streams(launch.output)),
        errors_(above_streams(launch.errors)),
        fourth_(above_streams(launch.fourth)) {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    for (const int signal : launch.ignored_signals) sigdelset(&defaults, signal);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (launch.group == Launch::Group::own) flags |= POSIX_SPAWN_SETPGROUP;
    if (launch.group == Launch::Group::session) flags |= POSIX_SPAWN_SETSID;
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
    ::posix_spawn_file_actions_init(&files_);
    if (!launch.folder.empty()) ::posix_spawn_file_actions_addchdir_np(&files_, launch.folder.c_str());
    place(launch.input, input_, STDIN_FILENO);
    place(launch.output, output_, STDOUT_FILENO);
    place(launch.errors, errors_, STDERR_FILENO);
    if (launch.fourth == Launch::nothing) return;
    place(launch.fourth, fourth_, fourth_stream);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, fourth_stream + 1);
  }
  ~Attributes() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  int spawn(pid_t& pid, const std::string& program, std::vector<std::string> words,
            std::vector<std::string> variables) {
    return ::posix_spawnp(&pid, program.c_str(), &files_, &attributes_, pointers_to(words).data(),
                          pointers_to(variables).data());
  }

 private:
  // A copy above all places, so that no stream overwrites the source of another.
  static Descriptor above_streams(int descriptor) {
    if (descriptor < 0) return Descriptor();
    Descriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, fourth_stream + 1));
    if (!copy) throw std::system_error(errno, std::generic_category(), "a program's streams cannot be opened");
    return copy;
  }
  void place(int descriptor, const Descriptor& copy, int stream) {
    if (descriptor == Launch::nothing)
      ::posix_spawn_file_actions_addopen(&files_, stream, "/dev/null", O_RDWR, 0);
    else if (descriptor >= 0)
      ::posix_spawn_file_actions_adddup2(&files_, copy.get(), stream);
  }

  const Descriptor input_, output_, errors_, fourth_;
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t files_;
};

}  // namespace

Process::Process(const Launch& launch) {
  Attributes attributes(launch);
  const std::vector<std::string> variables = environment_with(launch.environment);
  const std::string& name = launch.program.empty() ? launch.command.at(0) : launch.program;
  // posix_spawnp looks on our PATH, which is not always the program's.
  const bool has_own_path =
      std::ranges::any_of(launch.environment, [](const std::string& change) { return name_of(change) == "PATH"; });
  const std::string program = has_own_path ? file_of(name, variables) : name;
  int error = attributes.spawn(pid_, program, launch.command, variables);
  if (error == ENOEXEC) {  // a script without #!
    std::vector<std::string> words = launch.command;
    words.front() = file_of(name, variables);
    words.insert(words.begin(), "/bin/sh");
    error = attributes.spawn(pid_, words.front(), words, variables);
  }
  if (error != 0) {
    struct stat about = {};
    const char* const folder = launch.folder.c_str();
    const bool is_of_folder = !launch.folder.empty() &&
                              (::access(folder, X_OK) != 0 || ::stat(folder, &about) != 0 || !S_ISDIR(about.st_mode));
    throw std::system_error(
        error, std::generic_category(),
        is_of_folder ? launch.folder + " cannot be entered" : "'" + launch.command.front() + "' cannot be started");
  }
#ifdef SYS_pidfd_open
  end_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
#endif
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      end_(std::move(other.end_)),
      status_(other.status_),
      has_ended_(std::exchange(other.has_ended_, true)),
      is_left_(other.is_left_) {}

Process::~Process() {
  if (is_left_ || has_ended_) return;
  kill(SIGKILL);
  wait();
}

bool Process::reap(int options) {
  if (has_ended_) return true;
  int status = 0;
  pid_t found = 0;
  while ((found = ::waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
  }
  has_ended_ = found != 0;  // an error: somebody else has waited for it
  if (found == pid_) status_ = status;
  return has_ended_;
}

bool Process::has_ended() {
  return reap(WNOHANG);
}

void Process::wait() {
  reap(0);
}

bool Process::wait(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds without_handle(10);
  const auto deadline = Clock::now() + patience;
  while (!has_ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd end{.fd = end_.get(), .events = POLLIN, .revents = 0};
    ::poll(&end, 1, static_cast<int>((end_ ? left : std::min(left, without_handle)).count()));
  }
  return true;
}

void Process::end() {
  kill(SIGTERM);
  if (wait(std::chrono::milliseconds(500))) return;
  kill(SIGKILL);
  wait();
}

void Process::kill(int signal) {
  if (!has_ended_) ::kill(pid_, signal);
}

void Process::kill_group(int signal) {
  if (!has_ended_) ::kill(-pid_, signal);
}

int Process::exit_status() const {
  return exit_status_of(status_);
}

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void close_all_but(const std::vector<int>& kept) {
  constexpr std::size_t most = 1 << 20;
  for (const std::string& name : names_in(open_folder("/proc/self/fd").get(), most)) {
    const int descriptor = std::atoi(name.c_str());
    if (descriptor > STDERR_FILENO && std::ranges::find(kept, descriptor) == kept.end()) ::close(descriptor);
  }
}

std::vector<int> ignored_signals() {
  std::vector<int> ignored;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) ignored.push_back(signal);
  }
  return ignored;
}

Pipe::Pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "no pipe can be opened");
  for (int& end : ends) {
    if (end > fourth_stream) continue;
    const int higher = ::fcntl(end, F_DUPFD_CLOEXEC, fourth_stream + 1);
    ::close(end);
    end = higher;
  }
  read = Descriptor(ends[0]);
  write = Descriptor(ends[1]);
}

}  // namespace stepladder
