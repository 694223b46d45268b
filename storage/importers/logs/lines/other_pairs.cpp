// The numbers of a step's line that have a name and no field in a step: "acc=0.91", "'rewards/chosen': 0.4".
#include <algorithm>
#include <cmath>

#include "storage/importers/logs/lines/step_line.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_words = 80;
constexpr std::size_t most_pairs = 200;  // of one line

bool is_name(std::string_view name) {
  const bool has_letter = std::ranges::any_of(name, is_alpha);
  const auto words = 1 + std::ranges::count(name, ' ');
  return has_letter && !name.ends_with(".py") && name.size() <= longest_words && words <= 4 &&
         name.find_first_of("\"'{}[]=:|") == name.npos;
}

bool is_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b) && !is_missing(a) && !is_missing(b));
}

// Whether the number is already the line's value of this field, or is a count or label that no chart needs.
bool is_taken(const Meaning& meaning, double value, const StepLine& line) {
  switch (meaning.field) {
    case Field::none:
      return false;
    case Field::epoch:
      return line.whole_epoch;
    case Field::perplexity:
    case Field::val_perplexity:
      return line.from_perplexity;
    default:
      break;
  }
  const double StepValues::*const into = value_of(meaning.field);
  return !into || is_same(line.*into, value * meaning.scale);
}

// Calls `use` with each name, unit and number until it returns false.
template <class Use>
void for_other_pairs(std::string_view text, const StepLine& line, Use use) {
  PairScanner scanner(text);
  Pair pair;
  while (scanner.next(pair)) {
    if (pair.clock || pair.total >= 0 || is_missing(pair.value)) continue;
    const Meaning meaning = meaning_of(pair);
    // "cross_entropy 3.2" beside the loss is a figure too; without a sign other words may be prose.
    if (!pair.separated && meaning.field != Field::loss && meaning.field != Field::val_loss) continue;
    if (pair.unit == "%" && text.substr(pair.end).starts_with('|')) continue;  // of a bar
    if (pair.value > 1e9 && contains_word(pair.key, "time")) continue;         // since 1970
    if (!is_name(pair.key) || is_taken(meaning, pair.value, line)) continue;
    if (!use(pair.key, pair.unit.empty() ? pair.hint : pair.unit, pair.value)) return;
  }
}

}  // namespace

void read_other_pairs(std::string_view text, const StepLine& line, std::vector<OtherPair>& pairs) {
  pairs.clear();
  for_other_pairs(text, line, [&](std::string_view name, std::string_view unit, double value) {
    const KeyWords key(name);
    const bool is_bpb = key.is(0, "bpb") && key.count == 2 && is_validation(key.words[1]);
    pairs.push_back({is_bpb ? "val_bpb" : std::string(name), unit, value});
    return pairs.size() < most_pairs;
  });
}

std::string unread_times(std::string_view text) {
  constexpr std::size_t longest = 160;
  std::string times;
  PairScanner scanner(text);
  for (Pair pair; scanner.next(pair);) {
    const Meaning meaning = meaning_of(pair);
    const Unit unit = unit_of(pair.unit.empty() ? pair.hint : pair.unit);
    if (meaning.field != Field::none || (!meaning.is_part && (unit.time == TimeUnit::unknown || unit.other))) continue;
    const KeyWords key(pair.key);
    if (key.has("eta") || key.has("remaining") || key.has("left") ||
        std::any_of(key.words, key.words + key.count, is_validation))
      continue;
    const std::size_t from = text.substr(0, pair.at).find_last_of("|,;") + 1;  // npos + 1 is 0
    if (times.size() + pair.end - from > longest) continue;
    times += (times.empty() ? "" : ", ") + std::string(trimmed(text.substr(from, pair.end - from)));
  }
  return times;
}

bool has_other_pairs(std::string_view text, const StepLine& line) {
  bool any = false;
  for_other_pairs(text, line, [&](auto...) { return !(any = true); });
  return any;
}

}  // namespace stepladder
