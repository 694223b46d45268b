// Turns raw lines into items for StepLog. Order of attempts: joined record, list, bars, fence, literal of
// a script, step, table header, words. The items of one raw line share its number, and their memory is reused.
#include "storage/importers/logs/lines/log_lines.h"

#include <algorithm>

#include "storage/importers/logs/lines/log_words.h"
#include "storage/importers/text.h"
#include "storage/json_values.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr int longest_literal = 1000;  // lines
constexpr std::size_t most_heads = 4;
constexpr std::size_t alike_lines = 3;  // so many lines don't repeat the same prose around growing numbers

// Whether two texts differ in nothing but their numbers and spaces.
bool are_alike(std::string_view a, std::string_view b) {
  const auto skip = [](std::string_view& text) {
    const auto is_of_number = [](char c) { return is_digit(c) || c == '.' || c == ',' || is_space(c); };
    const std::size_t size = text.size();
    while (!text.empty() && is_of_number(text.front())) text.remove_prefix(1);
    return text.size() < size;
  };
  while (true) {
    const bool skipped = skip(a);
    if (skip(b) != skipped) return false;
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (a.front() != b.front()) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
}

// The places of commas that may be decimal points, and of points that then separate thousands; none if the line has
// decimal points. Sets `certain` if one can't separate thousands: it has other than three digits behind it, or the
// number is a loss, which has decimals.
std::vector<std::size_t> decimal_commas(std::string_view line, bool& certain) {
  const auto digit = [&](std::size_t at) { return at < line.size() && is_digit(line[at]); };
  const auto is_any = [&](std::size_t at, std::string_view of) {
    return at < line.size() && of.find(line[at]) != std::string_view::npos;
  };
  std::vector<std::size_t> places;
  for (std::size_t at = 1; at + 1 < line.size(); ++at) {
    if ((line[at] != ',' && line[at] != '.') || !digit(at - 1) || !digit(at + 1)) continue;
    std::size_t begin = at, end = at + 1;
    while (begin > 0 && is_digit(line[begin - 1])) --begin;
    while (digit(end)) ++end;
    if (is_any(begin - 1, ":")) continue;                               // a clock
    if (line[at] == '.' ? end - at != 4 : is_any(end, ".")) return {};  // it is a point, or groups stand before it
    if (line[at] == '.') {
      places.push_back(at);
      continue;
    }
    if (is_any(begin - 1, ",[(") || is_any(end, ":])") || (is_any(end, ",") && digit(end + 1))) continue;  // a list
    places.push_back(at);
    const std::string_view key = trimmed(line.substr(0, begin), " \t:='\"");
    certain |= end - at != 4 || contains_word(key.substr(key.size() - std::min<std::size_t>(key.size(), 4)), "loss");
  }
  return places;
}

}  // namespace

void LogLines::finish() {
  reader_.finish();
  finished_ = true;
}

const LogLine* LogLines::next() {
  while (ready_.given == ready_.filled) {
    ready_.given = ready_.filled = 0;
    with_points_.clear();
    confirmed_.clear();
    std::string_view line;
    const std::int64_t last_number = number_;
    if (next_line(line)) {
      const bool is_redrawn = number_ == last_number;
      if (checks_last_ && may_be_cut(line, is_redrawn)) {
        sink_.note(number_, "the last line has no end and was left out: it may be cut");
        continue;
      }
      if (checks_last_ && lacks_head(line)) {
        sink_.note(number_, "the first line has no beginning and was left out: it may be cut");
        continue;
      }
      prefix_.exists() ? take_prefixed(line, is_redrawn) : take(line);
      if (LogLine& first = ready_.lines.front(); ready_.filled == 1 && first.kind == LogLine::Kind::step &&
                                                 first.step.rank < 0 && !is_missing(first.step.loss) &&
                                                 is_missing(first.step.val_loss))
        first.is_beside = writers_.add(line, first.step.step, first.step.loss);
      if (checks_last_) keep_as_known(line);
    } else {
      if (!finished_ || std::exchange(ended_, true)) return nullptr;
      joiner_.end();
      if (joiner_.ready()) take_joined();
      if (heads_.empty() && doubtful_.size() > 1) take_doubtful();
    }
  }
  return &ready_.lines[ready_.given++];
}

