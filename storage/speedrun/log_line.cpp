// Recognises step, clock and metric in lines of speed runs by exact keys. Unlike the importers' tolerant reader it must
// never guess: these numbers decide a record claim.
#include "storage/speedrun/log_line.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_prefix = 64;  // "[rank0]: ", a date
constexpr std::int64_t most_steps = 1'000'000'000'000;

struct Number {
  double value;
  std::size_t end;
};

std::size_t skip(std::string_view line, std::size_t at, std::string_view characters) {
  while (at < line.size() && characters.find(line[at]) != std::string_view::npos) ++at;
  return at;
}

std::optional<Number> number_at(std::string_view line, std::size_t at) {
  double value = 0;
  if (at < line.size() && line[at] == '+') ++at;
  const char* const end = line.data() + line.size();
  const auto [stopped, error] = std::from_chars(line.data() + at, end, value);
  if (stopped == line.data() + at) return {};
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<double>::infinity();
  return Number{value, static_cast<std::size_t>(stopped - line.data())};
}

std::optional<std::int64_t> count_at(std::string_view line, std::size_t& at) {
  std::int64_t value = 0;
  const auto [stopped, error] = std::from_chars(line.data() + at, line.data() + line.size(), value);
  if (error != std::errc() || value < 0 || value > most_steps) return {};
  at = static_cast<std::size_t>(stopped - line.data());
  return value;
}

std::optional<Number> find_number(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    if (at > 0 && is_word(line[at - 1])) continue;  // "x_val_loss:"
    if (const auto number = number_at(line, skip(line, at + key.size(), " \t"))) return number;
  }
  return {};
}

// A duration by the unit behind it.
std::optional<double> in_milliseconds(std::string_view line, const std::optional<Number>& number) {
  if (!number || !std::isfinite(number->value)) return {};
  const std::string_view unit = line.substr(number->end);
  if (unit.starts_with("ms")) return number->value;
  if (unit.starts_with("s")) return number->value * 1e3;
  if (unit.starts_with("m")) return number->value * 60e3;
  return {};
}

}  // namespace

std::optional<StepMark> step_mark(std::string_view line) {
  const std::string_view start = line.substr(0, longest_prefix);
  for (std::size_t at = 0; at < start.size(); ++at) {
    if (at > 0 && is_word(start[at - 1])) continue;
    const bool word = equal_in_lower(start.substr(at, 4), "step");
    if (!word && !(at == 0 && start.starts_with("s:"))) continue;
    std::size_t end = at + (word ? 4 : 1);
    if (end >= line.size() || (line[end] != ':' && !is_space(line[end]))) continue;
    end = skip(line, end, ": \t");
    StepMark mark;
    const auto step = count_at(line, end);
    if (!step || (end < line.size() && (is_word(line[end]) || line[end] == '.'))) continue;
    mark.step = *step;
    if (end < line.size() && line[end] == '/') {
      std::size_t after = end + 1;
      if (const auto of = count_at(line, after)) mark.of = *of, end = after;
    }
    mark.begin = at;
    mark.end = end;
    return mark;
  }
  return {};
}

std::optional<double> leading_number(std::string_view text) {
  std::size_t end = 0;
  return leading_number(text, end);
}

std::optional<double> leading_number(std::string_view text, std::size_t& end) {
  const auto number = number_at(text, skip(text, 0, " \t"));
  if (!number) return {};
  end = number->end;
  return number->value;
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const auto number = find_number(line, key);
  return number ? std::optional(number->value) : std::nullopt;
}

std::optional<double> metric_in(std::string_view line, std::string_view metric) {
  if (metric == "core_metric") {
    const auto value = number_after(line, "CORE metric:");
    return value ? value : number_after(line, "core_metric:");
  }
  if (metric == "val_bpb") {
    const auto value = number_after(line, "val_bpb:");
    return value ? value : number_after(line, "Validation bpb:");
  }
  if (metric != "val_loss") {
    for (const char* const end : {":", "=", " :", " ="})
      if (const auto value = number_after(line, std::string(metric) + end)) return value;
    return {};
  }
  for (const std::string_view key : {"val_loss:", "val loss:", "val loss", "val_loss=", "tel:"})
    if (const auto value = number_after(line, key)) return value;
  return {};
}

std::optional<double> clock_in(std::string_view line) {
  const auto number = find_number(line, "train_time:");
  return in_milliseconds(line, number ? number : find_number(line, "total time:"));
}

std::optional<double> step_average_in(std::string_view line) {
  return in_milliseconds(line, find_number(line, "step_avg:"));
}

}  // namespace stepladder
