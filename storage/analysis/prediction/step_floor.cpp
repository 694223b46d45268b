// A row whose work is unknown counts in full, so the floor claims no more than what is known.
#include "storage/analysis/prediction/step_floor.h"

#include <algorithm>
#include <array>

namespace stepladder {

StepFloor step_floor(std::span<const LawRow> rows, double tflops, double bandwidth_gb_s) {
  StepFloor floor;
  std::array<KindFloor, all_operator_kinds.size()> sums;
  double work_ms = 0, known_ms = 0;
  for (const LawRow& row : rows) {
    KindFloor& sum = sums[static_cast<std::size_t>(row.kind)];
    sum.kind = row.kind;
    sum.ms += row.ms;
    floor.step_ms += row.ms;
    if (!is_work(row.kind)) {
      const bool stays = row.kind == OperatorKind::communication || row.kind == OperatorKind::data;
      sum.least_ms += stays ? row.ms : 0;
      continue;
    }
    work_ms += row.ms;
    const bool is_known = !is_missing(row.flops) || !is_missing(row.bytes);
    if (!is_known) {
      sum.least_ms += row.ms;
      continue;
    }
    known_ms += row.ms;
    sum.known_ms += row.ms;
    const double compute = is_missing(row.flops) ? 0 : row.flops / tflops / 1e9;
    const double memory = is_missing(row.bytes) ? 0 : row.bytes / bandwidth_gb_s / 1e6;
    sum.least_ms += std::min(row.ms, std::max(compute, memory));
  }
  floor.known_share = work_ms > 0 ? known_ms / work_ms : 0;
  for (const KindFloor& each : sums)
    if (each.ms > 0) floor.kinds.push_back(each);
  std::ranges::stable_sort(floor.kinds, std::greater{}, &KindFloor::gap_ms);
  if (is_missing(tflops) || is_missing(bandwidth_gb_s)) return floor;
  floor.floor_ms = 0;
  for (const KindFloor& each : floor.kinds) floor.floor_ms += each.least_ms;
  return floor;
}

}  // namespace stepladder
