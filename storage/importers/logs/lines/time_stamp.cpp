#include "storage/importers/logs/lines/time_stamp.h"

#include <chrono>

#include "storage/importers/text.h"
#include "storage/records.h"

namespace stepladder {
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
