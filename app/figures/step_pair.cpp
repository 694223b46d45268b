#include "app/figures/step_pair.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "app/profile/trace_owner.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

// The newest trace of each run whose slices are kept.
std::map<RunId, TraceId> traces_of_runs(RunStore& store) {
  std::map<RunId, TraceId> traces;
  for (const StoredTrace& each : store.traces().list())
    if (each.run && !store.traces().details().steps(each.id).empty()) traces[*each.run] = each.id;
  return traces;
}

TracedSide read_side(RunStore& store, const StudyRung& rung, const StoredTrace& trace) {
  TraceDetails details = store.traces().details();
  const std::vector<KeptStepName> steps = details.steps(trace.id);
  std::vector<KeptStepName> of_rank;
  for (const KeptStepName& each : steps)
    if (each.rank == steps.front().rank) of_rank.push_back(each);
  const KeptStepName& median = of_rank[of_rank.size() / 2];
  return {.label = rung.label,
          .trace = trace.id,
          .slices = details.slices(trace.id, median.rank, median.step),
          .doubt = doubt_about(store, trace)};
}

}  // namespace

std::shared_ptr<const StepPair> step_pair(const Study& study, RunStore& store) {
  const std::map<RunId, TraceId> known = traces_of_runs(store);
  const auto trace_of = [&](const StudyRung& rung) -> std::optional<TraceId> {
    for (const Run* run : rung.judged.runs)
      if (const auto found = known.find(run->id); found != known.end()) return found->second;
    return std::nullopt;
  };
  std::vector<std::pair<const StudyRung*, TraceId>> traced;
  for (const StudyRung& rung : study.rungs)
    if (const std::optional<TraceId> trace = trace_of(rung)) traced.emplace_back(&rung, *trace);
  if (traced.size() < 2) return nullptr;
  std::pair<const StudyRung*, TraceId> after = traced.back();
  for (const auto& each : traced)
    if (each.first == study.best()) after = each;
  const auto& before = traced.front();
  if (after.first == before.first) after = traced.back();
  const std::optional<StoredTrace> first = store.traces().find(before.second);
  const std::optional<StoredTrace> second = store.traces().find(after.second);
  if (!first || !second) return nullptr;
  return std::make_shared<const StepPair>(
      StepPair{.before = read_side(store, *before.first, *first),
               .after = read_side(store, *after.first, *second),
               .difference = difference(first->profile.operators, second->profile.operators,
                                        {step_spread(first->profile), step_spread(second->profile)})});
}

}  // namespace stepladder
