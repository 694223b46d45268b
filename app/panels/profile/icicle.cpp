// Draws traced steps as icicles, and handles zoom, pan and search. Rows are laid out per pixel
// (app/profile/slice_layout.h), so millions of slices cost no more than the window is wide. Two steps share one time
// axis.
#include "app/panels/profile/icicle.h"

#include <imgui_internal.h>  // SetKeyOwner

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/profile/kind_colours.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float row_height = 18, lane_height = 20, axis_height = 22, title_height = 24, memory_height = 70,
                legend_height = 18;
constexpr double least_shown_ns = 20;

ImVec4 rgb(unsigned value) {
  return {static_cast<float>(value >> 16 & 255) / 255, static_cast<float>(value >> 8 & 255) / 255,
          static_cast<float>(value & 255) / 255, 1};
}

// 1, 2 or 5 times a power of ten, at least `least`.
double round_interval(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

// Text of a slice is dark on its bright colour.
ImVec4 text_on_slice() {
  return theme_is_dark() ? rgb(0x0d1117) : rgb(0x10161f);
}

// A CPU thread that does nothing in this range is a line of text. `outermost`: the first of its lane's rows.
bool is_folded(const StepSlices& step, const SliceRow& outermost, const TimeRange& range) {
  return !step.lanes[outermost.lane].on_gpu && std::ranges::none_of(outermost.slices, [&](const KeptSlice& slice) {
    const auto start = static_cast<double>(slice.start_ns);
    return start < range.to_ns && start + static_cast<double>(slice.duration_ns) > range.from_ns;
  });
}

float height_of(const StepSlices& step, const TimeRange& range) {
  float height = px(6);
  bool folds = false;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    if (row == 0 || step.rows[row].lane != step.rows[row - 1].lane) {
      folds = is_folded(step, step.rows[row], range);
      height += px(lane_height);
    }
    height += folds ? 0 : px(row_height);
  }
  return height;
}

// What the CPU did long before the step's own work begins is mostly waiting; Home shows it.
TimeRange usual_range(double from_ns, double to_ns) {
  return {std::max(from_ns, -0.02 * to_ns), to_ns};
}

}  // namespace

ImVec4 kind_colour(OperatorKind kind) {
  const KindColour colour = colour_of(kind);
  return rgb(theme_is_dark() ? colour.on_dark : colour.on_light);
}

ImVec4 memory_colour(MemoryUse use) {
  const KindColour colour = colour_of(use);
  return rgb(theme_is_dark() ? colour.on_dark : colour.on_light);
}

std::string slice_time_text(double ns) {
  char text[48];
  if (std::fabs(ns) < 1e6)
    std::snprintf(text, sizeof text, std::fabs(ns) < 1e4 ? "%.2f us" : "%.1f us", ns / 1e3);
  else
    return milliseconds_text(ns / 1e6);
  return text;
}

float Icicle::height(const ShownProfile* before, const ShownProfile& after) {
  float sum = px(axis_height);
  for (const ShownProfile* each : {before, &after}) {
    if (!each || !each->slices) continue;
    // A half without much room shows no memory.
    const auto from = static_cast<double>(first_ns(*each->slices)), to = static_cast<double>(last_ns(*each->slices));
    const float rows = px(title_height) + height_of(*each->slices, usual_range(from, to));
    sum += each->slices->memory.empty() ? rows : std::max(rows + px(memory_height), px(160));
  }
  return sum + px(before ? 16 : 8);
}

