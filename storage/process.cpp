// Starts programs for app, engine and the far program. The new process shares this one's memory until the program runs
// (vfork), so that a process with gigabytes of tensors needn't copy its page tables; whatever allocates therefore
// happens before, in Prepared.
#include "storage/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
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

constexpr int last_signal = 64;
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
    if (std::none_of(changes.begin(), changes.end(), replaces)) variables.emplace_back(*variable);
  }
  for (const std::string& change : changes)
    if (change.find('=') != std::string::npos) variables.push_back(change);
  return variables;
}

// The files that may be the program, as execvp(3) tries them: in the PATH of the program's own environment.
std::vector<std::string> files_of(const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return {program};
  std::string path = "/usr/local/bin:/bin:/usr/bin";
  for (const std::string& variable : environment)
    if (name_of(variable) == "PATH") path = variable.substr(std::string_view("PATH=").size());
  std::vector<std::string> files;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    files.push_back((begin == end ? "." : path.substr(begin, end - begin)) + "/" + program);
    begin = end + 1;
  }
  return files;
}

struct Failure {
  int error = 0;
  bool is_of_folder = false;
};

// What the new process needs, so that it allocates nothing.
struct Prepared {
  explicit Prepared(const Launch& wanted)
      : launch(wanted),
        words(wanted.command),
        variables(environment_with(wanted.environment)),
        files(files_of(wanted.program.empty() ? wanted.command.at(0) : wanted.program, variables)),
        arguments(pointers_to(words)),
        environment(pointers_to(variables)),
        script_arguments(arguments) {
    script_arguments.insert(script_arguments.begin(), const_cast<char*>("/bin/sh"));
    for (int signal = 1; signal <= last_signal; ++signal)
      if (std::find(launch.ignored_signals.begin(), launch.ignored_signals.end(), signal) ==
          launch.ignored_signals.end())
        default_signals.push_back(signal);
  }

  const Launch& launch;
  std::vector<std::string> words, variables, files;
  std::vector<char*> arguments, environment;
  std::vector<char*> script_arguments;  // of a shell, for a script without #!
  std::vector<int> default_signals;
  Pipe failure;
};

// Puts each stream at its place. They are copied above all places first, so that none is overwritten by another.
void place_streams(const Launch& launch) {
  const int wanted[] = {launch.input, launch.output, launch.errors, launch.fourth};
  int copies[] = {Launch::inherited, Launch::inherited, Launch::inherited, Launch::inherited};
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; stream <= fourth_stream; ++stream) {
    const bool is_null = wanted[stream] == Launch::nothing && stream != fourth_stream;
    if (wanted[stream] >= 0 || is_null)
      copies[stream] = ::fcntl(is_null ? null : wanted[stream], F_DUPFD_CLOEXEC, fourth_stream + 1);
  }
  for (int stream = 0; stream <= fourth_stream; ++stream)
    if (copies[stream] >= 0) ::dup2(copies[stream], stream);
}

void close_between(unsigned first, unsigned last) {
  if (first > last) return;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, last, 0u) == 0) return;
#endif
  last = std::min({last, static_cast<unsigned>(::sysconf(_SC_OPEN_MAX)), 65'536u});
  for (unsigned descriptor = first; descriptor <= last; ++descriptor) ::close(static_cast<int>(descriptor));
}

// Returns why none of the files could be executed.
int execute_program(Prepared& prepared) {
  int error = ENOENT;
  for (std::string& file : prepared.files) {
    ::execve(file.c_str(), prepared.arguments.data(), prepared.environment.data());
    if (errno == ENOEXEC) {
      prepared.script_arguments[1] = file.data();
      ::execve("/bin/sh", prepared.script_arguments.data(), prepared.environment.data());
    }
    if (errno == EACCES) error = EACCES;
    if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return errno;
  }
  return error;
}

// Runs in the new process: only what is safe in a signal handler, since other threads may hold any lock.
[[noreturn]] void become(Prepared& prepared) {
  const Launch& launch = prepared.launch;
  if (launch.group == Launch::Group::own) ::setpgid(0, 0);
  if (launch.group == Launch::Group::session) ::setsid();
  for (const int signal : prepared.default_signals) ::signal(signal, SIG_DFL);
  if (launch.dies_with_us) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int answer = prepared.failure.write.get();
  place_streams(launch);
  if (launch.fourth >= 0) {
    close_between(fourth_stream + 1, static_cast<unsigned>(answer) - 1);
    close_between(static_cast<unsigned>(answer) + 1, ~0u);
  }
  Failure failure;
  failure.is_of_folder = !launch.folder.empty() && ::chdir(launch.folder.c_str()) != 0;
  failure.error = errno;
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!failure.is_of_folder) failure.error = execute_program(prepared);
  [[maybe_unused]] const ssize_t written = ::write(answer, &failure, sizeof failure);
  ::_exit(127);
}

// A function of its own: nothing of its caller is in registers that the new process changes.
[[gnu::noinline]] pid_t start(Prepared& prepared) {
  const pid_t pid = ::vfork();
  if (pid == 0) become(prepared);
  return pid;
}

}  // namespace

Process::Process(const Launch& launch) {
  Prepared prepared(launch);
  // No handler of ours may run in the new process while it shares our memory.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = start(prepared);
  Failure failure{.error = errno};
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  prepared.failure.write.reset();
  const auto starting = [&](int error, bool is_of_folder = false) {
    return std::system_error(
        error, std::generic_category(),
        is_of_folder ? launch.folder + " cannot be entered" : "'" + launch.command.front() + "' cannot be started");
  };
  if (pid_ < 0) throw starting(failure.error);
  ssize_t count = 0;
  while ((count = ::read(prepared.failure.read.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (count == static_cast<ssize_t>(sizeof failure)) {
    reap(0);
    throw starting(failure.error, failure.is_of_folder);
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

void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    if (descriptor < static_cast<int>(first)) continue;
    close_between(first, static_cast<unsigned>(descriptor) - 1);
    first = static_cast<unsigned>(descriptor) + 1;
  }
  close_between(first, ~0u);
}

std::vector<int> ignored_signals() {
  std::vector<int> ignored;
  for (int signal = 1; signal <= last_signal; ++signal) {
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
