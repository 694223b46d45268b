// Keeps what the command line prints from steering the terminal: names, paths and logs are other people's text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// While it exists, everything written to std::cout and std::cerr passes through harmless() (app/text/format.h). One at
// a time, used by the threads that may write to these streams.
class TerminalGuard {
 public:
  TerminalGuard();
  ~TerminalGuard();
  TerminalGuard(const TerminalGuard&) = delete;
  TerminalGuard& operator=(const TerminalGuard&) = delete;

 private:
  class Filter;
  std::unique_ptr<Filter> out_, err_;
  friend void write_data(std::string_view bytes);
};

// Writes a file's content to standard output: unchanged, unless that is a terminal.
void write_data(std::string_view bytes);

// The same JSON, with control characters in its strings as \u.... (nlohmann/json does it below U+0020 only).
std::string harmless_json(std::string_view json);

// The lines of a program's output without its escape sequences; each redraw of a progress bar is a line.
std::vector<std::string> console_lines(std::string_view printed);

}  // namespace stepladder
