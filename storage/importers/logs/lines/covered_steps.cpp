// Names of times that have a number in them, and words around the number of steps that a time is for.
#include "storage/importers/logs/lines/covered_steps.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t told_behind = 40;  // a time

// "last_10_steps_time": the number in a name.
std::int64_t steps_in(std::string_view name) {
  const KeyWords key(name);
  std::int64_t steps = 0;
  for (int i = 0; i < key.count; ++i) {
    const std::string_view word = key.words[i];
    if (one_of(word, {"steps", "iters", "iterations", "batches"}) && i + 1 < key.count)
      std::from_chars(key.words[i + 1].data(), key.words[i + 1].data() + key.words[i + 1].size(), steps);
    else if (!(i > 0 && is_digit(word.front())) &&
             !one_of(word, {"last", "past", "per", "time", "elapsed", "for", "over", "took", "s", "sec", "ms"}))
      return 0;
  }
  return steps;
}

bool are_all(std::string_view words, std::initializer_list<std::string_view> known) {
  const KeyWords key(words);
  return key.count < KeyWords::most &&
         std::all_of(key.words, key.words + key.count, [&](std::string_view word) { return one_of(word, known); });
}

// Behind the count: "steps in", "iterations took".
bool begins_with_steps(std::string_view words, std::string_view& rest) {
  words = trimmed(words);
  if (words.starts_with("train ")) words.remove_prefix(6);
  std::size_t end = 0;
  while (end < words.size() && is_alpha(words[end])) ++end;
  rest = words.substr(end);
  const KeyWords word(words.substr(0, end));
  return word.count == 1 && one_of(word.words[0], {"steps", "iters", "iterations", "its", "it", "batches", "updates"});
}

}  // namespace

TimeUnit time_unit_of(const Pair& pair) {
  const Unit unit = unit_of(pair.unit.empty() ? pair.hint : pair.unit);
  return pair.clock ? TimeUnit::s : unit.per_step || unit.other ? TimeUnit::unknown : unit.time;
}

std::int64_t covered_steps(const Pair& pair, const CountBefore& before, std::string_view behind) {
  if (time_unit_of(pair) == TimeUnit::unknown) return 0;
  if (const std::int64_t steps = steps_in(pair.key); steps > 0) return steps;
  std::string_view rest;
  if (before.count > 0 && begins_with_steps(before.gap, rest) && rest.find_first_of("|;,") == std::string_view::npos &&
      are_all(rest, {"in", "took", "take", "takes", "time", "elapsed", "duration", "done", "finished", "completed",
                     "within", "ran"}) &&
      are_all(before.key, {"last", "past", "previous", "prev", "latest", "every", "time", "for", "per", "over", "the",
                           "elapsed", "duration", "of", "took", "ran", "did"}))
    return before.count;
  if (!are_all(pair.key, {"time", "elapsed", "took", "dt", "duration"})) return 0;
  std::string_view behind_it = trimmed(behind.substr(0, told_behind));
  const std::size_t digit = behind_it.find_first_of("0123456789");
  if (digit == 0 || digit == std::string_view::npos || behind_it.find_first_of("|;,=:") < digit) return 0;
  const std::string_view joint = behind_it.substr(0, digit);
  if (joint != "(" && joint != "/ " && joint != "/" &&
      (KeyWords(joint).count == 0 || !are_all(joint, {"for", "over", "last", "the", "past", "per"})))
    return 0;
  TextCursor number(behind_it.substr(digit));
  std::int64_t count = 0;
  return number.take(count) && count > 0 && begins_with_steps(number.rest(), rest) ? count : 0;
}

}  // namespace stepladder
