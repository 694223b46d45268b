// A run as JSON: the fields that the command line prints, filters by and writes into tables.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "storage/analysis/plausibility.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

using Json = nlohmann::ordered_json;

// `missing` is null; NaN and infinities, which JSON numbers cannot express, are the words "NaN", "inf" and "-inf".
Json number(double value);
Json text_or_null(const std::string& text);  // null if empty
Json count_or_null(std::int64_t count);      // null unless positive

// `flags` and `trust` are those of this run alone.
Json run_json(const Run& run, const Summary& summary, const PlausibilityContext& context = {});

}  // namespace stepladder
