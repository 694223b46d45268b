#include "storage/traces/step_spans.h"

#include <algorithm>

#include "storage/wording.h"

namespace stepladder {
void require_few_steps(std::size_t steps) {
  if (steps > most_steps) throw TraceError("has more than " + grouped(most_steps) + " steps");
}

std::vector<StepSpan> in_order(std::vector<StepSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const StepSpan& a, const StepSpan& b) { return a.start_ns < b.start_ns; });
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) spans[i].end_ns = std::min(spans[i].end_ns, spans[i + 1].start_ns);
  std::erase_if(spans, [](const StepSpan& each) { return each.end_ns <= each.start_ns; });
  require_few_steps(spans.size());
  return spans;
}

void widen(std::map<std::int64_t, StepSpan>& spans, std::int64_t number, std::int64_t start, std::int64_t end) {
  const auto [place, is_new] = spans.try_emplace(number, StepSpan{number, start, end});
  if (is_new) return;
  place->second.start_ns = std::min(place->second.start_ns, start);
  place->second.end_ns = std::max(place->second.end_ns, end);
}

std::vector<StepSpan> marked_steps(const Trace& trace, SliceKind kind, const std::string* process) {
  std::map<std::int64_t, StepSpan> spans;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind != kind || (process && trace.lanes()[slice.lane].process != *process)) continue;
    widen(spans, slice.correlation, slice.start_ns, slice.start_ns + slice.duration_ns);
  }
  std::vector<StepSpan> all;
  for (const auto& [number, span] : spans) all.push_back(span);
  return in_order(std::move(all));
}

const StepSpan* step_at(const std::vector<StepSpan>& steps, std::int64_t ns) {
  const auto behind = std::upper_bound(
      steps.begin(), steps.end(), ns, [](std::int64_t wanted, const StepSpan& each) { return wanted < each.start_ns; });
  return behind != steps.begin() && ns < std::prev(behind)->end_ns ? &*std::prev(behind) : nullptr;
}

}  // namespace stepladder
