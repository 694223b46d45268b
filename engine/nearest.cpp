#include "engine/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace stepladder {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // row[j]: distance from the first i letters of a to the first j of b.
  std::vector<std::size_t> row(b.size() + 1), row_above, row_two_above;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row_two_above = std::exchange(row_above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = row_above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({row_above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], row_two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view word, std::span<const std::string> known) {
  const auto lower = [](std::string_view text) {
    std::string letters(text);
    for (char& c : letters) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return letters;
  };
  const std::string typed = lower(word);
  std::string nearest;
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1, best_as_typed = 0;
  for (const std::string& name : known) {
    const std::string candidate = lower(name);
    if (word.size() >= 3 && candidate.starts_with(typed)) return name;  // typed short: "flash"
    const std::size_t distance = edit_distance(typed, candidate);
    const std::size_t as_typed = edit_distance(word, name);
    const bool is_nearer =
        distance < best || (distance == best && !nearest.empty() &&
                            (typed.starts_with(candidate) /* typed long */ || as_typed < best_as_typed));
    if (is_nearer && distance < name.size()) {
      best = distance;
      best_as_typed = as_typed;
      nearest = name;
    }
  }
  return nearest;
}

std::string unknown_name(std::string_view word, std::span<const std::string> known) {
  std::string text(1, '"');
  text.append(word).append("\" is unknown; ");
  const std::string nearest = nearest_name(word, known);
  if (!nearest.empty()) return text + "did you mean " + nearest + "?";
  text += "there are ";
  for (std::size_t i = 0; i < known.size(); ++i) text += (i == 0 ? "" : ", ") + known[i];
  return text;
}

}  // namespace stepladder
