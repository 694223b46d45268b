// Reads ledgers line by line; a line that is no row is left out. One run stands behind each row, so a keep is judged by
// the noise that the user names.
#include "app/record/try_ledger.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/verdict/try_verdict.h"
#include "storage/bounded_text.h"
#include "storage/errors.h"
#include "storage/json_values.h"
#include "storage/number_text.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

std::optional<double> number_of(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char letter : line)
    if (letter == '\t')
      cells.emplace_back();
    else if (letter != '\r')
      cells.back() += letter;
  return cells;
}

// commit, metric, memory, status, description: the columns by their names, the metric the second one.
void read_row(const std::vector<std::string>& head, const std::string& line, LedgerRow row, Ledger& ledger) {
  const std::vector<std::string> cells = cells_of(line);
  const auto cell = [&](std::string_view name) -> std::string {
    for (std::size_t i = 0; i < std::min(head.size(), cells.size()); ++i)
      if (head[i] == name) return bounded(cells[i], longest_line);
    return {};
  };
  row.status = cell("status");
  row.commit = cell("commit");
  row.description = cell("description");
  if (row.status.empty() || cells.size() < 2) return;
  if (row.status != "crash") row.value = number_of(cells[1]).value_or(missing);
  row.kept = row.status == "keep";
  ledger.rows.push_back(std::move(row));
}

void read_json(const std::string& line, LedgerRow row, Ledger& ledger) {
  const nlohmann::json json = nests_deep(line) ? nlohmann::json() : nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return;
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? bounded(found->get<std::string>(), longest_line) : "";
  };
  if (!text("metricName").empty()) ledger.metric = text("metricName");
  if (const std::string better = text("bestDirection"); better == "lower" || better == "higher")
    ledger.better = direction_from(better);
  row.status = text("status");
  if (row.status.empty()) return;
  row.commit = text("commit");
  row.description = text("description");
  for (const char* key : {"metric", "value"})
    if (json.contains(key) && json[key].is_number() && is_missing(row.value)) row.value = json[key].get<double>();
  row.kept = row.status == "keep" || row.status == "kept";
  ledger.rows.push_back(std::move(row));
}

}  // namespace

Ledger read_ledger(const std::filesystem::path& file) {
  RegularFile lines(file);
  if (!lines.why().empty()) throw StorageError(file.string() + " " + lines.why());
  Ledger ledger;
  std::vector<std::string> head;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with('{'))
      read_json(line, {.line = number}, ledger);
    else if (head.empty())
      head = cells_of(line);
    else
      read_row(head, line, {.line = number}, ledger);
  }
  if (ledger.metric.empty() && head.size() >= 2) ledger.metric = head[1];
  if (ledger.better == Direction::unknown) ledger.better = direction_of_name(ledger.metric);
  if (ledger.rows.empty())
    throw StorageError(file.string() +
                       " isn't a ledger: neither a table with the columns commit, METRIC, status and description nor "
                       "lines of JSON with status and metric");
  return ledger;
}

std::vector<JudgedKeep> judge_keeps(const Ledger& ledger, Direction better, double noise) {
  constexpr double freedom = 1e6;  // the noise counts as known
  std::vector<JudgedKeep> judged;
  double best = missing;
  std::size_t tries = 0, kept = 0;
  for (std::size_t i = 0; i < ledger.rows.size(); ++i) {
    const LedgerRow& row = ledger.rows[i];
    if (is_missing(best)) {
      if (row.kept && !is_missing(row.value)) best = row.value;
      continue;
    }
    ++tries;
    if (!row.kept || is_missing(row.value)) continue;
    const double gain = better == Direction::lower ? best - row.value : row.value - best;
    const GainEvidence evidence{
        .gain = gain, .variance = 2, .noise = {.squares = noise * noise * freedom, .freedom = freedom}};
    const double margin = 1.959964 * std::sqrt(2.0) * noise;
    const bool holds = gain > 0 && e_value(evidence) >= needed_e_value(tries, kept, FalseKeeps::few);
    if (holds) ++kept;
    judged.push_back(
        {.row = i, .gain = gain, .margin = margin, .is_supported = gain > margin, .holds_together = holds});
    best = row.value;
  }
  return judged;
}

}  // namespace stepladder
