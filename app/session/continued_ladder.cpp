#include "app/session/continued_ladder.h"

#include <algorithm>

namespace stepladder {

std::vector<Run> runs_to_continue(std::span<const Run> runs) {
  std::vector<Run> left;
  for (const Run& run : runs) {
    if (!is_over(run.status) || run.source != "launched") return {};
    if (run.status == RunStatus::interrupted || run.status == RunStatus::stopped) left.push_back(run);
  }
  // A run that began and ended is skipped if its rung was trained again later. One that never began still has to be
  // trained.
  for (const Run& later : runs) {
    const auto replaced = std::find_if(left.begin(), left.end(), [&](const Run& run) {
      return run.rung == later.rung && !is_missing(run.started_at) && later.created_at > run.ended_at;
    });
    if (replaced != left.end()) left.erase(replaced);
  }
  std::sort(left.begin(), left.end(), [](const Run& a, const Run& b) { return a.id < b.id; });
  return left;
}

}  // namespace stepladder
