#include "app/record/git.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "storage/errors.h"

namespace stepladder {
namespace {

// Runs in git's process. Variables of a hook or an alias that called us would name another repository.
[[noreturn]] void execute_git(const std::filesystem::path& folder, const std::vector<std::string>& words, int out) {
  for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}) ::unsetenv(name);
  ::setenv("LC_ALL", "C", 1);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (::chdir(folder.c_str()) == 0) ::execvp("git", arguments.data());
  ::dprintf(STDOUT_FILENO, "git in %s cannot be started\n", folder.c_str());
  ::_exit(127);
}

}  // namespace

std::string git(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"git"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw StorageError("git cannot be started: no pipe");
  const pid_t child = ::fork();
  if (child == 0) execute_git(folder, words, ends[1]);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t count = 0; child > 0 && ((count = ::read(ends[0], piece.data(), piece.size())) > 0 || errno == EINTR);)
    if (count > 0) text.append(piece.data(), static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (status == 0) return text;
  throw StorageError("git " + (arguments.empty() ? "" : arguments.front()) + ": " +
                     (text.empty() ? "failed" : text.substr(text.rfind('\n') + 1)));
}

}  // namespace stepladder
