// A claim as a folder that can be handed in: the logs untouched, a README with its table, statistics.md, figures and
// submission.json.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/figures/figure.h"
#include "app/runs/run_json.h"
#include "storage/speedrun/record_claim.h"

namespace stepladder {

struct Submission {
  const RecordPool& pool;
  const RecordPool* baseline = nullptr;
  const RecordClaim& claim;
  const std::optional<RecordRule>& rule;
  ClaimOptions options;
  Json claim_json;                                  // as `record --json` prints it
  std::map<std::string, std::string> explanations;  // by the flag's id
};

// Ids of flags that nothing explains, each once.
std::vector<std::string> unexplained_flags(const Submission& submission);

// The folder appears under its name only when it is complete; it must not exist yet. Blocks. Throws UsageError for an
// unexplained flag, an explanation without its flag, or a pool of runs without logs; StorageError and DataError.
void write_submission(const std::filesystem::path& folder, const Submission& submission);

// The figures: each run's final value against the target; p as runs arrive (no curve without a test); times of both.
Figure figure_of_losses(const Submission& submission);
Figure figure_of_p(const Submission& submission);
Figure figure_of_times(const Submission& submission);

}  // namespace stepladder
