// Filters all text of std::cout and std::cerr, so that names and logs can't send escape sequences to the terminal. A
// character that is written in pieces waits until it is whole.
#include "app/text/terminal_text.h"

#include <unistd.h>

#include <iostream>
#include <streambuf>
#include <utility>

#include "app/text/format.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

constexpr char colour_mark = '\x1e';  // before a colour's letter; alone, it ends the colour

bool colour_is_shown = false;

// The text without control characters, its marks as the escape sequences of ECMA-48 or dropped.
std::string for_terminal(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find(colour_mark, at), text.size());
    shown += harmless(std::string(text.substr(at, mark - at)));
    if (mark == text.size()) break;
    const bool begins = mark + 1 < text.size() && text[mark + 1] >= '1' && text[mark + 1] <= '4';
    if (colour_is_shown) shown += begins ? std::string("\x1b[3") + text[mark + 1] + "m" : "\x1b[0m";
    at = mark + (begins || (mark + 1 < text.size() && text[mark + 1] == '0') ? 2 : 1);
  }
  return shown;
}

// Bytes at the end that may be the beginning of a character of which more follows.
std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

class TerminalGuard::Filter : public std::streambuf {
 public:
  explicit Filter(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(this)) {}
  ~Filter() override {
    if (!rest_.empty()) put(rest_);
    sync();
    stream_.rdbuf(target_);
  }
  std::streambuf& target() { return *target_; }
  void wrap_lines(WrapLine wrap) {
    stream_.unsetf(std::ios::unitbuf);  // it would end a line with each piece
    wrap_ = std::move(wrap);
  }
  void hold() { holds_ = true; }
  std::string take_held() {
    holds_ = false;
    return std::exchange(held_, {});
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    rest_.append(text, static_cast<std::size_t>(size));
    std::string whole = rest_.substr(0, rest_.size() - unfinished(rest_));
    rest_.erase(0, whole.size());
    return put(whole) ? size : 0;
  }
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  int sync() override {
    if (!line_.empty()) show(std::exchange(line_, {}));  // a question, which its answer ends
    return target_->pubsync();
  }

 private:
  bool put(const std::string& text) {
    if (!wrap_) return show(text);
    line_ += text;
    std::size_t begin = 0;
    bool shown = true;
    for (std::size_t end = 0; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
      shown = show(wrap_(line_.substr(begin, end - begin)) + (end == begin ? "\n" : "")) && shown;
    line_.erase(0, begin);
    return shown;
  }

  bool show(const std::string& text) {
    const std::string shown = for_terminal(text);
    if (holds_) {
      held_ += shown;
      return true;
    }
    return target_->sputn(shown.data(), std::ssize(shown)) == std::ssize(shown);
  }

  std::ostream& stream_;
  std::streambuf* target_;
  std::string rest_;  // of a character that was written in pieces
  std::string held_;
  bool holds_ = false;
  WrapLine wrap_;
  std::string line_;  // that hasn't ended, if lines are wrapped
};

TerminalGuard::TerminalGuard() : out_(std::make_unique<Filter>(std::cout)), err_(std::make_unique<Filter>(std::cerr)) {}
TerminalGuard::~TerminalGuard() = default;

void TerminalGuard::wrap_messages(WrapLine wrap) {
  err_->wrap_lines(std::move(wrap));
}

void show_colour(bool shows) {
  colour_is_shown = shows;
}

bool shows_colour() {
  return colour_is_shown;
}

std::string marked(const std::string& text, Colour colour) {
  return std::string{colour_mark, static_cast<char>(colour)} + text + colour_mark + "0";
}

void hold_output() {
  if (auto* const filter = TerminalGuard::output()) filter->hold();
}

std::string take_held_output() {
  auto* const filter = TerminalGuard::output();
  return filter ? filter->take_held() : "";
}

TerminalGuard::Filter* TerminalGuard::output() {
  return dynamic_cast<Filter*>(std::cout.rdbuf());
}

void write_data(std::string_view bytes) {
  auto* const filter = TerminalGuard::output();
  if (!filter || ::isatty(STDOUT_FILENO))
    std::cout << bytes;
  else if (filter->target().sputn(bytes.data(), std::ssize(bytes)) != std::ssize(bytes))
    std::cout.setstate(std::ios::badbit);
}

std::string harmless_json(std::string_view json) {
  std::string safe;
  while (!json.empty()) {
    const std::string_view character = json.substr(0, std::max<std::size_t>(utf8_length(json), 1));
    if (character == "\n" || !is_control(character)) {
      safe += character;
    } else {
      const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(character[i])); };
      const unsigned code = character.size() == 1   ? byte(0)
                            : character.size() == 2 ? (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F)
                                                    : (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
      safe += fmt::format("\\u{:04x}", code);
    }
    json.remove_prefix(character.size());
  }
  return safe;
}

std::vector<std::string> console_lines(std::string_view printed) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const char c = printed[i];
    if (c == '\x1b') {  // ECMA-48: ESC [ ... a letter
      if (i + 1 < printed.size() && printed[i + 1] == '[') {
        i += 2;
        while (i < printed.size() && !(printed[i] >= '@' && printed[i] <= '~')) ++i;
      }
    } else if (c == '\n' || c == '\r') {
      if (!line.empty()) lines.push_back(std::exchange(line, {}));
    } else if (static_cast<unsigned char>(c) >= ' ' || c == '\t') {
      line += c;
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace stepladder
