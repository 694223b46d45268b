#include "storage/traces/kind_roofline.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace stepladder {
namespace {

Work work_of_row(const TracedOperator& row) {
  return {row.time.flops, row.bytes};
}

// Knows the launchers whose work is known. Of several kernels that an operator launches, only one has its work; the
// time of the others of that kind counts as known too.
class KnownLaunchers {
 public:
  explicit KnownLaunchers(const TraceProfile& profile) {
    for (const TracedOperator& row : profile.operators) {
      if (!row.launcher.empty() && work_of_row(row).is_known()) known_.insert(key(row));
    }
  }
  bool has(const TracedOperator& row) const { return !row.launcher.empty() && known_.count(key(row)) > 0; }

 private:
  using Key = std::tuple<OperatorKind, std::string_view, std::string_view, std::string_view>;
  static Key key(const TracedOperator& row) { return {kind_of(row), row.time.part, row.launcher, row.time.shapes}; }
  std::set<Key> known_;
};

// Adds the least time of a row.
void add_least(KindRoofline& sum, const Work& work, const Ceiling& ceiling, double& memory_ms) {
  const double compute = is_missing(work.flops) ? 0 : work.flops / ceiling.tflops / 1e9;
  const double memory = is_missing(work.bytes) ? 0 : work.bytes / ceiling.bandwidth_gb_s / 1e6;
  sum.least_ms = (is_missing(sum.least_ms) ? 0 : sum.least_ms) + std::max(compute, memory);
  if (memory > compute) memory_ms += memory;
}

}  // namespace

std::string_view bound_of(const KindRoofline& kind) {
  return is_missing(kind.share()) ? "" : kind.is_memory_bound ? "memory" : "compute";
}

Ceiling ceiling_of(const HardwareTable& table, std::string_view hardware, std::string_view precision) {
  Ceiling ceiling{.hardware = std::string(hardware), .precision = precision_from(precision)};
  const std::string measured = ceiling.hardware + " (measured here)";
  const Hardware* row = nullptr;
  for (const Hardware& each : table.all()) {
    if (each.name == measured) row = &each;
  }
  if (!row && !hardware.empty()) row = table.find(hardware);
  if (!row) return ceiling;
  if (ceiling.precision != Precision::unknown)
    ceiling.tflops = row->peak_tflops[static_cast<std::size_t>(ceiling.precision)];
  ceiling.fp8_tflops = row->peak_tflops[static_cast<std::size_t>(Precision::fp8)];
  ceiling.bandwidth_gb_s = row->bandwidth_gb_s;
  ceiling.source = row->source;
  return ceiling;
}

Ceiling of_rank(Ceiling ceiling, const TraceProfile& profile) {
  const double sharing = profile.on_gpu ? 1 : std::max(profile.ranks, 1);
  for (double* peak : {&ceiling.tflops, &ceiling.fp8_tflops, &ceiling.bandwidth_gb_s}) *peak /= sharing;
  return ceiling;
}

Ceiling of_operator(Ceiling ceiling, std::string_view name) {
  const bool is_fp8 = name.find("_scaled_mm") != std::string_view::npos;
  if (is_fp8 && !is_missing(ceiling.fp8_tflops))
    ceiling.precision = Precision::fp8, ceiling.tflops = ceiling.fp8_tflops;
  return ceiling;
}

KindRoofline roofline_of(const Work& work, double ms, const Ceiling& ceiling) {
  KindRoofline roofline{.ms = ms, .known_ms = ms, .flops = work.flops, .bytes = work.bytes};
  if (!ceiling.known() || !work.is_known()) return roofline;
  double memory_ms = 0;
  add_least(roofline, work, ceiling, memory_ms);
  roofline.is_memory_bound = 2 * memory_ms > roofline.least_ms;
  return roofline;
}

std::vector<KindRoofline> rooflines(const TraceProfile& profile, const Ceiling& of_device) {
  const Ceiling ceiling = of_rank(of_device, profile);
  const KnownLaunchers launchers(profile);
  std::array<KindRoofline, all_operator_kinds.size()> sums;
  std::array<double, all_operator_kinds.size()> memory_ms{};
  for (const TracedOperator& row : profile.operators) {
    const OperatorKind kind = kind_of(row);
    const double ms = profile.on_gpu ? row.busy_ms : row.time.self_ms;
    if (!is_work(kind) || ms <= 0) continue;
    KindRoofline& sum = sums[static_cast<std::size_t>(kind)];
    sum.kind = kind;
    sum.ms += ms;
    const Work work = work_of_row(row);
    if (!work.is_known() && !launchers.has(row)) continue;
    sum.known_ms += ms;
    Work total{sum.flops, sum.bytes};
    total += work;
    sum.flops = total.flops;
    sum.bytes = total.bytes;
    const Ceiling own = of_operator(ceiling, row.launcher.empty() ? row.time.name : row.launcher);
    if (own.known()) add_least(sum, work, own, memory_ms[static_cast<std::size_t>(kind)]);
  }
  std::vector<KindRoofline> kinds;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].ms <= 0) continue;
    sums[i].is_memory_bound = !is_missing(sums[i].least_ms) && memory_ms[i] * 2 > sums[i].least_ms;
    kinds.push_back(sums[i]);
  }
  std::ranges::stable_sort(kinds, std::greater{}, &KindRoofline::ms);
  return kinds;
}

}  // namespace stepladder
