// Signs of print, foreign text made harmless, and how late values are: those that are followed, and those that wait to
// be stored.
#include "app/text/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "storage/bounded_text.h"
#include "storage/database/recorder.h"
#include "storage/importers/growing_source.h"

namespace stepladder {
namespace {

std::string clock_text(double unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

}  // namespace

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool has_word(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

std::string in_print(const std::string& text) {
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  const auto is_negative = [&](std::size_t i) {
    const std::string_view rest = std::string_view(text).substr(std::min(i, text.size()));
    return rest.starts_with('-') && (is_digit(i + 1) || rest.starts_with("-Infinity"));
  };
  const auto begins = [&](std::size_t i) {
    return is_digit(i) || is_negative(i) || (i < text.size() && (text[i] == '(' || text[i] == '~'));
  };
  const auto is_capital = [&](std::size_t i) { return i < text.size() && text[i] >= 'A' && text[i] <= 'Z'; };
  std::string printed;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool after_number = i > 0 && (is_digit(i - 1) || text[i - 1] == ')' || text[i - 1] == 'k' ||
                                        text[i - 1] == 'M' || text[i - 1] == 'G');
    const std::string_view rest = std::string_view(text).substr(i);
    const bool ends_word =
        rest.size() == 2 || (rest.size() > 2 && std::string_view(" ,.;:)").find(rest[2]) != std::string_view::npos);
    const bool after_capital = i > 0 && is_capital(i - 1) && is_capital(i + 3);
    const bool before_number = i > 0 && rest.starts_with(" x ") && begins(i + 3);
    if ((after_number || after_capital || before_number) && rest.starts_with(" x") && ends_word) {
      const std::string_view after = rest.substr(std::min<std::size_t>(3, rest.size()));
      const bool is_interval = after.starts_with('(') && after.substr(0, after.find(')')).find(" - ") != after.npos;
      const bool is_product = (begins(i + 3) || is_capital(i + 3)) && !is_interval;
      printed += is_product && rest[2] == ' ' ? " \xC3\x97" : "\xC3\x97";
      i += 1;
    } else if (after_number && rest.starts_with(" - ") && begins(i + 3)) {
      printed += " \xE2\x80\x93 ";
      i += 2;
    } else if ((i == 0 || std::string_view(text).substr(0, i).ends_with(", ")) && rest.starts_with("x ") &&
               begins(i + 2)) {
      printed += "\xC3\x97";
    } else if (is_negative(i) && (i == 0 || std::string_view(" (~").find(text[i - 1]) != std::string_view::npos)) {
      printed += "\xE2\x88\x92";
    } else if (rest.starts_with("+/-")) {
      printed += "\xC2\xB1";
      i += 2;
    } else if (rest.starts_with(" -> ")) {
      printed += " \xE2\x86\x92 ";
      i += 3;
    } else {
      printed += text[i];
    }
  }
  return printed;
}

std::string harmless(std::string text) {
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_length(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0)
      shown += "\xEF\xBF\xBD";  // U+FFFD
    else
      shown += is_control(character) && character != "\n" && character != "\t" ? "." : character;
    rest.remove_prefix(character.size());
  }
  return shown;
}

std::string rough_duration_text(double seconds) {
  const auto in = [](double value, const char* unit) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f %s", value < 9.5 && value != std::round(value) ? 1 : 0, value, unit);
    return std::string(text);
  };
  if (seconds < 0.0095) return in(std::round(seconds * 1e4) / 10, "ms");
  if (seconds < 0.95) return in(std::round(seconds * 100) * 10, "ms");
  if (seconds < 9.5) return in(std::round(seconds * 10) / 10, "s");
  if (seconds < 90) return in(std::round(seconds), "s");
  if (seconds < 90 * 60) return in(std::round(seconds / 60), "min");
  return in(std::round(seconds / 360) / 10, "h");
}

std::string lateness_text(std::string_view format, double age_s) {
  const std::string_view delay = writer_delay(format);
  if (delay.empty()) return {};
  return fmt::format("newest value {} s old; {}", std::llround(age_s), delay);
}

std::string lateness_text(const Run& run, double newest_at) {
  constexpr std::string_view key = "\"followed_store\":\"";  // written by app/import/source_follower.cpp
  const double age_s = unix_now() - newest_at;
  const std::size_t at = run.environment.find(key);
  if (run.status != RunStatus::running || at == std::string::npos || !(age_s >= late_after_s)) return {};
  const std::string_view rest = std::string_view(run.environment).substr(at + key.size());
  return lateness_text(rest.substr(0, rest.find('"')), age_s);
}

std::string unstored_text(const Unstored& unstored) {
  if (unstored.why.empty()) return {};
  const std::string what =
      unstored.steps == 0 ? "The end of a run waits" : plural(unstored.steps, "step waits", "steps wait");
  const std::string lost =
      unstored.refused == 0 ? "" : " " + grouped(unstored.refused) + " more are lost, since memory and disk were full.";
  return what + " to be stored since " + clock_text(unstored.since) + ": " + harmless(unstored.why) + "." + lost;
}

}  // namespace stepladder
