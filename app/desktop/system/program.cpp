#include "app/desktop/system/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

extern char** environ;

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

// The output of a program, as a nameless file: one that outlives this program may go on writing.
class OutputFile {
 public:
  OutputFile() : file_(std::tmpfile()) {
    if (file_) ::fcntl(descriptor(), F_SETFD, FD_CLOEXEC);
  }
  ~OutputFile() {
    if (file_) std::fclose(file_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  bool is_open() const { return file_ != nullptr; }
  int descriptor() const { return ::fileno(file_); }
  std::string text() const {
    std::string all;
    char piece[4096];
    while (true) {
      const ssize_t count = ::pread(descriptor(), piece, sizeof piece, static_cast<off_t>(all.size()));
      if (count <= 0 || all.size() > longest_output) return all;
      all.append(piece, static_cast<std::size_t>(count));
    }
  }

 private:
  static constexpr std::size_t longest_output = 1 << 20;
  std::FILE* file_;
};

bool wait_for(pid_t pid, int options, ProgramEnd& end) {
  int status = 0;
  pid_t found = 0;
  while ((found = ::waitpid(pid, &status, options)) < 0 && errno == EINTR) {
  }
  if (found != pid) return false;
  end.ended = true;
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return true;
}

pid_t start(const std::vector<std::string>& command, const OutputFile& out, const OutputFile& err) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err.descriptor(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;  // the window blocks the signals that end it
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const bool started = ::posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environ) == 0;
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return started ? pid : 0;
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& command, Clock::time_point deadline, Afterwards afterwards,
                       const std::function<bool()>& cancelled) {
  ProgramEnd end;
  OutputFile out, err;
  if (!out.is_open() || !err.is_open()) return end;
  const pid_t pid = start(command, out, err);
  end.started = pid > 0;
  if (!end.started) return end;
  while (!wait_for(pid, WNOHANG, end) && Clock::now() < deadline && !(cancelled && cancelled()))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (end.ended) {
    end.output = out.text();
    end.errors = err.text();
    return end;
  }
  if (afterwards == Afterwards::kill) {
    ::kill(-pid, SIGKILL);
    ProgramEnd ignored;
    wait_for(pid, 0, ignored);
  } else {
    std::thread([pid] {
      ProgramEnd ignored;
      wait_for(pid, 0, ignored);
    }).detach();
  }
  return end;
}

bool session_bus_is_there() {
  if (const char* address = std::getenv("DBUS_SESSION_BUS_ADDRESS"); address && *address) return true;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  return runtime && *runtime && std::filesystem::exists(std::filesystem::path(runtime) / "bus", error);
}

}  // namespace stepladder