// Follows what is shown: repeats the search, and shows the whole step if it is another one.
void Icicle::keep_up(const ShownProfile* before, const ShownProfile& after) {
  const std::array<const ShownProfile*, 2> shown{before, &after};
  bool is_new = false;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::shared_ptr<const StepSlices> slices = shown[i] ? shown[i]->slices : nullptr;
    Half& half = halves_[i];
    half.index = shown[i] ? shown[i]->index : nullptr;
    if (half.slices != slices) {
      // The view doesn't move if the same slices were read again, as when another program wrote to the file.
      const bool is_same = half.slices && slices && half.slices->step == slices->step &&
                           half.slices->length_ns == slices->length_ns && half.slices->names == slices->names;
      half.slices = slices;
      half.searched = "\x01";
      half.chosen_for.title = "\x01";
      if (!is_same) half.scroll = 0;
      if (!is_same && selected_ && selected_->half == i) selected_.reset();
      is_new = is_new || !is_same;
    }
    if (!(half.chosen_for == chosen_)) {
      half.chosen_for = chosen_;
      half.chosen = !slices || chosen_.title.empty() ? SliceSearch()
                    : chosen_.kind                   ? SliceSearch(*slices, *half.index, *chosen_.kind)
                                                     : SliceSearch(*slices, *half.index, chosen_.names);
    }
    if (half.searched == search_text_) continue;
    half.searched = search_text_;
    half.search = slices ? SliceSearch(*half.index, search_text_) : SliceSearch();
  }
  hovered_.reset();
  if (!is_new) return;
  all_ = {0, 1};
  for (const Half& half : halves_) {
    if (!half.slices) continue;
    all_.from_ns = std::min(all_.from_ns, static_cast<double>(first_ns(*half.slices)));
    all_.to_ns = std::max(all_.to_ns, static_cast<double>(last_ns(*half.slices)));
  }
  shown_ = usual_range(all_.from_ns, all_.to_ns);
  range_.reset();
}

void Icicle::draw(const ShownProfile* before, const ShownProfile& after, float height) {
  keep_up(before, after);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(ImGui::GetContentRegionAvail().x, height);
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton("##icicle", size);
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  mark("profile.icicle");
  handle_input(at, size);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->PushClipRect(at, ImVec2(at.x + size.x, at.y + size.y), true);
  draw_axis(at.x, at.y, size.x);
  const float top = at.y + px(axis_height);
  const float room = size.y - px(axis_height);
  if (before && before->slices && after.slices) {
    // Each has as much room as its rows need, and at least a third.
    const float wanted = height_of(*before->slices, shown_) + px(title_height);
    const float other = height_of(*after.slices, shown_) + px(title_height);
    const float share = std::clamp(wanted / (wanted + other), 0.34f, 0.66f);
    const float first = std::floor((room - px(8)) * share);
    middle_ = top + first + px(8);
    draw_half(0, *before, ImVec2(at.x, top), ImVec2(size.x, first), "profile.before");
    draw->AddLine(ImVec2(at.x, middle_ - px(4)), ImVec2(at.x + size.x, middle_ - px(4)), u32(palette().line));
    draw_half(1, after, ImVec2(at.x, middle_), ImVec2(size.x, room - first - px(8)), "profile.after");
  } else {
    const bool is_after = after.slices != nullptr;
    middle_ = is_after ? top : at.y + size.y;
    if (is_after)
      draw_half(1, after, ImVec2(at.x, top), ImVec2(size.x, room), "profile.after");
    else if (before && before->slices)
      draw_half(0, *before, ImVec2(at.x, top), ImVec2(size.x, room), "profile.before");
  }
  draw_range(at, size);
  draw->PopClipRect();
  if (ImGui::IsItemDeactivated()) {
    if (dragged_ < px(4)) drag_ == Drag::range ? clear_range() : choose_hovered();
    drag_ = Drag::none;
  }
  if (hovered_ && !ImGui::IsItemActive()) draw_tooltip(*hovered_);
}

// Chooses the clicked slice and all of its name; a click beside all slices chooses none.
void Icicle::choose_hovered() {
  if (!hovered_) return choose({});
  const StepSlices& step = *hovered_->profile->slices;
  const std::vector<KeptSlice>& slices = step.rows[hovered_->row].slices;
  select(hovered_->half, {hovered_->row, static_cast<std::size_t>(hovered_->slice - slices.data())});
  ++clicks_;
}

void Icicle::choose(SliceChoice choice) {
  chosen_ = std::move(choice);
  chosen_range_.reset();
  selected_.reset();
}

void Icicle::select(std::size_t half, SlicePlace place) {
  constexpr std::size_t most_arrows = 200;
  const StepSlices& step = *halves_[half].slices;
  const KeptSlice& slice = step.rows[place.row].slices[place.slice];
  const std::string& name = step.names[slice.name];
  choose({.names = {name}, .kind = {}, .title = name});
  chosen_range_ = {static_cast<double>(slice.start_ns), static_cast<double>(slice.start_ns + slice.duration_ns)};
  selected_ = Selected{half, place, halves_[half].index->joined_with(step, place, most_arrows)};
}

