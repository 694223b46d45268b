// Names of the vocabulary's enums, which are stored in files and JSON and therefore never change, and Series, which
// keeps its columns sorted by step. A new column of StepRecord needs a line in `append`.
#include "storage/records.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "storage/by_enum.h"
#include "storage/record_fields.h"

namespace stepladder {
namespace {

constexpr auto status_names = by_enum<RunStatus, std::string_view>("queued", "running", "finished", "stopped", "failed",
                                                                   "interrupted", "reported");
constexpr auto sync_names = by_enum<Sync, std::string_view>("event", "device", "none", "unknown");
constexpr auto request_names = by_enum<RunRequest, std::string_view>("pause", "continue", "stop");
constexpr auto direction_names = by_enum<Direction, std::string_view>("", "lower", "higher");

template <class Names>
auto value_of(const Names& names, std::string_view text, const char* what) {
  if (const auto found = names.find(text)) return *found;
  throw std::invalid_argument("'" + std::string(text) + "' is not " + what);
}

}  // namespace

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string_view to_string(RunStatus status) {
  return status_names[status];
}

RunStatus run_status_from(std::string_view text) {
  return value_of(status_names, text, "the status of a run");
}

std::string_view to_string(Sync sync) {
  return sync_names[sync];
}

Sync sync_from(std::string_view text) {
  return value_of(sync_names, text, "a way to synchronise");
}

std::string_view to_string(RunRequest request) {
  return request_names[request];
}

RunRequest run_request_from(std::string_view text) {
  return value_of(request_names, text, "a request");
}

std::string_view to_string(Direction direction) {
  return direction_names[direction];
}

Direction direction_from(std::string_view text) {
  return value_of(direction_names, text, "a direction");
}

RunId run_of(const RunEvent& event) {
  return std::visit([](const auto& each) { return each.run; }, event);
}

void Series::append(const StepRecord& record) {
  // Nearly always at the end; only a run that was resumed from an earlier step inserts elsewhere.
  const auto place = empty() || step.back() < record.step ? step.end() : std::ranges::lower_bound(step, record.step);
  const auto index = place - step.begin();
  const bool replaces = place != step.end() && *place == record.step;
  const auto put = [&](auto& column, auto value) {
    if (replaces)
      column[static_cast<std::size_t>(index)] = value;
    else
      column.insert(column.begin() + index, value);
  };
  for_each_field(series_columns, [&](const auto& column) { put(this->*column.values, record.*column.of_step); });
}

double Series::tokens_per_s(std::size_t i) const {
  if (tokens[i] <= 0 || !(dt_ms[i] > 0)) return missing;
  return static_cast<double>(tokens[i]) * 1000.0 / dt_ms[i];
}

}  // namespace stepladder
