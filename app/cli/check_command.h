// `stepladder check`: which runs have numbers to distrust, and why.
#pragma once

#include <string>
#include <vector>

#include "app/cli/report.h"

namespace stepladder {

struct CheckedRun {
  Run run;
  std::vector<Flag> flags;
};

std::vector<CheckedRun> check_runs(const std::vector<RunAndSummary>& runs, const PlausibilityContext& judge);
Json check_json(const std::vector<CheckedRun>& runs);
std::string check_text(const std::vector<CheckedRun>& runs);

}  // namespace stepladder
