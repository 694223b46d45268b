// Kept passes (`stepladder profile`) for people and other programs: one of them, or two compared row by row. The
// command line, the view Profile and exports take their words and numbers from here. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/profile/call_rows.h"

namespace stepladder {

// "passes 3, on the desk: seed-small, batch 2 x 64 tokens, ..., 2026-11-21 13:20".
std::string head_of(const StoredPasses& passes);
std::string setting_of(const StoredPasses& passes);  // the same without number and name
Json passes_json(const StoredPasses& passes);        // without rows

// Sentences that explain the flags and the rows.
std::vector<std::string> sentences_of(const StoredPasses& passes, const std::vector<CallRow>& rows);

struct ComparedCalls {
  CallRow before, after;
  double factor() const { return before.median_ms / after.median_ms; }
  // is_clear: the means differ by more than twice the error of their difference.
  bool has_few_calls() const;  // fewer than three on a side: their spread isn't known
  bool is_clear() const;
};

// The rows that both have, by the lowest mean after.
struct PassComparison {
  std::vector<ComparedCalls> rows;
  std::vector<std::string> sentences;  // what makes the two hard to compare, and what their clocks show
};
PassComparison compare_passes(const StoredPasses& before, const StoredPasses& after);
TextTable comparison_table(const PassComparison& comparison);

// As files: of one or, if `comparison` isn't null, of two.
std::string passes_csv(const std::vector<CallRow>& rows, const PassComparison* comparison);
std::string passes_markdown(const StoredPasses& after, const StoredPasses* before, const PassComparison* comparison);
Json passes_with_rows(const StoredPasses& passes, const std::vector<CallRow>& rows);
Json comparison_json(const StoredPasses& before, const StoredPasses& after, const PassComparison& comparison);

}  // namespace stepladder