void LogLines::take_prefixed(std::string_view line, bool is_redrawn) {
  const std::string_view rest = prefix_.strip(line, is_redrawn);
  if (prefix_.has_time()) prefix_time_ = stamp_.read(line);
  take(rest);
  for (std::size_t i = 0; i < ready_.filled && prefix_.rank() >= 0; ++i)
    if (ready_.lines[i].step.rank < 0) ready_.lines[i].step.rank = prefix_.rank();
}

// The next line with its number. The first ones wait until they show whether every line has a prefix.
bool LogLines::next_line(std::string_view& line) {
  while (!prefix_.is_decided()) {
    if (reader_.next(line)) {
      first_lines_.emplace_back(std::string(line), reader_.number());
      prefix_.add(line, first_lines_.size() > 1 && first_lines_[first_lines_.size() - 2].second == reader_.number());
    } else if (finished_) {
      prefix_.decide();
    } else {
      return false;
    }
  }
  if (next_first_ < first_lines_.size()) {
    line = first_lines_[next_first_].first;
    number_ = first_lines_[next_first_++].second;
    return true;
  }
  if (!reader_.next(line)) return false;
  number_ = reader_.number();
  return true;
}

// Whether the line is the first one and begins with a number that has words in front of it on the next two: a log that
// was cut at its head, perhaps within that number.
bool LogLines::lacks_head(std::string_view line) const {
  if (next_first_ != 1 || first_lines_.size() < 3 || line.empty() || !is_digit(line.front())) return false;
  return std::all_of(first_lines_.begin() + 1, first_lines_.begin() + 3, [&](const auto& next) {
    const std::size_t number = std::string_view(next.first).find_first_of("0123456789");
    return number != std::string_view::npos && number > 0 &&
           are_alike(line, std::string_view(next.first).substr(number));
  });
}

// Whether the line is the last one, has no end, and is a step that nothing shows to be whole: it is an open record, or
// it ends otherwise than the step before and the last ones of other kinds.
bool LogLines::may_be_cut(std::string_view line, bool is_redrawn) {
  if (!reader_.has_given_rest() || next_first_ < first_lines_.size()) return false;
  if (joiner_.in_block() || place_ == LogLine::Place::code) return false;
  const std::string_view text = trimmed(prefix_.exists() ? prefix_.strip(line, is_redrawn) : line);
  if (text.starts_with("{\"") || text.starts_with("{'") || text.starts_with("[{"))
    return text.back() != (text.front() == '{' ? '}' : ']');
  if (last_step_.empty() || !may_say_step(text)) return false;
  const ReadLine read = read_step_line(text);
  if (!read.says_step && !read.opens && !read.bare_loss) return false;
  return !end_alike(line, last_step_) && !step_lines_.have_alike(line);
}

// Remembers how a step's line ends.
void LogLines::keep_as_known(std::string_view line) {
  const LogLine::Kind kind = ready_.filled > 0 ? ready_.lines.front().kind : LogLine::Kind::words;
  if (std::exchange(says_step_, false) && !step_lines_.have_alike(line)) step_lines_.keep(line);
  if (kind == LogLine::Kind::step || kind == LogLine::Kind::record || kind == LogLine::Kind::bar ||
      kind == LogLine::Kind::summary || kind == LogLine::Kind::bare_loss)
    last_step_ = line;
}

LogLine& LogLines::push(LogLine::Kind kind, std::string_view text) {
  if (ready_.filled == ready_.lines.size()) ready_.lines.emplace_back();
  LogLine& line = ready_.lines[ready_.filled++];
  line.kind = kind;
  line.place = place_;
  line.joined = line.is_beside = false;
  line.text = text;
  line.number = number_;
  line.at = missing;
  return line;
}

void LogLines::set_time(LogLine& line) {
  line.at = prefix_.has_time() ? prefix_time_ : stamp_.read(line.text);
  if (is_missing(line.at)) line.at = line.step.at;
}

