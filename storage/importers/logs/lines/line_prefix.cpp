// Each form has a function that returns the prefix's size, 0 if the line doesn't begin so. Three lines have to begin
// alike: "0: loss 3.1" may also be step 0. A logger's own stamp stays: what it writes is one line each.
#include "storage/importers/logs/lines/line_prefix.h"

#include <algorithm>
#include <chrono>

#include "storage/importers/text.h"
#include "storage/records.h"

namespace stepladder {
namespace {

constexpr int alike_starts = 3;
constexpr int most_skipped = 50;

// Digits behind `begin`, between `before` and `after`; -1 if there are none.
std::int64_t number_between(std::string_view line, std::string_view before, std::string_view after, std::size_t& size) {
  TextCursor text(line);
  std::int64_t number = -1;
  if (!text.take(before) || !text.take(number) || number < 0 || number > 100'000 || !text.take(after)) return -1;
  size = line.size() - text.rest().size();
  return number;
}

// Whether a name that ends in a number counts steps, as in "Step-1 | loss 3.9", and names no service.
bool counts_steps(std::string_view name) {
  const std::size_t begin = name.find_last_of("-_.") + 1;  // npos + 1 is 0
  std::string word;
  for (const char c : name.substr(begin)) word += static_cast<char>(c | 0x20);  // lower case
  return one_of(word, {"step", "steps", "iter", "iteration", "epoch", "batch", "update"});
}

// "trainer-1  | "
std::size_t service(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && (is_word(line[at]) || line[at] == '-' || line[at] == '.')) ++at;
  const std::size_t bar = line.find_first_not_of(' ', at);
  std::size_t number = at;
  while (number > 0 && is_digit(line[number - 1])) --number;
  const bool is_numbered = number < at && number > 1 && (line[number - 1] == '-' || line[number - 1] == '_') &&
                           !counts_steps(line.substr(0, number - 1));
  return is_numbered && is_alpha(line[0]) && bar != std::string_view::npos && bar > at &&
                 line.substr(bar).starts_with("| ")
             ? bar + 2
             : 0;
}

// "[pod/train-0/trainer] "
std::size_t pod(std::string_view line) {
  const std::size_t end = line.starts_with("[pod/") ? line.find("] ") : std::string_view::npos;
  return end == std::string_view::npos ? 0 : end + 2;
}

// "2026-11-26T10:00:00.123456Z ", "2026-11-26T10:00:00+01:00 "
std::size_t iso_time(std::string_view line) {
  const std::size_t end = line.find(' ');
  if (end == std::string_view::npos || end < 20 || end > 40 || line[4] != '-' || line[10] != 'T' || line[13] != ':' ||
      !is_digit(line[0]))
    return 0;
  return line[end - 1] == 'Z' || line.substr(19, end - 19).find_first_of("+-") != std::string_view::npos ? end + 1 : 0;
}

// "Nov 26 10:00:00 host python[123]: ", or with an ISO time.
std::size_t syslog(std::string_view line) {
  static constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::size_t begin = iso_time(line);
  if (begin == 0 && line.size() > 20 && line[3] == ' ' && line[9] == ':' && line[12] == ':' && line[15] == ' ')
    if (const std::size_t month = months.find(line.substr(0, 3)); month != std::string_view::npos && month % 3 == 0)
      begin = 16;
  const std::size_t end = line.find("]: ");
  if (begin == 0 || end == std::string_view::npos || end < begin) return 0;
  const std::string_view source = line.substr(begin, end - begin);
  return std::ranges::count(source, ' ') == 1 && source.rfind('[') > source.find(' ') ? end + 3 : 0;
}

// "2026-11-26T10:00:00.123456Z ", and behind it "stdout F ", as Kubernetes' files have it.
std::size_t stamp(std::string_view line) {
  const std::size_t end = iso_time(line);
  if (end == 0) return 0;
  for (const std::string_view stream : {"stdout F ", "stderr F ", "stdout P ", "stderr P "})
    if (line.substr(end).starts_with(stream)) return end + stream.size();
  return end;
}

// "INFO:root:", "[2026-11-26 10:00:00,123] [INFO] ", "2026-11-26 10:00:00.123 | INFO | main:train:42 - ": to the level
// and the marks behind it, and loguru's place.
std::size_t logger(std::string_view line, bool& has_time) {
  const std::size_t begin = line.starts_with('[') ? 1 : 0;
  has_time = line.size() > begin + 20 && is_digit(line[begin]) && line[begin + 4] == '-' && line[begin + 7] == '-' &&
             line[begin + 13] == ':' && line[begin + 16] == ':';
  std::size_t level = std::string_view::npos, end = 0;
  for (const std::string_view name : {"INFO", "DEBUG", "WARNING", "ERROR"})
    if (const std::size_t at = line.substr(0, 80).find(name); at < level) level = at, end = at + name.size();
  if (level == std::string_view::npos || (!has_time && level > 0)) return 0;
  if (!has_time) {
    const std::size_t name = line.find(':', end + 1);
    return end < line.size() && line[end] == ':' && name != std::string_view::npos && name < end + 40 ? name + 1 : 0;
  }
  if (const std::size_t bar = line.find_first_not_of(' ', end); bar != std::string_view::npos && line[bar] == '|') {
    const std::size_t place = line.find(" - ", bar);
    return place == std::string_view::npos ? 0 : place + 3;
  }
  while (end < line.size() && (line[end] == ']' || line[end] == ':')) ++end;  // "INFO] ", "INFO - "; what follows may
  if (end < line.size() && line[end] == ' ') ++end;                           // be indented
  if (line.substr(end).starts_with("- ") || line.substr(end).starts_with(": ")) end += 2;
  return end;
}

}  // namespace

// One prefix may stand behind another: "[pod/train-0/main] 2026-11-26T10:00:00Z ".
LinePrefix::Found LinePrefix::find(std::string_view line) {
  Found found = find_one(line);
  for (int behind = 0; behind < 3 && found.kind != Kind::none; ++behind) {
    const Found next = find_one(line.substr(found.size));
    if (next.kind != Kind::rank && next.kind != Kind::pod && next.kind != Kind::syslog && next.kind != Kind::stamp)
      break;
    found.size += next.size;
    if (next.rank >= 0) found.rank = next.rank;
    found.has_time |= next.kind == Kind::stamp;
  }
  return found;
}

LinePrefix::Found LinePrefix::find_one(std::string_view line) {
  Found found;
  if ((found.rank = number_between(line, "", ": ", found.size)) >= 0) return found.kind = Kind::label, found;
  for (const std::string_view name : {"[rank", "[default", "[Rank ", "[worker-", "[cuda:", "[gpu", "[GPU", "[GPU "})
    for (const std::string_view end : {"]: ", "]:", "] "})
      if ((found.rank = number_between(line, name, end, found.size)) >= 0) return found.kind = Kind::rank, found;
  if ((found.size = service(line)) > 0) return found.kind = Kind::service, found;
  if ((found.size = pod(line)) > 0) return found.kind = Kind::pod, found;
  if ((found.size = syslog(line)) > 0) return found.kind = Kind::syslog, found;
  if ((found.size = stamp(line)) > 0) return found.kind = Kind::stamp, found;
  if ((found.size = logger(line, found.has_time)) > 0) return found.kind = Kind::logger, found;
  return {};
}

void LinePrefix::add(std::string_view line, bool is_redrawn) {
  if (is_redrawn || trimmed(line).empty()) {
    if (++skipped_ == most_skipped) decide();
    return;
  }
  const Found found = find(line);
  if (alike_ == 0) first_ = found;
  if (first_.kind == Kind::none || (found.kind == Kind::label && found.rank != first_.rank)) {
    first_ = {};
    decided_ = true;
  } else if (found.kind == first_.kind) {
    decided_ = ++alike_ == alike_starts;
  } else if (++unlike_ == alike_starts) {
    decide();
  }
}

void LinePrefix::decide() {
  decided_ = true;
  if (alike_ < 2 && (first_.kind == Kind::label || unlike_ > 0)) first_ = {};
}

std::string_view LinePrefix::strip(std::string_view line, bool is_redrawn) {
  found_ = {};
  if (first_.kind == Kind::none || is_redrawn) return line;
  if (const Found found = find(line); found.kind == first_.kind) found_ = found;
  return line.substr(found_.size);
}

namespace {

constexpr std::size_t furthest = 64;  // no logger prints its stamp further on
constexpr int lines_until_given_up = 64;

// `count` digits at `at`; -1 if there are none.
int digits(std::string_view text, std::size_t at, int count) {
  int value = 0;
  for (int i = 0; i < count; ++i) {
    const std::size_t place = at + static_cast<std::size_t>(i);
    if (place >= text.size() || !is_digit(text[place])) return -1;
    value = value * 10 + (text[place] - '0');
  }
  return value;
}

char letter(std::string_view text, std::size_t at) {
  return at < text.size() ? text[at] : '\0';
}

double stamp_at(std::string_view text, std::size_t at) {
  using namespace std::chrono;
  int year_number = 0, month_number = 0, day_number = 0;
  const char sign = letter(text, at + 4);
  if ((sign == '-' || sign == '/') && letter(text, at + 7) == sign) {  // 2024-05-01
    year_number = digits(text, at, 4);
    month_number = digits(text, at + 5, 2);
    day_number = digits(text, at + 8, 2);
  } else if (letter(text, at + 2) == '/' && letter(text, at + 5) == '/') {  // 05/01/2024
    month_number = digits(text, at, 2);
    day_number = digits(text, at + 3, 2);
    year_number = digits(text, at + 6, 4);
  } else {
    return missing;
  }
  const char between = letter(text, at + 10);
  const int hour = digits(text, at + 11, 2), minute = digits(text, at + 14, 2), second = digits(text, at + 17, 2);
  const year_month_day date{year{year_number}, month{static_cast<unsigned>(month_number)},
                            day{static_cast<unsigned>(day_number)}};
  if (year_number < 1990 || !date.ok() || (between != ' ' && between != 'T') || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 60 || letter(text, at + 13) != ':' || letter(text, at + 16) != ':')
    return missing;
  double fraction = 0;
  if (const char point = letter(text, at + 19); point == '.' || point == ',') {
    double unit = 0.1;
    for (std::size_t i = at + 20; i < text.size() && is_digit(text[i]); ++i, unit /= 10)
      fraction += unit * (text[i] - '0');
  }
  return static_cast<double>(sys_days{date}.time_since_epoch().count()) * 86400 + hour * 3600 + minute * 60 + second +
         fraction;
}

}  // namespace

double TimeStamp::read(std::string_view line) {
  if (without_ >= lines_until_given_up) return missing;
  if (const double there = stamp_at(line, at_); !is_missing(there)) return there;
  for (std::size_t at = 0; at + 19 <= line.size() && at < furthest; ++at) {
    if (!is_digit(line[at]) || (at > 0 && is_word(line[at - 1]))) continue;
    if (const double found = stamp_at(line, at); !is_missing(found)) {
      at_ = at;
      without_ = 0;
      return found;
    }
  }
  ++without_;
  return missing;
}

}  // namespace stepladder
