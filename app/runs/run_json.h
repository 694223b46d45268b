// A run as JSON: the fields that the command line prints, filters by and writes into tables.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "storage/analysis/plausibility.h"
#include "storage/analysis/summary.h"
#include "storage/database/curation.h"
#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

// `missing` is null; NaN and infinities, which JSON numbers cannot express, are the words "NaN", "Infinity" and
// "-Infinity".
Json number(double value);
Json text_or_null(const std::string& text);  // null if empty
Json count_or_null(std::int64_t count);      // null unless positive

Json interval_json(const Interval& interval);  // [low, high]; null if it isn't known

// The JSON of each item, in order.
template <class Items, class ToJson>
Json json_list(const Items& items, const ToJson& to_json) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

Json time_json(double unix_seconds);  // ISO 8601 in UTC: "2026-11-26T09:58:17Z"; null if missing

// What a run's JSON says besides its own row and steps (load_run_context).
struct RunContext : PlausibilityContext {
  std::map<RunId, Curation> curations;
  std::set<RunId> paused;
  // A run's speed-up over its ladder's baseline; missing if one isn't known. Null: unknown for all.
  std::function<double(RunId)> factor = {};

  const Curation& curation(RunId run) const;  // an empty one for a run without marks
};

// `flags` and `trust` are those of this run alone. All runs have the same keys.
Json run_json(const Run& run, const Summary& summary, const RunContext& context = {});

}  // namespace stepladder
