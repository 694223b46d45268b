// What the icicle shows besides its slices: the range that was dragged over, arrows from a launch to its kernels, the
// hits of a search, and the tooltip of a slice.
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/icicle.h"
#include "app/text/format.h"
#include "storage/traces/kind_roofline.h"

namespace stepladder {
namespace {

constexpr float row_middle = 9;

void quiet_line(const std::string& text) {
  if (!text.empty()) text_quiet(text);
}

// "512x768 768x3072, 2.42 GFLOP, 6.29 MB".
std::string work_text(const SliceDetail& detail) {
  std::string text = detail.shapes;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (!is_missing(detail.flops)) add(compact(detail.flops / 1e9) + " GFLOP");
  if (!is_missing(detail.bytes)) add("at least " + bytes_text(detail.bytes) + " moved");
  return text;
}

// "412 TFLOP/s, 310 GB/s: 42 % of the ceiling, bound by compute".
std::string rate_text(const SliceDetail& detail, double ns, const Ceiling& peak) {
  const KindRoofline reached = roofline_of({detail.flops, detail.bytes}, ns / 1e6, peak);
  std::string text;
  if (!is_missing(detail.flops)) text = compact(reached.tflops()) + " TFLOP/s";
  if (!is_missing(detail.bytes)) text += (text.empty() ? "" : ", ") + compact(reached.gb_s()) + " GB/s";
  if (text.empty()) return text;
  return text + (is_missing(reached.share()) ? "; the device's peak isn't known"
                                             : ": " + percent_text(reached.share()) + " of the ceiling, bound by " +
                                                   std::string(bound_of(reached)));
}

}  // namespace

void Icicle::draw_range(ImVec2 at, ImVec2 size) const {
  if (!range_) return;
  const auto x = [&](double ns) {
    const float share = static_cast<float>((ns - shown_.from_ns) / shown_.length());
    return std::clamp(at.x + share * size.x, at.x - px(2), at.x + size.x + px(2));
  };
  const float from = x(range_->from_ns), to = x(range_->to_ns);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(ImVec2(from, at.y), ImVec2(to, at.y + size.y), u32(palette().accent, 0.13f));
  for (const float edge : {from, to})
    draw->AddLine(ImVec2(edge, at.y), ImVec2(edge, at.y + size.y), u32(palette().accent), px(1.5f));
  const std::string text = slice_time_text(range_->length());
  ImGui::PushFont(fonts().semibold, small_size);
  const ImVec2 words = ImGui::CalcTextSize(text.c_str());
  const float middle = std::clamp((from + to) / 2 - words.x / 2, at.x + px(6), at.x + size.x - words.x - px(6));
  draw->AddRectFilled(ImVec2(middle - px(6), at.y), ImVec2(middle + words.x + px(6), at.y + words.y + px(4)),
                      u32(palette().accent), px(4));
  draw->AddText(ImVec2(middle, at.y + px(2)), u32(palette().background), text.c_str());
  ImGui::PopFont();
}

// From the launch to the kernel, whichever of them is selected.
void Icicle::draw_arrows(std::size_t number) const {
  if (!selected_ || selected_->half != number) return;
  const Half& half = halves_[number];
  const StepSlices& step = *half.slices;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const KeptSlice& chosen = step.rows[selected_->place.row].slices[selected_->place.slice];
  const float own_y = half.row_y[selected_->place.row] + px(row_middle);
  const float own_x = std::max(x_of(static_cast<double>(chosen.start_ns), half), half.low.x - px(1));
  const float own_end = x_of(static_cast<double>(chosen.start_ns + chosen.duration_ns), half);
  draw->AddRect(ImVec2(own_x, own_y - px(row_middle)), ImVec2(std::max(own_end, own_x + px(3)), own_y + px(row_middle)),
                u32(palette().text), px(2), 0, px(2));
  const bool on_gpu = step.lanes[step.rows[selected_->place.row].lane].on_gpu;
  for (const SlicePlace& place : selected_->joined) {
    if (step.lanes[step.rows[place.row].lane].on_gpu == on_gpu) continue;  // another kernel of the same launch
    const KeptSlice& other = step.rows[place.row].slices[place.slice];
    const ImVec2 there(x_of(static_cast<double>(other.start_ns), half), half.row_y[place.row] + px(row_middle));
    const ImVec2 here(x_of(static_cast<double>(chosen.start_ns), half), own_y);
    const ImVec2 from = on_gpu ? there : here, to = on_gpu ? here : there;
    const float bend = std::clamp(std::fabs(to.x - from.x) * 0.4f, px(24), px(70));
    draw->AddBezierCubic(from, ImVec2(from.x + bend, from.y), ImVec2(to.x - bend, to.y), to, u32(palette().text, 0.75f),
                         px(1.5f));
    draw->AddTriangleFilled(to, ImVec2(to.x - px(7), to.y - px(4)), ImVec2(to.x - px(7), to.y + px(4)),
                            u32(palette().text));
  }
}

std::string Icicle::hits_text() const {
  std::int64_t count = 0;
  for (const Half& half : halves_) count += half.search.count();
  if (search_text_.empty()) return "";
  if (count == 0) return "no slices";
  if (selected_) {
    const Half& half = halves_[selected_->half];
    if (half.search.any(selected_->place.row, selected_->place.slice, selected_->place.slice + 1)) {
      const std::int64_t before = selected_->half == 1 ? halves_[0].search.count() : 0;
      return grouped(before + half.search.rank_of(selected_->place)) + " of " + grouped(count);
    }
  }
  return plural(count, "slice");
}

void Icicle::step_to_hit(bool forward) {
  const std::size_t half = selected_ ? selected_->half : forward ? 0 : 1;
  const std::optional<SlicePlace> from = selected_ ? std::optional(selected_->place) : std::nullopt;
  const auto is_behind = [&](SlicePlace a, SlicePlace b) {
    return std::pair(a.row, a.slice) > std::pair(b.row, b.slice);
  };
  // In this step; past its last or first one, in the other.
  for (const std::size_t tried : {half, 1 - half, half}) {
    const SliceSearch& search = halves_[tried].search;
    if (!halves_[tried].slices || search.count() == 0) continue;
    const bool is_here = tried == half && from;
    const std::optional<SlicePlace> found =
        forward ? search.next(is_here ? from : std::nullopt) : search.previous(is_here ? from : std::nullopt);
    const bool wraps = is_here && (forward ? !is_behind(*found, *from) : !is_behind(*from, *found));
    if (wraps && halves_[1 - half].search.count() > 0 && tried == half && halves_[1 - half].slices) {
      const SliceSearch& other = halves_[1 - half].search;
      select(1 - half, *(forward ? other.next({}) : other.previous({})));
    } else {
      select(tried, *found);
    }
    ++clicks_;
    return bring_into_sight();
  }
}

void Icicle::bring_into_sight() {
  if (!selected_ || !chosen_range_) return;
  Half& half = halves_[selected_->half];
  const float width = std::max(half.high.x - half.low.x, 1.0f);
  const double length = chosen_range_->length();
  const bool is_narrow = length / shown_.length() * static_cast<double>(width) < static_cast<double>(px(6));
  const bool is_outside = chosen_range_->from_ns < shown_.from_ns || chosen_range_->to_ns > shown_.to_ns;
  if (is_narrow) shown_.to_ns = shown_.from_ns + std::max(20 * length, 20.0);
  if (is_narrow || is_outside) {
    const double shown = std::max(shown_.length(), 1.2 * length);
    shown_.from_ns = chosen_range_->from_ns + length / 2 - shown / 2;
    shown_.to_ns = shown_.from_ns + shown;
  }
  if (selected_->place.row >= half.row_y.size()) return;
  const float y = half.row_y[selected_->place.row];
  if (y < half.low.y) half.scroll -= half.low.y - y + px(30);
  if (y + px(18) > half.high.y) half.scroll += y + px(18) - half.high.y + px(30);
}

void Icicle::draw_tooltip(const Hovered& hovered) const {
  const StepSlices& step = *hovered.profile->slices;
  const KeptSlice& slice = *hovered.slice;
  const SliceDetail& detail = step.details[slice.detail];
  const auto ns = static_cast<double>(slice.duration_ns);
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(460));
  text_strong(step.names[slice.name]);
  text_quiet(std::string(to_string(slice.kind)) + (detail.part.empty() ? "" : ", " + detail.part) + ", " +
             step.lanes[step.rows[hovered.row].lane].title);
  if (!detail.launcher.empty() && detail.launcher != step.names[slice.name])
    text_quiet("launched by " + detail.launcher);
  const double share = step.length_ns > 0 ? ns / static_cast<double>(step.length_ns) : 0;
  ImGui::TextUnformatted((slice_time_text(ns) + ", " + fine_percent_text(share) + " of the step, from " +
                          slice_time_text(static_cast<double>(slice.start_ns)) + " on")
                             .c_str());
  quiet_line(work_text(detail));
  const std::string& name = detail.launcher.empty() ? step.names[slice.name] : detail.launcher;
  quiet_line(rate_text(detail, ns, of_operator(hovered.profile->peak, name)));
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

}  // namespace stepladder