float Icicle::x_of(double ns, const Half& half) const {
  return half.low.x + static_cast<float>((ns - shown_.from_ns) / shown_.length()) * (half.high.x - half.low.x);
}

// Zooms to the range, else to the chosen slice, with some space around it; if it fills the width already, or none is
// chosen, shows all.
void Icicle::fit() {
  const std::optional<TimeRange>& fitted = range_ ? range_ : chosen_range_;
  if (!fitted) {
    shown_ = all_;
    return;
  }
  const double length = std::max(fitted->length(), least_shown_ns);
  const TimeRange near{fitted->from_ns - 0.05 * length, fitted->from_ns + 1.05 * length};
  const bool is_fit =
      std::fabs(shown_.from_ns - near.from_ns) < 0.01 * length && std::fabs(shown_.to_ns - near.to_ns) < 0.01 * length;
  shown_ = is_fit ? all_ : near;
}

void Icicle::draw_axis(float x, float y, float width) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const double interval = round_interval(shown_.length() * px(110) / width);
  ImGui::PushFont(fonts().regular, small_size);
  for (double ns = std::ceil(shown_.from_ns / interval) * interval; ns < shown_.to_ns; ns += interval) {
    const float at = x + static_cast<float>((ns - shown_.from_ns) / shown_.length()) * width;
    draw->AddLine(ImVec2(at, y), ImVec2(at, y + px(10'000)), u32(palette().line, 0.5f));
    char text[48];
    const double unit = all_.length() < 1e6 ? 1e3 : 1e6;
    const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(interval / unit) + 1e-9)), 0, 6);
    std::snprintf(text, sizeof text, "%.*f %s", decimals, std::fabs(ns) < interval / 2 ? 0.0 : ns / unit,
                  unit < 1e6 ? "us" : "ms");
    if (at + px(4) + ImGui::CalcTextSize(text).x <= x + width)
      draw->AddText(ImVec2(at + px(4), y + px(2)), u32(palette().quiet), text);
  }
  ImGui::PopFont();
}

void Icicle::draw_half(std::size_t number, const ShownProfile& shown, ImVec2 at, ImVec2 size, const char* anchor) {
  Half& half = halves_[number];
  const StepSlices& step = *shown.slices;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const bool names_step = !shown.steps.empty() && shown.has_steps;
  const std::string title = step_title(step, shown.name, names_step);
  ImGui::PushFont(fonts().semibold, small_size);
  draw->AddText(ImVec2(at.x, at.y + px(4)), u32(palette().text), title.c_str());
  const float title_width = ImGui::CalcTextSize(title.c_str()).x;
  ImGui::PopFont();
  std::string detail = step_detail(step);
  if (!shown.has_steps) detail += "; the trace marks no steps (ProfilerStep#), so all of it counts as one";
  if (!shown.note.empty()) detail += "; " + shown.note;
  if (step.left_out > 0) detail += "; " + grouped(step.left_out) + " shorter or deeper ones aren't kept";
  if (half.search.is_on()) detail += "; " + grouped(half.search.count()) + " match";
  ImGui::PushFont(fonts().regular, small_size);
  draw->AddText(ImVec2(at.x + title_width + px(12), at.y + px(4)), u32(palette().quiet), detail.c_str());
  ImGui::PopFont();
  const float strip = step.memory.empty() || size.y < px(150) ? 0 : px(size.y < px(230) ? 48 : memory_height);
  const ImVec2 low(at.x, at.y + px(title_height)), high(at.x + size.x, at.y + size.y - strip);
  if (strip > 0) draw_memory(step, ImVec2(low.x, high.y + px(4)), ImVec2(high.x, high.y + strip));
  ui_test_anchors::note(anchor, low.x, low.y, high.x, high.y);
  half.content = height_of(step, shown_);
  half.scroll = std::clamp(half.scroll, 0.0f, std::max(0.0f, half.content - (high.y - low.y)));
  draw->PushClipRect(low, high, true);
  const float end =
      low.x + static_cast<float>((static_cast<double>(step.length_ns) - shown_.from_ns) / shown_.length()) * size.x;
  draw->AddLine(ImVec2(end, low.y), ImVec2(end, high.y), u32(palette().accent, 0.6f));  // the step's end
  half.low = low;
  half.high = high;
  draw_rows(number, shown);
  draw_arrows(number);
  draw->PopClipRect();
  if (half.content > high.y - low.y) {
    const float share = (high.y - low.y) / half.content, top = low.y + half.scroll * share;
    draw->AddRectFilled(ImVec2(high.x - px(4), top), ImVec2(high.x, top + (high.y - low.y) * share),
                        u32(palette().quiet, 0.5f), px(2));
  }
}

