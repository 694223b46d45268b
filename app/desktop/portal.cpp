#include "app/desktop/portal.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

extern char** environ;

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds patience{1000};

const std::string bus_name = "org.freedesktop.portal.Desktop";
const std::string object = "/org/freedesktop/portal/desktop";
const std::string interface = "org.freedesktop.portal.Settings";
const std::string space = "org.freedesktop.appearance";
const std::string scheme_key = "color-scheme";

// Without a session bus, gdbus would start one.
bool session_bus_is_there() {
  if (const char* address = std::getenv("DBUS_SESSION_BUS_ADDRESS"); address && *address) return true;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  return runtime && *runtime && std::filesystem::exists(std::filesystem::path(runtime) / "bus", error);
}

// The output of a program; nullopt if it is missing, fails, or hasn't ended by `deadline` (it is then killed).
std::optional<std::string> output_of(const Words& command, Clock::time_point deadline) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const bool started = ::posix_spawnp(&pid, arguments[0], &files, nullptr, arguments.data(), environ) == 0;
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  std::string text;
  bool ended = false;
  while (started && !ended) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd end{.fd = ends[0], .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&end, 1, static_cast<int>(left)) == 0) break;
    char piece[512];
    const ssize_t count = ::read(ends[0], piece, sizeof piece);
    ended = count == 0;
    if (count > 0) text.append(piece, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  if (!started) return std::nullopt;
  if (!ended) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(text) : std::nullopt;
}

// "(<<uint32 1>>,)", "v v u 1", "... uint32 1": the last number; -1 if there isn't one.
int last_number(const std::string& text) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto digit = std::find_if(text.rbegin(), text.rend(), is_digit);
  return digit == text.rend() ? -1 : *digit - '0';
}

}  // namespace

std::optional<bool> portal_prefers_dark() {
  if (!session_bus_is_there()) return std::nullopt;
  const Clock::time_point deadline = Clock::now() + patience;
  for (const Words& command : {
           Words{"gdbus", "call", "--session", "--dest", bus_name, "--object-path", object, "--method",
                 interface + ".Read", space, scheme_key},
           Words{"busctl", "--user", "call", bus_name, object, interface, "Read", "ss", space, scheme_key},
           Words{"dbus-send", "--session", "--print-reply", "--dest=" + bus_name, object, interface + ".Read",
                 "string:" + space, "string:" + scheme_key},
       }) {
    const auto said = output_of(command, deadline);
    if (!said) continue;
    // 0: no preference, 1: dark, 2: light; the portal's specification treats any other as 0.
    const int scheme = last_number(*said);
    return scheme == 1 || scheme == 2 ? std::optional(scheme == 1) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stepladder
