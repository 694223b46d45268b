// Turns raw lines into items for StepLog. Order of attempts: known layout, joined record, list, bars, fence, literal of
// a script, step, table header, words. The items of one raw line share its number, and their memory is reused.
#include "storage/importers/logs/lines/log_lines.h"

#include <utility>

#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr int longest_literal = 1000;  // lines

}  // namespace

void LogLines::finish() {
  reader_.finish();
  finished_ = true;
}

const LogLine* LogLines::next() {
  while (ready_.given == ready_.filled) {
    ready_.given = ready_.filled = 0;
    std::string_view line;
    if (reader_.next(line)) {
      number_ = reader_.number();
      take(line);
    } else {
      if (!finished_ || std::exchange(ended_, true)) return nullptr;
      joiner_.end();
      if (joiner_.ready()) take_joined();
    }
  }
  return &ready_.lines[ready_.given++];
}

LogLine& LogLines::push(LogLine::Kind kind, std::string_view text) {
  if (ready_.filled == ready_.lines.size()) ready_.lines.emplace_back();
  LogLine& line = ready_.lines[ready_.filled++];
  line.kind = kind;
  line.place = place_;
  line.joined = false;
  line.text = text;
  line.number = number_;
  line.at = missing;
  return line;
}

void LogLines::take(std::string_view line) {
  if (place_ == LogLine::Place::code) return take_line(line);
  if (joiner_.idle() && layouts_.read(line, ready_.lines.front().step)) {  // nothing else is ready
    push(LogLine::Kind::step, line).at = stamp_.read(line);
    return;
  }
  const bool taken = joiner_.take(line);
  if (joiner_.ready()) take_joined();
  if (taken) {
    push(LogLine::Kind::part, line);
    return;
  }
  const bool history = line.starts_with("{") && line.find("\"log_history\"") != std::string_view::npos;
  if (history || line.starts_with("[{"))
    take_list(line, history ? 2 : 1);
  else
    take_bars(line);
}

// A list of records on one line: the objects of this depth, each as if it had a line of its own.
void LogLines::take_list(std::string_view line, int wanted) {
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '{' && ++depth == wanted) start = at;
    if (line[at] == '}' && depth > 0 && depth-- == wanted) take_line(line.substr(start, at + 1 - start));
  }
}

// Cuts apart bars that were redrawn without a line end between them, and a dictionary behind one.
void LogLines::take_bars(std::string_view line) {
  while (true) {
    const std::size_t bar = line.find("%|");
    if (bar == std::string_view::npos) break;
    std::size_t cut = line.find("{'", bar);
    if (const std::size_t next = line.find("%|", bar + 2); next < cut) {
      const std::size_t bracket = line.rfind(']', next);
      cut = bracket == std::string_view::npos || bracket < bar ? std::string_view::npos : bracket + 1;
    }
    if (cut == std::string_view::npos) break;
    take_line(line.substr(0, cut));
    line.remove_prefix(cut);
  }
  take_line(line);
}

// Takes a step over several lines, or words that looked like the first line of one.
void LogLines::take_joined() {
  const bool bare = block_number_ > 0 && joiner_.bare_block();
  joined_ = joiner_.take_joined();
  const std::int64_t number = std::exchange(number_, block_number_ > 0 ? block_number_ : number_);
  if (bare) {
    push(LogLine::Kind::words, joined_).joined = true;
  } else {
    const StepLine line = read_step_line(joined_).line;
    if (line.has_step() || line.batch >= 0 || !is_missing(line.epoch)) take_step(joined_);
  }
  block_number_ = 0;
  number_ = number;
}

void LogLines::take_line(std::string_view line) {
  if (take_fence(line)) return;
  const bool literal = in_literal(line);
  const bool code = place_ == LogLine::Place::code;
  if (!code && !literal && may_say_step(line) && take_step(line)) return;
  push(!code && joiner_.open_table(line) ? LogLine::Kind::table_header : LogLine::Kind::words, line);
}

// "history = [" of a script: the braces after it hold its data rather than a program's output.
bool LogLines::in_literal(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.empty()) return literal_left_ > 0;
  const char last = text.back(), first = text.front();
  if (text.size() > 3 && (last == '[' || last == '(' || last == '{') && first != '"')
    literal_left_ = longest_literal;
  else if (literal_left_ > 0 && (first == ']' || first == ')' || first == '}' || --literal_left_ == 0))
    literal_left_ = 0;
  return literal_left_ > 0 && (first == '{' || first == '[' || first == '(' || first == '"' || first == '\'');
}

// Takes ```, which opens or closes a block of a document; one that names a language holds code.
bool LogLines::take_fence(std::string_view line) {
  if (line.size() < 3 || line.size() > 80) return false;
  const std::string_view text = trimmed(line);
  if (!text.starts_with("```")) return false;
  const std::string_view language = trimmed(text.substr(3));
  if (place_ != LogLine::Place::outside)
    place_ = LogLine::Place::outside;
  else if (language.empty() || one_of(language, {"text", "log", "console", "output", "txt", "bash"}))
    place_ = LogLine::Place::fenced;
  else
    place_ = LogLine::Place::code;
  push(LogLine::Kind::fence, text);
  return true;
}

// Whether the line counts or measures a step.
bool LogLines::take_step(std::string_view text) {
  ReadTrace trace;
  const ReadLine read = read_step_line(text, trace);
  if (read.says_step && text.front() != 'I' && is_warning(text)) return false;
  if (read.says_step) layouts_.learn(text, read, trace);
  const auto take_as = [&](LogLine::Kind kind) -> LogLine& {
    LogLine& line = push(kind, text);
    line.step = read.line;
    return line;
  };
  if (read.line.bar && read.line.batches > 0 && !read.line.has_loss()) {
    take_as(LogLine::Kind::bar);
  } else if (read.says_step && read.line.summary) {
    take_as(LogLine::Kind::summary);
  } else if (read.says_step) {
    take_as(LogLine::Kind::step).at = stamp_.read(text);
  } else if (const std::string_view start = trimmed(text); !is_missing(read.line.epoch) && start.size() < 40 &&
                                                           (start.starts_with("Epoch") || start.starts_with("epoch"))) {
    take_as(LogLine::Kind::epoch);
  } else if (read.opens && read.line.record && read.line.has_others) {
    take_as(LogLine::Kind::record).at = stamp_.read(text);
  } else if (read.opens && block_number_ == 0 && !is_space(text.front()) && text.back() != ',') {
    joiner_.open_block(text);
    block_number_ = number_;
  } else if (read.bare_loss && !joiner_.open_table(text)) {
    take_as(LogLine::Kind::bare_loss);
  } else if (read.bare_loss) {
    push(LogLine::Kind::table_header, text);
  } else {
    return false;
  }
  return true;
}

}  // namespace stepladder
