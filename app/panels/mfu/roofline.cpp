// Draws the roofline of one device: the chosen one's ceilings, and runs as points. Points of other devices are hollow,
// since this isn't their roof; a run that can't be right, here or under its own roof, is a cross.
#include "storage/analysis/roofline.h"

#include <fmt/format.h>
#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/mfu/parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

std::string bytes_sum(const StepTraffic& traffic) {
  return "weights " + bytes_text(traffic.weights) + " + gradients " + bytes_text(traffic.gradients) + " + optimiser " +
         bytes_text(traffic.optimizer) + " + activations " + bytes_text(traffic.activations) + " = " +
         bytes_text(traffic.total());
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  void include(double value) {
    if (!std::isfinite(value) || value <= 0) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// 1, 2 and 5 of each decade, or only the decades if that would be too many.
std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  const bool few = std::log10(high / low) > 3;
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (few && factor > 1) continue;
      if (decade * factor >= low && decade * factor <= high) ticks.push_back(decade * factor);
    }
  }
  return ticks;
}

int axis_number(double value, char* text, int size, void*) {
  const std::string number = value >= 1000 ? grouped(std::llround(value)) : fmt::format("{:.4g}", value);
  return std::snprintf(text, static_cast<std::size_t>(size), "%s", number.c_str());
}

constexpr std::array precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8};

struct Ceiling {
  double tflops;
  std::string words;  // names of the precisions that share it: "bf16, fp16"
};

struct Roof {
  const Hardware* hardware;
  double peak;       // of the chosen precision
  double bandwidth;  // of the memory, GB/s
  std::vector<Ceiling> ceilings;
};

// The table's peaks of the device, or a peak entered by hand.
Roof roof_of(const MfuForm& form, const HardwareTable& table) {
  const Hardware* hardware = hardware_of(form, table);
  Roof roof{hardware, peak_of(form, table), hardware ? hardware->bandwidth_gb_s : missing, {}};
  if (!is_missing(form.values[number_peak])) {
    roof.ceilings = {{roof.peak, "custom"}};
  } else if (hardware) {
    for (const Precision precision : precisions) {
      const double peak = peak_of(*hardware, precision);
      if (is_missing(peak)) continue;
      const std::string name(to_string(precision));
      const auto same = std::ranges::find(roof.ceilings, peak, &Ceiling::tflops);
      if (same == roof.ceilings.end()) {
        roof.ceilings.push_back({peak, name});
      } else {
        same->words += ", " + name;
      }
    }
  }
  return roof;
}

// Ends at x, above the line or beneath it.
void label_at(double x, double y, const std::string& text, const ImVec4& colour, bool above) {
  const ImVec2 at = ImPlot::PlotToPixels(x, y);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const ImVec2 low(at.x - size.x, at.y + (above ? -size.y - px(2) : px(2)));
  ImPlot::PushPlotClipRect();
  ImDrawList* draw = ImPlot::GetPlotDrawList();  // on a ground of its own: points may be there
  draw->AddRectFilled(ImVec2(low.x - px(3), low.y), ImVec2(low.x + size.x + px(3), low.y + size.y),
                      u32(palette().card, 0.85f), px(3));
  draw->AddText(low, u32(colour), text.c_str());
  ImPlot::PopPlotClipRect();
}

void plot_line(const char* id, double x0, double y0, double x1, double y1, const ImVec4& colour, float weight) {
  const std::array<double, 2> x = {x0, x1};
  const std::array<double, 2> y = {y0, y1};
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.LineWeight = px(weight);
  spec.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotLine(id, x.data(), y.data(), 2, spec);
}

void draw_tooltip(const RooflinePoint& point, const Hardware* hardware, MfuConvention convention) {
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(460));
  text_strong(point.name);
  ImGui::TextUnformatted((compact(point.tflops) + " TFLOP/s per device at " + compact(point.intensity) +
                          " FLOP/byte, by " + std::string(to_string(convention)))
                             .c_str());
  text_quiet_wrapped("A step moves about " + point.bytes);
  if (!point.impossible.empty()) text_toned_wrapped("Cross: " + point.impossible + ".", Tone::bad);
  if (point.impossible.empty() && (!hardware || point.hardware != hardware->name))
    text_quiet_wrapped("Hollow: ran on " + (point.hardware.empty() ? std::string("unknown hardware") : point.hardware) +
                       ", so this roof doesn't apply.");
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

