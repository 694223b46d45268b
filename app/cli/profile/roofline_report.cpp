#include "app/cli/profile/roofline_report.h"

#include "app/cli/table.h"
#include "app/environment.h"
#include "app/format.h"

namespace stepladder {
namespace {

std::string or_unknown(double value, const std::string& unit) {
  return is_missing(value) ? "unknown" : compact(value) + unit;
}

// Where the ceiling is from, or what is missing.
std::string ceiling_text(const Ceiling& ceiling) {
  if (ceiling.hardware.empty())
    return "Nothing says which device this trace is from, so there's no ceiling to compare with. Give it with "
           "--hardware NAME.";
  const std::string device = ceiling.hardware + " in " + std::string(to_string(ceiling.precision));
  if (ceiling.precision == Precision::unknown)
    return "Nothing says which precision these products ran in, so there's no ceiling to compare with. Give it with "
           "--precision NAME.";
  if (is_missing(ceiling.tflops) || is_missing(ceiling.bandwidth_gb_s))
    return "The peaks of " + device + " aren't known; `stepladder doctor --probe` measures this machine's.";
  return "Ceiling: " + compact(ceiling.tflops) + " TFLOP/s and " + compact(ceiling.bandwidth_gb_s) + " GB/s of " +
         device + " (" + ceiling.source + ").";
}

}  // namespace

Ceiling ceiling_of(RunStore& store, const StoredTrace& trace, const std::string& hardware,
                   const std::string& precision) {
  std::string device = hardware, type = precision;
  if (trace.run) {
    const Run run = store.existing_run(*trace.run);
    if (device.empty()) device = run.hardware;
    if (type.empty()) type = run.precision;
  }
  return ceiling_of(HardwareTable::load(assets_folder()), device, type);
}

Json roofline_json(const StoredTrace& trace, const Ceiling& ceiling) {
  Json rows = Json::array();
  for (const KindRoofline& each : rooflines(trace.profile.operators, ceiling)) {
    const bool is_bounded = !is_missing(each.attainable);
    rows.push_back({{"kind", to_string(each.kind)},
                    {"busy_ms", each.busy_ms},
                    {"known_ms", each.known_ms},
                    {"flops", number(each.flops)},
                    {"bytes", number(each.bytes)},
                    {"tflops", number(each.tflops)},
                    {"attainable_tflops", number(each.attainable)},
                    {"share", number(each.share())},
                    {"bound", is_bounded ? Json(each.is_memory_bound ? "memory" : "compute") : Json()}});
  }
  return {{"hardware", ceiling.hardware},
          {"precision", ceiling.precision == Precision::unknown ? "" : to_string(ceiling.precision)},
          {"peak_tflops", number(ceiling.tflops)},
          {"bandwidth_gb_s", number(ceiling.bandwidth_gb_s)},
          {"source", ceiling.source},
          {"kinds", std::move(rows)}};
}

std::string roofline_text(const StoredTrace& trace, const Ceiling& ceiling) {
  std::vector<std::vector<std::string>> cells{
      {"kind", "busy", "shapes known", "FLOP/byte", "TFLOP/s", "attainable", "of it", "bound by"}};
  for (const KindRoofline& each : rooflines(trace.profile.operators, ceiling)) {
    const bool is_bounded = !is_missing(each.attainable);
    const double intensity = is_missing(each.bytes) ? missing : each.flops / each.bytes;
    cells.push_back({std::string(to_string(each.kind)), milliseconds_text(each.busy_ms),
                     wording::percent(each.known_ms / each.busy_ms), or_unknown(intensity, ""),
                     or_unknown(each.tflops, ""), or_unknown(each.attainable, ""),
                     is_bounded ? wording::percent(each.share()) : "unknown",
                     is_bounded ? (each.is_memory_bound ? "memory" : "compute") : "unknown"});
  }
  return table(cells, {false, true, true, true, true, true, true, false}) + "\n" + ceiling_text(ceiling) + "\n";
}

}  // namespace stepladder