void LogLines::take(std::string_view line) {
  if (place_ == LogLine::Place::code) return take_line(line);
  if (joiner_.in_block() && may_say_step(line)) {  // a block ends at the latest with the next step
    const ReadLine read = read_step_line(line);
    if (read.says_step && (read.line.has_step() || read.line.batch >= 0)) joiner_.end_block();
  }
  const bool taken = !joiner_.ready() && joiner_.take(line);
  if (joiner_.ready()) take_joined();
  if (taken) {
    push(LogLine::Kind::part, line);
    return;
  }
  const bool history = line.starts_with("{") && line.find("\"log_history\"") != std::string_view::npos;
  if (history || line.starts_with("[{"))
    take_list(line, history ? 2 : 1);
  else if (!take_history(line))
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

// {"loss": [3.2, 3.1], "val_loss": [3.3, 3.2]}: a list for each name, with a value for each epoch, as Keras keeps its
// history. Behind printed epochs it repeats them.
bool LogLines::take_history(std::string_view line) {
  if (!line.starts_with("{\"") && !line.starts_with("{'")) return false;
  if (line.find(": [") == std::string_view::npos || !contains_word(line, "loss")) return false;
  std::string text(line);
  std::ranges::replace(text, '\'', '"');  // of Python
  const Json lists = Json::parse(text, nullptr, false);
  if (!lists.is_object() || lists.empty()) return false;
  const std::size_t epochs = lists.begin()->size();
  const bool are_alike = std::ranges::all_of(lists, [&](const Json& list) {
    return list.is_array() && list.size() == epochs &&
           std::ranges::all_of(list, [](const Json& value) { return value.is_number(); });
  });
  if (!are_alike || epochs < 2) return false;
  const auto record_of = [&](std::size_t epoch) {
    Json record{{"epoch", epoch + 1}};
    for (const auto& [name, list] : lists.items())
      if (name != "epoch") record[name] = list[epoch];
    return record.dump();
  };
  if (!read_step_line(record_of(0)).line.has_loss()) return false;  // "loss_weights" of a configuration
  if (has_steps_) {
    sink_.note(number_, "skipped: lists the values of steps or epochs again");
    push(LogLine::Kind::words, line);
    return true;
  }
  sink_.note(number_, "lists " + std::to_string(epochs) + " values for each name, so each is an epoch, counted from 1");
  for (std::size_t i = 0; i < epochs; ++i) take_line(with_points_.emplace_back(record_of(i)));
  return true;
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
  const bool is_plain = block_number_ > 0 && joiner_.plain_block();
  joined_ = joiner_.take_joined();
  const std::int64_t number = std::exchange(number_, block_number_ > 0 ? block_number_ : number_);
  const StepLine line = read_step_line(joined_).line;
  if (bare && line.has_step() && line.has_others) {  // "Step 5 | CORE: 0.2"
    LogLine& record = push(LogLine::Kind::record, joined_);
    record.step = line;
    set_time(record);
  } else if (bare || (is_plain && !line.has_loss())) {
    push(LogLine::Kind::words, joined_).joined = true;
  } else {
    const bool is_record = joined_.starts_with("{'") && line.has_loss();  // perhaps of the step above
    if (line.has_step() || line.batch >= 0 || !is_missing(line.epoch) || is_record) take_step(joined_, false);
  }
  block_number_ = 0;
  number_ = number;
}

// What W&B prints behind a run, with its name in front of each line or without.
bool LogLines::in_summary(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.starts_with("wandb:")) return true;
  if (text == "Run summary:" || text == "Run history:") return in_summary_ = true;
  return in_summary_ = in_summary_ && text.find_first_of(":=|{") == std::string_view::npos;
}

