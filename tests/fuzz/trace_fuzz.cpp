// libFuzzer: whatever a profiler's file holds, reading it ends with a step whose rows add up, or with a TraceError.
#include <cmath>
#include <cstdint>
#include <fstream>

#include "storage/traces/difference.h"
#include "storage/traces/kind_roofline.h"
#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

void require(bool is_so) {
  if (!is_so) __builtin_trap();
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-6 * (std::abs(a) + std::abs(b)) + 1e-6;
}

bool is_sound(double figure) {
  return is_missing(figure) || (std::isfinite(figure) && figure >= 0);
}

void check(const TracedProcess& process) {
  const TraceProfile& profile = process.profile;
  double steps = 0, rows = 0, parts = 0;
  for (const TracedStep& step : profile.steps) {
    double kinds = 0;
    for (const double ms : step.ms) kinds += ms;
    require(is_near(kinds, step.dt_ms));
    steps += step.dt_ms;
  }
  for (const TracedOperator& row : profile.operators) {
    require(is_sound(row.time.self_ms) && is_sound(row.time.flops) && is_sound(row.bytes));
    rows += row.time.self_ms;
  }
  for (const AnatomyRow& row : process.anatomy) parts += row.ms;
  require(is_near(rows * static_cast<double>(profile.steps.size()), steps));
  require(is_near(parts * static_cast<double>(profile.steps.size()), steps));
  const Ceiling ceiling{.hardware = "box", .precision = Precision::fp32, .tflops = 10, .bandwidth_gb_s = 100};
  for (const KindRoofline& kind : rooflines(profile, ceiling))
    require(is_sound(kind.tflops()) && is_sound(kind.gb_s()) && is_sound(kind.share()) && kind.known_ms <= kind.ms);
  for (const RowDifference& row : difference(profile.operators, profile.operators).rows)
    require(row.change == RowChange::same);
  for (const KeptStep& step : process.kept) require(slice_count(unpack(step.packed)) == step.slices);
}

}  // namespace
}  // namespace stepladder

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  static const TemporaryFolder folder;
  const std::filesystem::path file = folder / "trace";
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    check(attribute_all(read_trace(file).front()));
  } catch (const TraceError& error) {
    require(*error.what() != '\0');
  }
  return 0;
}