namespace {

// Why most of a lane is blank: "busy for 1.9 of 59.1 ms in sight"; empty if it isn't. `row`: its outermost slices.
std::string blank_text(const SliceRow& row, double from_ns, double to_ns) {
  double busy = 0;
  for (const KeptSlice& slice : row.slices) {
    const auto start = static_cast<double>(slice.start_ns);
    busy += std::max(0.0, std::min(to_ns, start + static_cast<double>(slice.duration_ns)) - std::max(from_ns, start));
  }
  if (busy <= 0) return "no work in sight";
  if (busy > 0.5 * (to_ns - from_ns)) return "";
  return "busy for " + milliseconds_text(busy / 1e6) + " of " + milliseconds_text((to_ns - from_ns) / 1e6) +
         " in sight";
}

}  // namespace

void Icicle::draw_rows(std::size_t number, const ShownProfile& shown) {
  Half& half = halves_[number];
  const StepSlices& step = *shown.slices;
  const ImVec2 low = half.low, high = half.high;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  half.row_y.resize(step.rows.size());
  float y = low.y - half.scroll;
  bool folds = false;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    if (row == 0 || step.rows[row].lane != step.rows[row - 1].lane) {
      const SliceLane& lane = step.lanes[step.rows[row].lane];
      ImGui::PushFont(fonts().regular, small_size);
      if (y > low.y - px(lane_height) && y < high.y) {
        const std::string blank = lane.on_gpu ? "" : blank_text(step.rows[row], shown_.from_ns, shown_.to_ns);
        const std::string title = (lane.on_gpu ? "GPU " : "CPU ") + lane.title + (blank.empty() ? "" : ", " + blank);
        draw->AddText(ImVec2(low.x, y + px(3)), u32(palette().quiet), title.c_str());
      }
      ImGui::PopFont();
      y += px(lane_height);
      folds = is_folded(step, step.rows[row], shown_);
    }
    half.row_y[row] = y;
    if (folds) continue;
    if (y > low.y - px(row_height) && y < high.y) draw_row(number, shown, row, ImVec2(low.x, y), high.x - low.x);
    y += px(row_height);
  }
}

// The memory in use, stacked by what it is used for.
void Icicle::draw_memory(const StepSlices& step, ImVec2 low, ImVec2 high) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const MemoryPoint& peak = memory_peak(step);
  const auto most = static_cast<double>(std::max<std::int64_t>(peak.total(), 1));
  const float top = low.y + px(legend_height);
  constexpr float column = 2;
  const auto columns = static_cast<std::size_t>(std::max((high.x - low.x) / column, 1.0f));
  float x = low.x;
  for (const MemoryPoint* highest : memory_columns(step, shown_, columns)) {
    float y = high.y;
    for (const MemoryUse use : all_memory_uses) {
      if (!highest) break;
      const auto bytes = static_cast<double>(highest->bytes[static_cast<std::size_t>(use)]);
      const float height = static_cast<float>(bytes / most) * (high.y - top);
      if (height > 0) draw->AddRectFilled(ImVec2(x, y - height), ImVec2(x + column, y), u32(memory_colour(use), 0.75f));
      y -= height;
    }
    x += column;
  }
  ImGui::PushFont(fonts().regular, small_size);
  x = low.x;
  const auto say = [&](const std::string& words, const ImVec4& colour) {
    draw->AddText(ImVec2(x + px(2), low.y), u32(colour), words.c_str());
    x += ImGui::CalcTextSize(words.c_str()).x + px(8);
  };
  say(memory_title(step), palette().text);
  for (const MemoryUse use : all_memory_uses) {
    const auto bytes = peak.bytes[static_cast<std::size_t>(use)];
    if (bytes > 0) say(std::string(to_string(use)) + " " + bytes_text(static_cast<double>(bytes)), memory_colour(use));
  }
  ImGui::PopFont();
}

