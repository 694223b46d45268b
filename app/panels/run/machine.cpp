#include <imgui.h>

#include <array>
#include <string_view>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"

namespace stepladder {
namespace {

struct Kind {
  const char* name;
  const char* unit;
  double (*value)(const SystemMetrics&);
};
constexpr std::array<Kind, 8> kinds{{
    {"GPU clock", "MHz", [](const SystemMetrics& s) { return s.gpu_clock_mhz; }},
    {"GPU power", "W", [](const SystemMetrics& s) { return s.gpu_power_w; }},
    {"GPU temperature", "C", [](const SystemMetrics& s) { return s.gpu_temperature_c; }},
    {"GPU load", "%", [](const SystemMetrics& s) { return is_missing(s.gpu_load) ? missing : s.gpu_load * 100; }},
    {"CPU load", "%", [](const SystemMetrics& s) { return is_missing(s.cpu_load) ? missing : s.cpu_load * 100; }},
    {"Busy cores", "cores", [](const SystemMetrics& s) { return s.process_cores; }},
    {"Others' cores", "cores", [](const SystemMetrics& s) { return s.contention.other_cores; }},
    {"Memory", "GB",
     [](const SystemMetrics& s) {
       const std::int64_t bytes = s.gpu_memory_bytes > 0 ? s.gpu_memory_bytes : s.resident_bytes;
       return bytes > 0 ? static_cast<double>(bytes) / 1e9 : missing;
     }},
}};

// Derived again when samples have arrived.
void update(MachineMetrics& metrics, const RunDetail& detail) {
  if (metrics.made_of == detail.metrics.size()) return;
  metrics.made_of = detail.metrics.size();
  metrics.columns.assign(kinds.size(), {});
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    auto& [steps, values] = metrics.columns[k];
    for (const SystemMetrics& sample : detail.metrics) {
      const double value = kinds[k].value(sample);
      const auto step = static_cast<double>(sample.step);
      if (is_missing(value) || (!steps.empty() && step < steps.back())) continue;
      steps.push_back(step);
      values.push_back(value);
    }
  }
}

}  // namespace

void draw_run_machine(MachineMetrics& metrics, SharedX& shared, const RunDetail& detail, Commands& commands) {
  if (detail.metrics.empty())
    return text_quiet_wrapped(
        "No machine metrics. Runs trained here record clocks, power, temperature, load and memory twice a second.");
  update(metrics, detail);
  std::vector<std::size_t> shown;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (metrics.columns[k].steps.size() > 1) shown.push_back(k);
  }
  std::vector<ChartMark> throttled;
  for (const SystemMetrics& sample : detail.metrics) {
    if (!sample.throttle_reason.empty())
      throttled.push_back({static_cast<double>(sample.step), "throttled: " + sample.throttle_reason, palette().bad});
  }
  const float gap = px(16);
  const float width = (ImGui::GetContentRegionAvail().x - gap * 2) / 3;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t k = shown[i];
    const auto& [steps, values] = metrics.columns[k];
    if (i % 3 != 0) ImGui::SameLine(0, gap);
    ImGui::BeginChild(kinds[k].name, ImVec2(width, px(150)));
    draw_chart({.id = kinds[k].name,
                .title = kinds[k].name,
                .x_label = "step",
                .unit = kinds[k].unit,
                .curves = {{.label = kinds[k].name, .x = steps, .y = values, .colour = palette().accent}},
                .whole = kinds[k].unit == std::string_view("%") ? 100 : missing,
                .marks = k == 0 ? throttled : std::vector<ChartMark>{},
                .legend = false,
                .shared = &shared,
                .commands = &commands});
    ImGui::EndChild();
  }
}

}  // namespace stepladder
