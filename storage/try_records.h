// Series of tries as values: changes of a checkout that were measured one after the other (docs/try.md). A series is a
// ladder with further columns, the state that try N was judged on is its rung N.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct TrySeries {
  LadderId ladder = 0;
  std::string checkout;  // its folder
  std::string plan;      // JSON, as it is shown: what it was begun with, without secrets
  double begun_at = missing;
  double ended_at = missing;  // missing: it goes on
  std::string answer;         // JSON: the first state against the last one; empty: not measured

  bool is_open() const { return is_missing(ended_at); }
};

// Number 0 is the state that the series began with.
struct Try {
  std::int64_t number = 0;
  std::string message;
  std::int64_t parent = 0;  // the try that was kept last when it began
  std::string tree;         // git's hash of the state
  std::string commit;       // that the checkout was at; empty: none
  std::string patch;        // against the parent's state; empty: too long, or no change
  std::int64_t patch_bytes = 0;
  double begun_at = missing;
  double ended_at = missing;
  std::string verdict;  // "kept", "worse" ...; empty: not judged yet
  std::string answer;   // JSON, as it was printed
};

// A run of a series.
struct TryRun {
  std::int64_t place = 0;   // from 1, in the order of running
  std::int64_t during = 0;  // the try that it was made for; -1: at the end of the series; -2: held out, then
  std::int64_t state = 0;   // the try whose state ran
  RunId run = 0;            // 0: deleted since
  double value = missing;   // of the series' metric, as printed; missing: it failed
  std::string others;       // JSON: its other figures by name
  double wall_s = missing;
  int exit_status = 0;
};

struct StoredTries {
  TrySeries series;
  std::vector<Try> tries;  // by number; the first is the state that the series began with
  std::vector<TryRun> runs;
};

}  // namespace stepladder
