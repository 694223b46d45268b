// The handler calls only what is safe in a signal handler: everything that allocates happens in report_crashes().
// backtrace() loads libgcc at its first call, so that call is made there too.
#include "app/host/crash_report.h"

#include <execinfo.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <string_view>
#include <utility>

#include "storage/user_folders.h"

namespace stepladder {
namespace {
namespace fs = std::filesystem;

struct Report {
  std::array<char, 4096> file{}, folder{}, above{};  // the folder above it may be missing too, as ~/.config
  std::array<char, 256> version{}, exception{};
} report;

std::atomic<bool> is_reported = false;

template <std::size_t size>
void keep(std::array<char, size>& place, std::string_view text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(place.data(), text.data(), length);
  place[length] = 0;
}

void put(int file, std::string_view text) {
  [[maybe_unused]] const auto written = ::write(file, text.data(), text.size());
}

void put(int file, std::uint64_t number) {
  std::array<char, 20> digits;
  std::size_t first = digits.size();
  do digits[--first] = static_cast<char>('0' + number % 10);
  while (number /= 10);
  put(file, std::string_view(digits.data() + first, digits.size() - first));
}

std::string_view name_of(int signal) {
  constexpr std::pair<int, std::string_view> names[] = {{SIGSEGV, "SIGSEGV (invalid memory)"},
                                                        {SIGBUS, "SIGBUS (invalid memory)"},
                                                        {SIGABRT, "SIGABRT (gave up)"},
                                                        {SIGFPE, "SIGFPE (invalid arithmetic)"},
                                                        {SIGILL, "SIGILL (invalid instruction)"}};
  for (const auto& [known, name] : names)
    if (known == signal) return name;
  return "signal";
}

void write_report(int signal) {
  ::mkdir(report.above.data(), 0700);
  ::mkdir(report.folder.data(), 0700);
  const int file = ::open(report.file.data(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  put(file, report.version.data());
  put(file, "\nprocess ");
  put(file, static_cast<std::uint64_t>(::getpid()));
  put(file, " ended at ");
  put(file, static_cast<std::uint64_t>(std::time(nullptr)));
  put(file, " (Unix time) by ");
  put(file, name_of(signal));
  if (report.exception[0]) put(file, "\nuncaught: ");
  put(file, report.exception.data());
  put(file, "\nstack, innermost call first; `addr2line -Cfe FILE OFFSET` names a line's place:\n");
  std::array<void*, 64> calls;
  ::backtrace_symbols_fd(calls.data(), ::backtrace(calls.data(), static_cast<int>(calls.size())), file);
  ::close(file);
}

// The handler is gone by now (SA_RESETHAND), so the signal ends the process as it would have without us.
void on_crash(int signal) {
  if (!is_reported.exchange(true)) write_report(signal);
  ::raise(signal);
}

void on_terminate() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    keep(report.exception, error.what());
  } catch (...) {
    keep(report.exception, "an exception of an unknown type");
  }
  std::abort();
}

}  // namespace

fs::path crash_file() {
  return user_folder("XDG_CONFIG_HOME", ".config") / "stepladder" / "crash.txt";
}

void report_crashes(const std::string& version) {
  const std::string file = crash_file().string();
  if (file.size() >= report.file.size()) return;
  keep(report.file, file);
  keep(report.folder, crash_file().parent_path().string());
  keep(report.above, crash_file().parent_path().parent_path().string());
  keep(report.version, version);
  std::array<void*, 1> first;
  ::backtrace(first.data(), 1);
  static std::array<char, 1 << 16> stack;
  const stack_t alternative{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::sigaction(signal, &action, nullptr);
  std::set_terminate(on_terminate);
}

std::optional<fs::path> take_crash_report() {
  const fs::path file = crash_file();
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::array<char, 32> date{};
  std::tm local{};
  ::localtime_r(&status.st_mtime, &local);
  std::strftime(date.data(), date.size(), "crash-%Y%m%d-%H%M%S.txt", &local);
  const fs::path reported = file.parent_path() / date.data();
  std::error_code error;
  fs::rename(file, reported, error);
  if (error) return std::nullopt;  // another window has reported it
  return reported;
}

std::optional<fs::path> newest_crash_report() {
  std::error_code error;
  if (fs::exists(crash_file(), error)) return crash_file();
  std::optional<fs::path> newest;
  for (fs::directory_iterator entry(crash_file().parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("crash-") && name.ends_with(".txt") && (!newest || entry->path() > *newest))
      newest = entry->path();
  }
  return newest;
}

}  // namespace stepladder