void LogLines::take_line(std::string_view line) {
  if (take_fence(line)) return;
  if (in_summary(line)) {
    push(LogLine::Kind::words, line);
    return;
  }
  const bool literal = in_literal(line);
  const bool code = place_ == LogLine::Place::code;
  if (!code && may_say_step(line) && take_step(line, literal)) return;
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

// Whether a line with prose or code behind its numbers is a step: the log has steps, or other such lines, that are
// alike up to the first measured number. The earlier ones of these become steps too.
bool LogLines::confirms(std::string_view text, const ReadLine& read) {
  const std::string_view head = text.substr(0, read.doubtful);
  if (knows_head(head)) return true;
  const bool continues = !doubtful_.empty() &&
                         are_alike(doubtful_.front().text.substr(0, doubtful_.front().head), head) &&
                         read.line.step >= doubtful_.back().step;
  if (!continues) doubtful_.clear();
  doubtful_.push_back({std::string(text), read.doubtful, number_, read.line.step});
  if (doubtful_.size() < alike_lines) return false;
  doubtful_.pop_back();
  take_doubtful();
  know_head(head);
  return true;
}

void LogLines::take_doubtful() {
  const std::int64_t number = number_;
  for (Doubtful& waiting : std::exchange(doubtful_, {})) {
    const Doubtful& each = confirmed_.emplace_back(std::move(waiting));
    number_ = each.number;
    LogLine& line = push(LogLine::Kind::step, each.text);
    line.step = read_step_line(each.text).line;
    set_time(line);
  }
  number_ = number;
}

// Whether a step's line was alike up to its first measured number.
bool LogLines::knows_head(std::string_view head) const {
  return std::ranges::any_of(heads_, [&](const std::string& known) { return are_alike(known, head); });
}

void LogLines::know_head(std::string_view head) {
  if (head.empty() || knows_head(head)) return;
  if (heads_.size() == most_heads) heads_.pop_front();
  heads_.emplace_back(head);
}

// The line with points instead of decimal commas, if it has such.
std::string_view LogLines::with_points(std::string_view line) {
  if (line.find(',') == std::string_view::npos) return line;
  bool certain = has_decimal_commas_;
  const std::vector<std::size_t> places = decimal_commas(line, certain);
  if (places.empty() || !certain) return line;
  std::string changed;
  std::size_t end = 0;  // of what was taken
  for (const std::size_t place : places) {
    changed += line.substr(end, place - end);
    if (line[place] == ',') changed += '.';
    end = place + 1;
  }
  changed += line.substr(end);
  if (const ReadLine read = read_step_line(changed); !read.says_step || !read.line.has_loss()) return line;
  if (!std::exchange(has_decimal_commas_, true))
    sink_.note(number_, "the log's numbers have decimal commas: " + std::string(trimmed(line.substr(0, 80))));
  return with_points_.emplace_back(std::move(changed));
}

// "Step    100: train CrossEntropyLoss |  9.775", as Trax prints it: the line with a sign between name and number.
std::string_view LogLines::with_sign(std::string_view line) {
  const std::size_t bar = line.find('|'), colon = line.find(':');
  if (bar == std::string_view::npos || colon > bar || line.find('|', bar + 1) != std::string_view::npos) return line;
  std::size_t digits = colon;
  while (digits > 0 && is_digit(line[digits - 1])) --digits;
  const std::string_view name = trimmed(line.substr(colon + 1, bar - colon - 1));
  const auto is_of_name = [](char c) { return is_word(c) || c == ' ' || c == '/'; };
  if (digits == colon || !equal_in_lower(trimmed(line.substr(0, digits)), "step") || name.empty() ||
      !is_alpha(name.front()) || !std::ranges::all_of(name, is_of_name) ||
      !parse_number<double>(trimmed(line.substr(bar + 1))))
    return line;
  return with_points_.emplace_back(std::string(line.substr(0, bar)) + "=" + std::string(line.substr(bar + 1)));
}

// Whether the line counts or measures a step. In a script's literal only one that is alike an earlier step does.
bool LogLines::take_step(std::string_view text, bool in_literal) {
  text = with_sign(with_points(text));
  ReadLine read = read_step_line(text);
  if (in_literal && !(read.says_step && knows_head(text.substr(0, read.first_measured)))) return false;
  if (read.says_step && is_warning(text)) return false;
  if (read.doubtful > 0 && !(read.says_step = confirms(text, read))) {
    push(LogLine::Kind::words, text).joined = doubtful_.size() > 0 && heads_.empty();
    return true;
  }
  if (read.says_step) {
    says_step_ = true;
    if (read.doubtful == 0) know_head(text.substr(0, read.first_measured));
    if (!doubtful_.empty() &&
        are_alike(doubtful_.front().text.substr(0, doubtful_.front().head), text.substr(0, read.first_measured)))
      take_doubtful();
  }
  const auto take_as = [&](LogLine::Kind kind) {
    LogLine& line = push(kind, text);
    line.step = read.line;
    has_steps_ |= kind == LogLine::Kind::step;
    if (kind != LogLine::Kind::step && kind != LogLine::Kind::record) return;
    set_time(line);
  };
  if (read.line.bar && read.line.batches > 0 && !read.line.has_loss()) {
    take_as(LogLine::Kind::bar);
  } else if (read.says_step && read.line.summary) {
    take_as(LogLine::Kind::summary);
  } else if (read.says_step) {
    take_as(LogLine::Kind::step);
  } else if (const std::string_view start = trimmed(text); !is_missing(read.line.epoch) && start.size() < 40 &&
                                                           (start.starts_with("Epoch") || start.starts_with("epoch"))) {
    take_as(LogLine::Kind::epoch);
  } else if (read.opens && read.line.record && read.line.has_others) {
    take_as(LogLine::Kind::record);
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