void Icicle::draw_row(std::size_t number, const ShownProfile& shown, std::size_t row, ImVec2 at, float width) {
  const Half& half = halves_[number];
  const StepSlices& step = *shown.slices;
  pieces_.clear();
  lay_out_row(step.rows[row], row, *shown.index, half.search, shown_, width, pieces_, half.chosen);
  ImGui::PushFont(fonts().regular, small_size);
  for (const DrawnSlice& piece : pieces_) draw_slice(step, step.rows[row], piece, at);
  ImGui::PopFont();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!ImGui::IsItemHovered() || mouse.y < at.y || mouse.y >= at.y + px(row_height)) return;
  const double ns = shown_.from_ns + static_cast<double>((mouse.x - at.x) / width) * shown_.length();
  const KeptSlice* slice = slice_at(step.rows[row], ns, 2 * shown_.length() / width);
  if (!slice) return;
  hovered_ = Hovered{&shown, number, row, slice};
  const auto x_of = [&](double when) {
    return at.x + static_cast<float>((when - shown_.from_ns) / shown_.length()) * width;
  };
  const float x0 = std::max(x_of(static_cast<double>(slice->start_ns)), at.x - 1);
  const float x1 = std::min(x_of(static_cast<double>(slice->start_ns + slice->duration_ns)), at.x + width + 1);
  ImGui::GetWindowDrawList()->AddRect(ImVec2(x0, at.y), ImVec2(std::max(x1, x0 + px(2)), at.y + px(row_height) - px(1)),
                                      u32(palette().text), px(2), 0, px(1.5f));
}

void Icicle::draw_slice(const StepSlices& step, const SliceRow& row, const DrawnSlice& piece, ImVec2 at) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const bool is_dimmed = !search_text_.empty() && !piece.is_match;
  const ImVec4 colour = kind_colour(piece.kind);
  const ImVec2 low(at.x + piece.x0, at.y), high(at.x + std::max(piece.x1, piece.x0 + 1), at.y + px(row_height) - px(1));
  if (piece.count > 1) {
    draw->AddRectFilled(low, high, u32(colour, (is_dimmed ? 0.2f : 1) * (0.3f + 0.6f * piece.cover)));
    if (piece.is_chosen) draw->AddRectFilled(ImVec2(low.x, high.y - px(3)), high, u32(palette().accent));
    return;
  }
  const float width = high.x - low.x;
  const float air = width > px(4) ? 1.0f : 0.0f;  // between neighbours
  draw->AddRectFilled(low, ImVec2(high.x - air, high.y), u32(colour, is_dimmed ? 0.22f : 0.92f),
                      width > px(8) ? px(2) : 0);
  const std::string& name = step.names[row.slices[piece.first].name];
  if (piece.is_chosen) draw->AddRect(low, ImVec2(high.x - air, high.y), u32(palette().accent), px(2), 0, px(2));
  if (width < px(26)) return;
  const std::string shown = name.starts_with("aten::") ? name.substr(6) : name;
  const float text_x = std::max(low.x, at.x) + px(4);
  const ImVec4 clip(text_x, low.y, high.x - px(2), high.y);
  draw->AddText(ImGui::GetFont(), ImGui::GetFontSize(), ImVec2(text_x, low.y + px(1)),
                u32(is_dimmed ? palette().quiet : text_on_slice()), shown.c_str(),
                shown.c_str() + std::min<std::size_t>(shown.size(), 120), 0, &clip);
}

void Icicle::zoom(double factor, double at_ns) {
  const double most = all_.length() * 1.1;
  const double length = std::clamp(shown_.length() * factor, least_shown_ns, most);
  const double share = (at_ns - shown_.from_ns) / shown_.length();
  shown_.from_ns = at_ns - share * length;
  shown_.to_ns = shown_.from_ns + length;
  pan(0);
}

