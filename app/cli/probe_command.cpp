#include "app/cli/probe_command.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <span>

#include "app/format.h"
#include "engine/engine.h"
#include "engine/files/files.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view measured_here = "measured here";

std::string contents(const fs::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

bool was_busy(const PeakProbe& peak) {
  return peak.cpu_share < least_cpu_share;
}

// What the row says: the median, but on a busy machine the fastest sample, since a peak that is too low would call
// honest runs impossible.
double kept_tflops(const PeakProbe& peak, const ProductRate& rate) {
  return was_busy(peak) ? rate.fastest_tflops : rate.tflops;
}

// A lower precision that is slower than float32 is no peak: autocast leaves some products in float32, and a run may be
// faster than it.
Hardware row_of(const PeakProbe& peak, const Hardware* known) {
  Hardware row{.name = peak.hardware, .source = std::string(measured_here)};
  if (known) row.name += " (measured here)";
  if (peak.device == "mps") row.aliases = {row.name};  // "Apple GPU" names no model by itself
  const double fp32 = kept_tflops(peak, peak.rates.front());
  for (const ProductRate& rate : peak.rates) {
    const double tflops = kept_tflops(peak, rate);
    if (tflops >= fp32) row.peak_tflops[static_cast<std::size_t>(precision_from(rate.precision))] = tflops;
  }
  row.bandwidth_gb_s = peak.bandwidth_gb_s;
  row.memory_gb = peak.memory_bytes / 1e9;
  return row;
}

// Read before it is written: a table with a mistake in it is refused with its line and stays as it is. A link stays
// one.
void keep(const Hardware& row, const fs::path& file) {
  std::string csv;
  if (fs::exists(file)) {
    HardwareTable::read(file);
    csv = contents(file);
  }
  const std::string text = with_row(csv, row);
  const fs::path target = fs::weakly_canonical(file);
  std::error_code error;
  fs::create_directories(target.parent_path(), error);  // the file's own error says more
  OutputFile output(target);
  output.write(std::as_bytes(std::span(text)));
  output.commit();
}

double datasheet_peak(const Probe& probe, const std::string& precision) {
  return probe.known ? probe.known->peak_tflops[static_cast<std::size_t>(precision_from(precision))] : missing;
}

}  // namespace

Probe probe_peak(const HardwareTable& table, const std::function<bool()>& stop_requested) {
  Probe probe{.file = HardwareTable::user_file()};
  if (fs::exists(probe.file)) HardwareTable::read(probe.file);  // what is wrong is said before ten seconds are spent
  probe.peak = Engine([](const RunEvent&) {}).measure_peak(stop_requested).get();
  probe.known = table.find(probe.peak.hardware);
  if (probe.known && probe.known->source == measured_here) probe.known = nullptr;  // an earlier probe
  probe.row = row_of(probe.peak, probe.known);
  keep(probe.row, probe.file);
  return probe;
}

Json probe_json(const Probe& probe) {
  const PeakProbe& peak = probe.peak;
  Json rates = Json::array();
  for (const ProductRate& rate : peak.rates) {
    rates.push_back({{"precision", rate.precision},
                     {"tflops", rate.tflops},
                     {"fastest_tflops", rate.fastest_tflops},
                     {"datasheet_tflops", number(datasheet_peak(probe, rate.precision))},
                     {"size", rate.size},
                     {"samples", rate.samples}});
  }
  return {{"hardware", peak.hardware},
          {"device", peak.device},
          {"threads", peak.threads > 0 ? Json(peak.threads) : Json()},
          {"peaks", rates},
          {"bandwidth_gb_s", peak.bandwidth_gb_s},
          {"datasheet_bandwidth_gb_s", number(probe.known ? probe.known->bandwidth_gb_s : missing)},
          {"bandwidth_bytes", peak.bandwidth_bytes},
          {"cpu_share", peak.cpu_share},
          {"datasheet", probe.known ? Json(probe.known->source) : Json()},
          {"row", probe.row.name},
          {"file", probe.file.string()}};
}

std::string probe_text(const Probe& probe) {
  const PeakProbe& peak = probe.peak;
  std::vector<std::vector<std::string>> rows = {{peak.hardware, "measured here", "fastest", "datasheet", "how"}};
  for (const ProductRate& rate : peak.rates) {
    rows.push_back({rate.precision + " TFLOP/s", compact(rate.tflops), compact(rate.fastest_tflops),
                    compact(datasheet_peak(probe, rate.precision)),
                    "median of " + std::to_string(rate.samples) + " samples, matrices of " + grouped(rate.size) +
                        " x " + grouped(rate.size)});
  }
  rows.push_back({"memory GB/s", compact(peak.bandwidth_gb_s), "-",
                  compact(probe.known ? probe.known->bandwidth_gb_s : missing),
                  "a = b + s c over " + bytes_text(static_cast<double>(peak.bandwidth_bytes))});
  std::string text = table(rows, {false, true, true, true, false});
  if (was_busy(peak)) {
    text += "\nOther programs had " + std::to_string(std::lround(100 * (1 - peak.cpu_share))) +
            " % of the cores, so the fastest samples are kept. Probe again when they are done.\n";
  }
  return text + "\nkept as '" + probe.row.name + "' in " + probe.file.string() + "\n";
}

}  // namespace stepladder
