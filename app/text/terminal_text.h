// Keeps what the command line prints from steering the terminal: names, paths and logs are other people's text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

using WrapLine = std::function<std::string(const std::string& line)>;  // its lines, each with its end

// While it exists, everything written to std::cout and std::cerr passes through harmless() (app/text/format.h). One at
// a time, used by the threads that may write to these streams.
class TerminalGuard {
 public:
  TerminalGuard();
  ~TerminalGuard();
  TerminalGuard(const TerminalGuard&) = delete;
  TerminalGuard& operator=(const TerminalGuard&) = delete;
  // Of std::cerr. A line is shown once it has ended, or is flushed.
  void wrap_messages(WrapLine wrap);

 private:
  class Filter;
  static Filter* output();  // of std::cout; null if there is no guard
  std::unique_ptr<Filter> out_, err_;
  friend void write_data(std::string_view bytes);
  friend void hold_output();
  friend std::string take_held_output();
};

// Colour of text of ours, on standard output. A mark that other people's text happens to hold colours at most a line.
enum class Colour : char { red = '1', green = '2', yellow = '3', blue = '4' };
void show_colour(bool shows);  // whether marks become colour; until called, they are dropped
bool shows_colour();
std::string marked(const std::string& text, Colour colour);

// From now on, keeps what is written to std::cout instead of writing it; the second call gives it back, ready to be
// shown, and ends that. For a pager, which is needed only if it is long.
void hold_output();
std::string take_held_output();

// Writes a file's content to standard output: unchanged, unless that is a terminal.
void write_data(std::string_view bytes);

// The same JSON, with control characters in its strings as \u.... (nlohmann/json does it below U+0020 only).
std::string harmless_json(std::string_view json);

// The lines of a program's output without its escape sequences; each redraw of a progress bar is a line.
std::vector<std::string> console_lines(std::string_view printed);

}  // namespace stepladder
