// `stepladder check`: the flags of each run, judged by its own steps.
#pragma once

#include <string>
#include <vector>

#include "app/cli/report.h"

namespace stepladder {

struct CheckedRun {
  Run run;
  Plausibility plausibility;
};

std::vector<CheckedRun> check_runs(const std::vector<RunAndSummary>& runs, const PlausibilityContext& context);
Json check_json(const std::vector<CheckedRun>& runs);
std::string check_text(const std::vector<CheckedRun>& runs);

}  // namespace stepladder