// What a point's look means. The sign is drawn around `at`.
enum class PointLook { here, elsewhere, impossible };

PointLook look_of(const RooflinePoint& point, const Roof& roof) {
  const bool is_own = roof.hardware && point.hardware == roof.hardware->name;
  // Never above the roof if the peak is missing.
  if (!point.impossible.empty() || (is_own && point.tflops > roof.peak)) return PointLook::impossible;
  return is_own ? PointLook::here : PointLook::elsewhere;
}

void draw_sign(ImDrawList* draw, ImVec2 at, PointLook look, float radius, ImU32 colour) {
  if (look == PointLook::impossible) {
    draw->AddLine(ImVec2(at.x - radius, at.y - radius), ImVec2(at.x + radius, at.y + radius), colour, px(2));
    draw->AddLine(ImVec2(at.x - radius, at.y + radius), ImVec2(at.x + radius, at.y - radius), colour, px(2));
  } else if (look == PointLook::here) {
    draw->AddCircleFilled(at, radius, colour);
  } else {
    draw->AddCircle(at, radius, colour, 0, px(1.5f));
  }
}
void draw_points(const Roofline& roofline, RunId chosen, const Roof& roof, MfuConvention convention) {
  const RooflinePoint* under_mouse = nullptr;
  float nearest = px(9) * px(9);
  const ImVec2 mouse = ImGui::GetMousePos();
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  for (const RooflinePoint& point : roofline.points) {
    const ImVec2 at = ImPlot::PlotToPixels(point.intensity, point.tflops);
    const PointLook look = look_of(point, roof);
    const bool is_chosen = point.run == chosen;
    const ImVec4 colour = look == PointLook::impossible ? palette().bad : is_chosen ? palette().accent : palette().text;
    draw_sign(draw, at, look, px(is_chosen ? 5.5f : 4),
              u32(colour, look != PointLook::elsewhere || is_chosen ? 0.9f : 0.45f));
    const float far = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
    if (far < nearest) {
      nearest = far;
      under_mouse = &point;
    }
  }
  ImPlot::PopPlotClipRect();
  if (under_mouse && ImPlot::IsPlotHovered()) draw_tooltip(*under_mouse, roof.hardware, convention);
}

constexpr const char* how_estimated =
    "Intensity is an estimate: a step's FLOPs by the chosen convention over the bytes that its tensors move when each "
    "is written once and read once. Weights: 2 bytes (bf16, fp16) or 4, twice per micro-batch. "
    "Gradients: 4 N bytes written. AdamW: 28 N (weight, gradient and two moments read, weight and moments written). "
    "Activations: 16 d values per layer and token, and the logits, each written and read (Korthikanti et al. 2022, "
    "section 4.1, without dropout). Less fused kernels move more, so they are further left; a model that fits in the "
    "cache moves less. The roof: min(peak, bandwidth x intensity) (Williams et al. 2009).\n\n"
    "A point is a run: filled on this hardware, hollow on other hardware, a cross if its speed is impossible. All "
    "figures are of one device. Runs of unknown shape, tokens per step or throughput are left out.";

void draw_head(const Roofline& roofline, const Hardware* hardware) {
  text_strong("Roofline");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  std::string note = hardware ? hardware->name : "no hardware selected";
  if (!roofline.points.empty()) note += "  \xE2\x80\x93  " + plural(roofline.points.size(), "run");
  const float help = px(70);
  text_cut(note, std::max(px(20), ImGui::GetContentRegionAvail().x - help - px(8)), palette().quiet, fonts().regular,
           small_size);
  ImGui::SameLine(ImGui::GetContentRegionMax().x - help);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(7));
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::Button("Method", ImVec2(help, 0));
  ImGui::PopFont();
  wrapped_tooltip(how_estimated, 480);
}

