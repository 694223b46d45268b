// Ledgers that other loops keep of what they tried: results.tsv of autoresearch, .auto/log.jsonl of pi-autoresearch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct LedgerRow {
  std::int64_t line = 0;
  double value = missing;  // missing: it crashed
  bool kept = false;
  std::string status, commit, description;
};

struct Ledger {
  std::string metric;
  Direction better = Direction::unknown;  // as the file or the metric's name says
  std::vector<LedgerRow> rows;
};

// Throws StorageError if the file is neither.
Ledger read_ledger(const std::filesystem::path& file);

// A kept row against the best one before it, where one run's standard deviation is `noise`.
struct JudgedKeep {
  std::size_t row = 0;
  double gain = missing;        // above 0 is better
  double margin = missing;      // half of its 95 % interval
  bool is_supported = false;    // the gain alone is beyond what two single runs differ by in 95 %
  bool holds_together = false;  // also by the rule of `try`, which bounds the false keeps of the whole series
};
std::vector<JudgedKeep> judge_keeps(const Ledger& ledger, Direction better, double noise);

}  // namespace stepladder
