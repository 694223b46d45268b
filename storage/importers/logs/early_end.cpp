// Knows a program's end by what Python, shells, kernels and Slurm print. Words of these kinds in prose don't count:
// each begins its line, behind the mark of a process ("[rank0]: ") at most.
#include "storage/importers/logs/early_end.h"

#include <algorithm>
#include <array>

#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_reason = 200;
constexpr std::string_view traceback = "Traceback (most recent call last)";

bool has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

// Without "[rank0]: ", "[1,0]<stderr>: ", "3: " in front.
std::string_view without_process(std::string_view line) {
  if (line.starts_with('[')) {
    const std::size_t close = line.find("]: ");
    const std::size_t stream = line.find(">: ");
    if (const std::size_t end = std::min(close, stream); end < 24) return line.substr(end + 3);
  }
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if (digits > 0 && digits < 5 && line.substr(digits).starts_with(": ")) return line.substr(digits + 2);
  return line;
}

// "torch.cuda.OutOfMemoryError: CUDA out of memory", "KeyboardInterrupt": the exception's name, or nothing.
std::string_view exception_of(std::string_view text) {
  const std::size_t end = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, end);
  if (name.empty() || !is_alpha(name.front()) ||
      !std::ranges::all_of(name, [](char c) { return is_word(c) || c == '.'; }))
    return {};
  for (const std::string_view ending : {"Error", "Exception", "Interrupt", "Exit", "Failure", "Iteration"})
    if (name.ends_with(ending)) return name;
  return {};
}

// "Killed", and a shell's "train.sh: line 3: 1234 Killed   python train.py".
bool says_killed(std::string_view text) {
  if (text == "Killed" || text.starts_with("Killed  ") || text.starts_with("Killed (") || text == "Terminated")
    return true;
  return has(text, ": line ") && (has(text, " Killed ") || has(text, " Terminated ") || text.ends_with(" Killed"));
}

bool says_crashed(std::string_view text) {
  static constexpr std::array starts{"Segmentation fault",
                                     "Bus error",
                                     "Aborted (",
                                     "Fatal Python error",
                                     "Floating point exception",
                                     "CUDA error",
                                     "CUDA out of memory",
                                     "[CUDA ERROR]",
                                     "terminate called after throwing"};
  if (std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); })) return true;
  return has(text, "(core dumped)") || (has(text, ": line ") && has(text, " Segmentation fault"));
}

// Empty if the line says nothing of an end.
std::optional<RunStatus> status_of(std::string_view text) {
  if (text.starts_with("slurmstepd: error:") || text.starts_with("srun: error:")) {
    if (has(text, "CANCELLED") || has(text, "TIME LIMIT") || has(text, "PREEMPTION")) return RunStatus::interrupted;
    if (has(text, "oom") || has(text, "Exited with exit code") || has(text, "memory limit") || has(text, "Killed") ||
        has(text, "Segmentation fault") || has(text, "Aborted"))
      return RunStatus::failed;
    return std::nullopt;
  }
  if (text == "^C" || says_killed(text)) return RunStatus::interrupted;
  if (says_crashed(text)) return RunStatus::failed;
  const std::string_view name = exception_of(text);
  if (name.ends_with("KeyboardInterrupt")) return RunStatus::interrupted;
  if (name.ends_with("OutOfMemoryError") || name.ends_with("ChildFailedError") ||
      (!name.empty() && has(text, "out of memory")))
    return RunStatus::failed;
  return std::nullopt;
}

}  // namespace

void EarlyEnd::read(std::string_view line, std::int64_t number) {
  line = without_process(line);
  const std::string_view text = trimmed(line, " \t\r");
  if (text.empty()) return;
  if (const std::size_t at = text.find(traceback); at != std::string_view::npos) {
    in_traceback_ = true;
    if (!found_) found_ = {RunStatus::failed, std::string(traceback), number};
    return;
  }
  if (in_traceback_ && (is_space(line.front()) || text.front() == '|')) return;  // a frame
  if (in_traceback_ && !exception_of(text).empty()) {
    in_traceback_ = false;
    const bool by_a_user = exception_of(text).ends_with("KeyboardInterrupt");
    found_ = {by_a_user ? RunStatus::interrupted : RunStatus::failed, shortened(text, longest_reason), number};
    return;
  }
  const auto status = status_of(text);
  if (!status || (found_ && *status == RunStatus::failed)) return;  // the first cause, unless a scheduler ended it
  found_ = {*status, shortened(text, longest_reason), number};
}

}  // namespace stepladder
