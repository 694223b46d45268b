// Goes from separator to separator: a name in front of ':' or '=', a word behind it. Between bars, two words are a pair
// without a separator.
#include "storage/importers/logs/lines/text_pairs.h"

#include <algorithm>
#include <initializer_list>

#include "storage/importers/logs/units.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t most_pairs = 50;  // of a line
constexpr std::size_t longest = 80;

bool is_of_name(char c) {
  return is_word(c) || c == '.' || c == '/' || c == '-';
}

// A word whose digits belong to it: "bf16", "gpt2-medium", not "3" or "run-2".
bool is_text(std::string_view text) {
  if (text.empty() || text.size() > longest || !is_alpha(text.front())) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_of_name(text[i]) && text[i] != ' ' && text[i] != '+') return false;
    if (is_digit(text[i]) && !is_word(text[i - 1])) return false;
  }
  const auto is = [&](std::string_view word) { return equal_in_lower(text, word); };
  return !is_failed_measurement(text) && !is("inf") && !is("infinity") && !is("none") && !is("null") && !is("na");
}

std::string_view name_before(std::string_view line, std::size_t end) {
  while (end > 0 && is_space(line[end - 1])) --end;
  if (end > 0 && (line[end - 1] == '"' || line[end - 1] == '\'')) --end;
  std::size_t begin = end;
  while (begin > 0 && is_of_name(line[begin - 1])) --begin;
  const std::string_view name = line.substr(begin, end - begin);
  return !name.empty() && is_alpha(name.front()) && name.size() <= longest ? name : std::string_view();
}

std::string_view text_behind(std::string_view line, std::size_t begin) {
  while (begin < line.size() && is_space(line[begin])) ++begin;
  if (begin == line.size()) return {};
  if (const char quote = line[begin]; quote == '"' || quote == '\'') {
    const std::size_t end = line.find(quote, begin + 1);
    return end == std::string_view::npos ? std::string_view() : line.substr(begin + 1, end - begin - 1);
  }
  std::size_t end = begin;
  while (end < line.size() && (is_of_name(line[end]) || line[end] == '+')) ++end;
  const bool ends = end == line.size() || std::string_view(" \t,;|)]}\r").find(line[end]) != std::string_view::npos;
  return ends ? line.substr(begin, end - begin) : std::string_view();
}

}  // namespace

void read_text_pairs(std::string_view line, std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
  pairs.clear();
  const auto add = [&](std::string_view name, std::string_view text) {
    if (!name.empty() && is_text(text) && pairs.size() < most_pairs) pairs.emplace_back(name, text);
  };
  for (std::size_t at = line.find_first_of(":="); at != std::string_view::npos; at = line.find_first_of(":=", at + 1)) {
    const std::string_view text = text_behind(line, at + 1);
    add(name_before(line, at), text);
    if (!text.empty()) at = static_cast<std::size_t>(text.data() - line.data()) + text.size() - 1;
  }
  if (line.find('|') == std::string_view::npos) return;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('|', begin), line.size());
    const std::string_view part = trimmed(line.substr(begin, end - begin), " \t\r");
    begin = end + 1;
    const std::size_t space = part.find(' ');
    if (space == std::string_view::npos || part.find(' ', space + 1) != std::string_view::npos) continue;
    if (is_text(part.substr(0, space))) add(part.substr(0, space), part.substr(space + 1));
  }
}

}  // namespace stepladder
