// The marks by which code, tables and prose are known. They run over every step of a log.
#include "storage/importers/logs/lines/line_doubt.h"

#include <algorithm>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

// Whether it is a word that prose usually has and a program's step line doesn't.
bool is_prose(std::string_view word) {
  return one_of(
      word, {"the",    "was",    "were",  "is",    "are",   "we",   "our", "that", "this", "which", "because", "when",
             "if",     "should", "would", "could", "you",   "your", "my",  "i",    "it's", "def",   "return",  "print",
             "import", "assert", "than",  "vs",    "there", "been", "had", "has",  "gets", "goes"});
}

}  // namespace

std::size_t prose_at(std::string_view line) {
  std::size_t at = 0;
  const std::size_t behind_last = line.rfind(')') + 1;  // 0: there is none
  while (at < line.size()) {
    // A remark on a number, "4.80 (best, was 4.90)", makes no prose of the line.
    while (at < line.size() && !is_alpha(line[at]))
      at = line[at] == '(' && at < behind_last ? line.find(')', at) : at + 1;
    const std::size_t start = at;
    while (at < line.size() && (is_alpha(line[at]) || line[at] == '\'')) ++at;
    if (at - start > 7 || at == start) continue;
    // Part of a longer name: "loss_if", "is/loss", "I0701".
    if ((start > 0 && (line[start - 1] == '_' || line[start - 1] == '/' || line[start - 1] == '-')) ||
        (at < line.size() &&
         (line[at] == '_' || line[at] == '/' || line[at] == '=' || line[at] == ':' || is_digit(line[at]))))
      continue;
    if (at + 1 < line.size() && line[at] == ' ' && line[at + 1] == '=') continue;  // "i = 5"
    char buffer[8];
    std::transform(line.begin() + static_cast<std::ptrdiff_t>(start), line.begin() + static_cast<std::ptrdiff_t>(at),
                   buffer, lower);
    if (is_prose({buffer, at - start})) return start;
  }
  return std::string_view::npos;
}

std::size_t doubt_at(std::string_view line, bool is_record) {
  const std::size_t code = code_at(line);
  return is_record ? code : std::min(code, prose_at(line));
}

bool is_table_row(std::string_view line) {
  line = trimmed(line);
  return !line.empty() && ((line.front() == '|' && line.back() == '|') || line.front() == '<' ||
                           line.find("</") != std::string_view::npos);
}

bool names_validation(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && !is_alpha(text[at])) ++at;
    const std::size_t start = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at - start > 12 || at == start) continue;
    if (at < text.size() && (text[at] == '.' || text[at] == '/')) continue;
    char buffer[12];
    std::transform(text.begin() + static_cast<std::ptrdiff_t>(start), text.begin() + static_cast<std::ptrdiff_t>(at),
                   buffer, lower);
    const std::string_view word(buffer, at - start);
    if ((is_validation(word) && word != "tel") ||
        one_of(word, {"evaluating", "evaluate", "validating", "validate", "testing"}))
      return true;
  }
  return false;
}

std::size_t code_at(std::string_view line) {
  static constexpr std::string_view marks[] = {
      "print(", "f\"", "f'", "{step", "{loss", "{iter", "==",    "+=", "-=", "%d", "%f",       ":.", "def ",
      "self.",  "<<",  "%5", "():",   "//",    "->",    ".item", "&&", "%.", "%4", "#include", "{.", "`"};
  constexpr std::size_t none = std::string_view::npos;
  std::size_t first = none;
  for (const std::string_view mark : marks) {
    const std::size_t at = line.find(mark);
    if (at == none) continue;
    // Progress bars hold runs of '=' and '-': [=====>...], |---->
    if (mark == "==" && (line.find("[=") != none || line.find("===") != none)) continue;
    if (mark == "->" && at > 0 && line[at - 1] == '-') continue;
    first = std::min(first, at);
  }
  // A string, a comment, an entry of a list, { epoch: 1 } of a script: the whole line.
  const std::string_view text = trimmed(line);
  if (text.starts_with('"') || text.starts_with("# ")) return 0;
  if ((text.starts_with("- ") || text.starts_with("* ")) && !text.starts_with("- INFO")) return 0;
  if (const std::string_view inner = trimmed(text.substr(std::min<std::size_t>(1, text.size())));
      text.starts_with('{') && !inner.empty() && is_alpha(inner.front()) && !is_digit(text.back()) &&
      !is_alpha(text.back()))
    return 0;
  const auto assigns = [](std::string_view words) { return words.find(" = ") != none; };
  if (const std::size_t comment = line.find(" #"); comment != none && assigns(line.substr(0, comment)))
    return 0;  // "loss = 0.0  # step 0"
  if (text.starts_with("for (") || (text.ends_with("{") && text.find('(') != none)) return 0;
  if (!text.empty() && text.back() == ';' && (text.find('(') != none || assigns(text))) return 0;
  // write("step 2"), f({...}), Output(step=2), --steps 2000.
  for (std::size_t at = 1; at + 1 < line.size() && at < first; ++at) {
    if (line[at] == '(' && is_word(line[at - 1]) &&
        (line[at + 1] == '"' || line[at + 1] == '\'' || line[at + 1] == '{'))
      return at;
    if (line[at] == '(' && is_word(line[at - 1])) {
      std::size_t name = at + 1;
      while (name < line.size() && is_word(line[name])) ++name;
      if (name > at + 1 && name < line.size() && line[name] == '=') return at;
    }
    if (line[at] == '-' && line[at - 1] == '-' && is_alpha(line[at + 1]) && (at == 1 || line[at - 2] == ' ')) return at;
  }
  return first;
}

}  // namespace stepladder