void draw_ceilings(const Roof& roof, const Range& x, const Range& y) {
  double highest = 0;
  for (const Ceiling& ceiling : roof.ceilings) highest = std::max(highest, ceiling.tflops);
  for (const Ceiling& ceiling : roof.ceilings) {
    const bool is_chosen = ceiling.tflops == roof.peak;
    const double ridge = ridge_intensity(ceiling.tflops, roof.bandwidth);
    const ImVec4 colour = is_chosen ? palette().text : faded(palette().quiet, 0.7f);
    plot_line(("##" + ceiling.words).c_str(), is_missing(ridge) ? x.low : ridge, ceiling.tflops, x.high, ceiling.tflops,
              colour, is_chosen ? 2.0f : 1.2f);
    label_at(x.high * 0.97, ceiling.tflops, ceiling.words + "  " + compact_in_unit(ceiling.tflops) + " TFLOP/s",
             is_chosen ? palette().text : palette().quiet, ceiling.tflops == highest);
  }
  const double ridge = ridge_intensity(highest, roof.bandwidth);
  if (is_missing(ridge)) return;
  plot_line("##memory", x.low, attainable_tflops(x.low, highest, roof.bandwidth), ridge, highest, palette().text, 2);
  const double middle = std::max(x.low * 1.25, y.low * 1.6e3 / roof.bandwidth);
  const ImVec2 at = ImPlot::PlotToPixels(middle, attainable_tflops(middle, highest, roof.bandwidth));
  const std::string words = "memory  " + grouped(std::llround(roof.bandwidth)) + " GB/s";
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddText(ImVec2(at.x + px(10), at.y - px(2)), u32(palette().quiet), words.c_str());
  ImPlot::PopPlotClipRect();
}

