#include "storage/importers/constant_values.h"

#include <algorithm>
#include <array>

#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_text = 120;
constexpr std::size_t most_texts = 100;

// Parts and ends of the names of numbers that are measured or counted, in lower case. Anything else that is the same on
// all steps was set.
constexpr std::array<std::string_view, 27> of_measurements = {
    "mem",      "gpu",  "cuda",  "util",       "power", "watt", "temp",  "time",  "throughput",
    "flop",     "mfu",  "sec",   "tokens",     "tok/s", "step", "iter",  "epoch", "loss",
    "accuracy", "norm", "score", "perplexity", "nan",   "skip", "count", "total", "bytes"};
constexpr std::array<std::string_view, 5> ends_of_measurements = {"_ms", "_s", "_acc", "/acc", "percent"};

bool is_learning_rate(std::string_view name) {
  std::string folded = lower_case(std::string(name.substr(name.find_last_of("./") + 1)));
  std::erase_if(folded, [](char c) { return c == '_' || c == '-' || c == ' '; });
  return folded == "lr" || folded == "learningrate";
}

bool has(const Json& recipe, std::string_view name) {
  if (recipe.contains(name)) return true;
  if (!is_learning_rate(name)) return false;
  for (const auto& [known, value] : recipe.items())
    if (is_learning_rate(known)) return true;
  return false;
}

}  // namespace

bool may_be_setting(std::string_view name, std::string_view unit) {
  if (is_learning_rate(name)) return true;
  if (!unit.empty()) return false;
  const std::string lower = lower_case(std::string(name));
  const auto contains = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  const auto ends = [&](std::string_view end) { return lower.ends_with(end); };
  return std::ranges::none_of(of_measurements, contains) && std::ranges::none_of(ends_of_measurements, ends);
}

void add_constant(Json& recipe, std::string_view name, const ConstantNumber& number, std::int64_t steps) {
  const std::string_view key = is_learning_rate(name) ? std::string_view("lr") : name;
  if (!number.describes(steps) || has(recipe, key)) return;
  const bool is_whole = number.value == std::floor(number.value) && std::fabs(number.value) < 1e15;
  recipe[std::string(key)] = is_whole ? Json(static_cast<std::int64_t>(number.value)) : Json(number.value);
}

void add_constant_text(Json& recipe, std::string_view name, std::string_view text) {
  if (!has(recipe, name)) recipe[std::string(name)] = std::string(text);
}

void ConstantTexts::add(std::string_view name, std::string_view text) {
  if (text.empty()) return;
  const auto known = texts_.find(name);
  if (known != texts_.end()) {
    if (!known->second.empty() && known->second != text) known->second.clear();
  } else if (texts_.size() < most_texts) {
    texts_.emplace(name, text.size() > longest_text ? std::string_view() : text);
  }
}

}  // namespace stepladder