void Icicle::pan(double ns) {
  const double length = shown_.length(), air = length * 0.5;
  shown_.from_ns =
      std::clamp(shown_.from_ns + ns, all_.from_ns - air, std::max(all_.to_ns + air - length, all_.from_ns - air));
  shown_.to_ns = shown_.from_ns + length;
}

void Icicle::handle_input(ImVec2 at, ImVec2 size) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActivated()) {
    dragged_ = 0;
    dragged_half_ = io.MousePos.y < middle_ ? 0 : 1;
    // Over the ruler, or with Shift, a drag measures.
    drag_ = io.KeyShift || io.MousePos.y < at.y + px(axis_height) ? Drag::range : Drag::pan;
    range_from_ns_ = shown_.from_ns + static_cast<double>(io.MousePos.x - at.x) * shown_.length() / size.x;
  }
  const double ns_per_pixel = shown_.length() / size.x;
  if (item_is_dragged()) {
    const ImVec2 from = io.MouseClickedPos[ImGuiMouseButton_Left];
    dragged_ = std::max(dragged_, std::hypot(io.MousePos.x - from.x, io.MousePos.y - from.y));
    if (drag_ == Drag::range) {
      const double now = shown_.from_ns + static_cast<double>(io.MousePos.x - at.x) * ns_per_pixel;
      if (dragged_ >= px(4)) range_ = {std::min(range_from_ns_, now), std::max(range_from_ns_, now)};
    } else {
      pan(-static_cast<double>(io.MouseDelta.x) * ns_per_pixel);
      halves_[static_cast<std::size_t>(dragged_half_)].scroll -= io.MouseDelta.y;
    }
  }
  zoom_at_ = (shown_.from_ns + shown_.to_ns) / 2;
  if (ImGui::IsItemHovered()) {
    const double mouse_ns = shown_.from_ns + static_cast<double>(io.MousePos.x - at.x) * ns_per_pixel;
    zoom_at_ = mouse_ns;
    if (io.MouseWheel != 0 && io.KeyShift)
      pan(-static_cast<double>(io.MouseWheel) * shown_.length() * 0.1);
    else if (io.MouseWheel != 0)
      zoom(std::pow(0.8, static_cast<double>(io.MouseWheel)), mouse_ns);
    if (io.MouseWheelH != 0) pan(-static_cast<double>(io.MouseWheelH) * shown_.length() * 0.1);
    if (io.MousePos.y < at.y + px(axis_height)) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) shown_ = all_;
  }
  handle_keys();
}

// As in Perfetto: W and S zoom at the mouse, A and D pan, F fits the chosen slice. The arrows do the same; Home shows
// all.
void Icicle::handle_keys() {
  if (!keys_are_for_panel() || ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt) return;
  // Otherwise the arrows would move from button to button as well.
  for (const ImGuiKey key : {ImGuiKey_UpArrow, ImGuiKey_DownArrow, ImGuiKey_LeftArrow, ImGuiKey_RightArrow})
    ImGui::SetKeyOwner(key, ImGui::GetItemID());
  // And Escape would move the focus out of the view.
  if (range_ || !chosen_.title.empty()) ImGui::SetKeyOwner(ImGuiKey_Escape, ImGui::GetItemID());
  const auto pressed = [](ImGuiKey letter, ImGuiKey arrow) {
    return ImGui::IsKeyPressed(letter, true) || (arrow != ImGuiKey_None && ImGui::IsKeyPressed(arrow, true));
  };
  if (pressed(ImGuiKey_W, ImGuiKey_UpArrow)) zoom(0.7, zoom_at_);
  if (pressed(ImGuiKey_S, ImGuiKey_DownArrow)) zoom(1 / 0.7, zoom_at_);
  if (pressed(ImGuiKey_A, ImGuiKey_LeftArrow)) pan(-shown_.length() * 0.15);
  if (pressed(ImGuiKey_D, ImGuiKey_RightArrow)) pan(shown_.length() * 0.15);
  if (pressed(ImGuiKey_Home, ImGuiKey_None)) shown_ = all_;
  if (ImGui::IsKeyPressed(ImGuiKey_F, false)) fit();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) range_ ? clear_range() : choose({});
}

}  // namespace stepladder