void draw_plot(const Roofline& roofline, const Roof& roof, RunId chosen, MfuConvention convention) {
  Range x;
  Range y;
  for (const RooflinePoint& point : roofline.points) {
    x.include(point.intensity);
    y.include(point.tflops);
  }
  for (const Ceiling& ceiling : roof.ceilings) {
    y.include(ceiling.tflops);
    x.include(ridge_intensity(ceiling.tflops, roof.bandwidth));
  }
  if (!(x.high > 0)) x = {10, 1000};
  x = {x.low / 4, x.high * 5};
  y = {std::min(y.low / 2, y.high / 50), y.high * 2.2};
  const float foot = ImGui::GetTextLineHeight() * (small_size / text_size) + px(6);
  const ImVec2 size(ImGui::GetContentRegionAvail().x, ImGui::GetContentRegionAvail().y - foot);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot("##roofline", size,
                        ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend)) {
    ImPlot::SetupAxes("FLOP per byte", "TFLOP/s per device", ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    ImPlot::SetupAxisFormat(ImAxis_X1, axis_number);
    ImPlot::SetupAxisFormat(ImAxis_Y1, axis_number);
    const std::vector<double> x_ticks = log_ticks(x.low, x.high);
    const std::vector<double> y_ticks = log_ticks(y.low, y.high);
    if (x_ticks.size() > 1) ImPlot::SetupAxisTicks(ImAxis_X1, x_ticks.data(), static_cast<int>(x_ticks.size()));
    if (y_ticks.size() > 1) ImPlot::SetupAxisTicks(ImAxis_Y1, y_ticks.data(), static_cast<int>(y_ticks.size()));
    ImPlot::SetupAxisLimits(ImAxis_X1, x.low, x.high, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, y.low, y.high, ImPlotCond_Always);
    ImPlot::SetupFinish();
    draw_points(roofline, chosen, roof, convention);
    draw_ceilings(roof, x, y);  // whose labels are above the points
    ImPlot::EndPlot();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

std::string bound_of(const Roofline& roofline, const Roof& roof, RunId chosen) {
  const auto point = std::ranges::find(roofline.points, chosen, &RooflinePoint::run);
  const double ridge = ridge_intensity(roof.peak, roof.bandwidth);
  if (point == roofline.points.end() || is_missing(ridge)) return "";
  return (point->intensity < ridge ? "memory-bound: " : "compute-bound: ") + compact(point->intensity) +
         " FLOP/byte, ridge at " + compact(ridge);
}

// "1 without throughput, 7 without shape or batch"; empty if all are drawn.
std::string why_not_drawn(const Roofline& roofline) {
  std::string text;
  if (roofline.without_speed > 0) text = grouped(roofline.without_speed) + " without throughput";
  if (roofline.without_shape > 0)
    text += (text.empty() ? "" : ", ") + grouped(roofline.without_shape) + " without shape or batch";
  return text;
}

// The answer above has the bound of the calculator's run.
std::string foot_line(const Roofline& roofline, const Roof& roof, RunId chosen) {
  if (roof.ceilings.empty()) return "No roof: choose hardware or enter a peak above";
  if (const std::size_t left_out = roofline.without_speed + roofline.without_shape; left_out > 0)
    return plural(left_out, "run") + " not drawn";
  if (roofline.points.empty()) return "Runs of known shape and batch appear as points";
  return capitalised(bound_of(roofline, roof, chosen));
}

// The signs that are in the chart, and what they mean; on the line goes on what the foot line says.
void draw_legend(const Roofline& roofline, const Roof& roof) {
  ImGui::PushFont(fonts().regular, small_size);
  for (const auto& [look, words] :
       {std::pair(PointLook::here, "this hardware"), std::pair(PointLook::elsewhere, "other hardware"),
        std::pair(PointLook::impossible, "impossible")}) {
    const auto has_it = [&](const RooflinePoint& point) { return look_of(point, roof) == look; };
    if (std::ranges::none_of(roofline.points, has_it) || (look == PointLook::elsewhere && !roof.hardware)) continue;
    const float line = ImGui::GetTextLineHeight();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec4 colour = look == PointLook::impossible ? palette().bad : palette().text;
    draw_sign(ImGui::GetWindowDrawList(), ImVec2(at.x + px(5), at.y + line / 2), look, px(4), u32(colour));
    ImGui::Dummy(ImVec2(px(12), line));
    same_line(4);
    text_quiet(words);
    mark("mfu.legend." + std::to_string(static_cast<int>(look)));
    same_line(14);
  }
  ImGui::PopFont();
}

}  // namespace

std::string bound_text(const Roofline& roofline, const MfuForm& form, const HardwareTable& table) {
  return bound_of(roofline, roof_of(form, table), form.run);
}

Roofline roofline_of(const std::vector<RunEntry>& runs, MfuConvention convention, const HardwareTable& table) {
  Roofline roofline;
  for (const RunEntry& entry : runs) {
    const StepShape shape = step_shape_of(entry.run, entry.summary);
    const double flops = flops_per_token(convention, shape.model);
    if (is_missing(entry.summary.tokens_per_s)) {
      ++roofline.without_speed;
      continue;
    }
    if (!shape.known() || is_missing(flops)) {
      ++roofline.without_shape;
      continue;
    }
    const Peak peak = peak_of(entry.run, table);
    const SpeedDoubt doubt = speed_doubt(entry, table);
    roofline.points.push_back({.run = entry.run.id,
                               .name = entry.run.name,
                               .intensity = arithmetic_intensity(convention, shape),
                               .tflops = flops * entry.summary.tokens_per_s / peak.devices / 1e12,
                               .hardware = peak.hardware ? peak.hardware->name : "",
                               .bytes = bytes_sum(step_traffic(shape)),
                               .impossible = doubt.trust == Trust::impossible ? doubt.why : ""});
  }
  return roofline;
}

void draw_roofline(const Roofline& roofline, const MfuForm& form, MfuConvention convention,
                   const HardwareTable& table) {
  const Roof roof = roof_of(form, table);
  draw_head(roofline, roof.hardware);
  if (roof.ceilings.empty() && roofline.points.empty()) {
    empty_state("No hardware selected", "Choose hardware above to draw its roofline here.");
    return;
  }
  draw_plot(roofline, roof, form.run, convention);
  draw_legend(roofline, roof);
  mark("mfu.not_drawn." + std::to_string(roofline.without_speed) + "." + std::to_string(roofline.without_shape));
  text_cut(foot_line(roofline, roof, form.run), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular,
           small_size);
  if (const std::string why = why_not_drawn(roofline); !why.empty()) wrapped_tooltip("Not drawn: " + why, 320);
}

}  // namespace stepladder
