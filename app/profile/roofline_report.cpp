#include "app/profile/roofline_report.h"

#include <algorithm>

#include "app/host/environment.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

std::string or_dash(double value) {
  return is_missing(value) ? "-" : compact(value);
}

}  // namespace

Ceiling ceiling_of(RunStore& store, const StoredTrace& trace, const std::string& hardware,
                   const std::string& precision) {
  const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
  const auto first_known = [](const std::string& named, const std::string& of_run, const std::string& of_trace) {
    return !named.empty() ? named : !of_run.empty() ? of_run : of_trace;
  };
  return ceiling_of(HardwareTable::load(assets_folder()),
                    first_known(hardware, run ? run->hardware : "", trace.hardware),
                    first_known(precision, run ? run->precision : "", trace.precision));
}

Json roofline_json(const std::vector<KindRoofline>& kinds, const Ceiling& ceiling) {
  Json rows = Json::array();
  for (const KindRoofline& each : kinds) {
    rows.push_back({{"kind", to_string(each.kind)},
                    {"ms", each.ms},
                    {"known_ms", each.known_ms},
                    {"flops", number(each.flops)},
                    {"bytes", number(each.bytes)},
                    {"tflops", number(each.tflops())},
                    {"gb_s", number(each.gb_s())},
                    {"least_ms", number(each.least_ms)},
                    {"share", number(each.share())},
                    {"bound", bound_of(each).empty() ? Json() : Json(bound_of(each))}});
  }
  return {{"hardware", ceiling.hardware},
          {"precision", ceiling.precision == Precision::unknown ? "" : to_string(ceiling.precision)},
          {"peak_tflops", number(ceiling.tflops)},
          {"bandwidth_gb_s", number(ceiling.bandwidth_gb_s)},
          {"source", ceiling.source},
          {"kinds", std::move(rows)}};
}

TextTable roofline_table(const std::vector<KindRoofline>& kinds) {
  TextTable table{.heads = {"kind", "ms", "known", "TFLOP/s", "GB/s", "at best", "of the ceiling", "bound by"},
                  .right = {false, true, true, true, true, true, true, false}};
  for (const KindRoofline& each : kinds) {
    const bool is_bounded = !is_missing(each.share());
    table.rows.push_back(
        {std::string(to_string(each.kind)), milliseconds_text(each.ms), percent_text(each.known_ms / each.ms),
         or_dash(each.tflops()), or_dash(each.gb_s()), is_bounded ? milliseconds_text(each.least_ms) : "-",
         is_bounded ? percent_text(each.share()) : "-", is_bounded ? std::string(bound_of(each)) : "unknown"});
  }
  return table;
}

std::string ceiling_text(const std::vector<KindRoofline>& kinds, const Ceiling& ceiling, std::int64_t trace) {
  const bool is_window = trace == 0;
  const auto way = [&](const char* option) {
    return is_window ? std::string(" Attach the trace to a run of known hardware and precision to have one.")
                     : fmt::format(" `stepladder profile show {} --roofline {} NAME` gives it", trace, option);
  };
  if (ceiling.hardware.empty())
    return "Nothing says which device this trace is from, so there's no ceiling to compare with." + way("--hardware") +
           (is_window ? "" : "; `stepladder doctor` says what this machine is called.");
  if (ceiling.precision == Precision::unknown)
    return "Nothing says which precision these products ran in, so there's no ceiling to compare with." +
           way("--precision") + (is_window ? "" : ".");
  const std::string device = ceiling.hardware + " in " + std::string(to_string(ceiling.precision));
  if (!ceiling.known())
    return "The peaks of " + device + " aren't known. " +
           (is_window ? "The view MFU measures those of this machine."
                      : "`stepladder doctor --probe` measures those of the machine that it runs on.");
  std::string text = "Ceiling: " + compact(ceiling.tflops) + " TFLOP/s and " + compact(ceiling.bandwidth_gb_s) +
                     " GB/s of " + device + " (" + ceiling.source + ").";
  if (!is_missing(ceiling.fp8_tflops) && ceiling.precision != Precision::fp8)
    text += " Products in fp8: " + compact(ceiling.fp8_tflops) + " TFLOP/s.";
  const auto is_above = [&](bool by_memory) {
    return std::ranges::any_of(
        kinds, [&](const KindRoofline& each) { return each.is_memory_bound == by_memory && each.share() > 1.02; });
  };
  if (is_above(true)) text += " Above 100 % of the memory: operands were still in a cache, which is faster.";
  if (is_above(false))
    text += std::string(" Above 100 % of the peak: the peak is too low. ") +
            (is_window ? "The view MFU measures it again." : "`stepladder doctor --probe` measures it again.");
  return text;
}

}  // namespace stepladder
