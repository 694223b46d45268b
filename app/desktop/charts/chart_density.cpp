// Two steps, each kept until something of it changes: ranges of all curves in each pixel column, then their picture for
// the y axis, which follows from the ranges. All charts of a frame share `slice`.
#include "app/desktop/charts/chart_density.h"

#include <imgui_internal.h>  // textures of our own, contexts
#include <implot.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_lines = 200;
constexpr std::size_t least_columns = 16;  // of a line
constexpr std::size_t points_of_column = 6;
constexpr std::chrono::microseconds slice{1200};
constexpr int texture_width = 1024;
constexpr int texture_height = 512;
constexpr float pixels_of_column = 2;
constexpr float pixels_of_row = 1;

// The densities of this context's charts, by their ids.
std::map<ImGuiID, std::unique_ptr<ChartDensity>>& densities() {
  static std::map<ImGuiID, std::unique_ptr<ChartDensity>> kept;
  static const ImGuiContext* of = nullptr;
  if (of != ImGui::GetCurrentContext()) {
    of = ImGui::GetCurrentContext();
    ImGuiContextHook end;
    end.Type = ImGuiContextHookType_Shutdown;
    end.Callback = [](ImGuiContext*, ImGuiContextHook*) {
      kept.clear();
      of = nullptr;
    };
    ImGui::AddContextHook(ImGui::GetCurrentContext(), &end);
  }
  return kept;
}

// A number that changes with the curves: their places in memory, lengths, last values and looks that the picture shows.
std::uint64_t fingerprint(const Chart& chart) {
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t value) { sum = (std::rotl(sum, 7) ^ value) * 0x9e3779b97f4a7c15; };
  for (const Curve& curve : chart.curves) {
    add(curve.hidden ? 1 : 0);
    if (curve.hidden) continue;
    add(std::bit_cast<std::uintptr_t>(curve.y.data()));
    add(curve.y.size());
    for (const std::span<const double> values : {curve.y, curve.smoothed}) {
      if (values.empty()) continue;
      for (const std::size_t i : {values.size() / 2, values.size() - 1}) add(std::bit_cast<std::uint64_t>(values[i]));
    }
    add(std::bit_cast<std::uintptr_t>(curve.low.data()));
    add(std::bit_cast<std::uintptr_t>(curve.smoothed.data()));
  }
  return sum;
}

// The range of a curve's columns, without the lowest and highest 2 % of them.
Range range_without_outliers(std::span<const ColumnRange> columns, bool is_log) {
  std::vector<double> lows;
  std::vector<double> highs;
  for (const ColumnRange& column : columns) {
    if (!column.known()) continue;
    if (!is_log || column.low > 0) lows.push_back(column.low);
    if (!is_log || column.high > 0) highs.push_back(column.high);
  }
  Range range;
  for (const auto& [values, share] : {std::pair(&lows, 0.02), std::pair(&highs, 0.98)}) {
    if (values->empty()) continue;
    const auto at = values->begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values->size() - 1) * share);
    std::nth_element(values->begin(), at, values->end());
    range.include(*at);
  }
  return range;
}

// The share of the picture's colour where `count` curves are, `most` being the most anywhere. A single curve is faint
// but visible; then the logarithm, since one of a thousand must not vanish beside all of them.
float shade_of(double count, double most) {
  return most > 1 ? static_cast<float>(0.25 + 0.75 * std::log(count) / std::log(most)) : 1.0f;
}

// Not a colour of lines, so that these stand out.
const ImVec4& ink() {
  return palette().quiet;
}

}  // namespace

bool is_dense(const Chart& chart) {
  if (chart.steps_up) return false;
  const auto lines =
      static_cast<std::size_t>(std::ranges::count_if(chart.curves, [](const Curve& curve) { return !curve.hidden; }));
  return lines > std::min(most_lines, chart.most_points / (least_columns * points_of_column));
}

ChartDensity& density_of_chart() {
  auto& all = densities();
  const ImGuiID id = ImGui::GetID("density");
  auto found = all.find(id);
  if (found == all.end()) {
    // One that wasn't drawn lately is taken over, since a texture is large.
    const int before = ImGui::GetFrameCount() - 2;
    const auto unused = std::ranges::find_if(all, [&](const auto& each) { return each.second->last_frame() < before; });
    std::unique_ptr<ChartDensity> density;
    if (unused != all.end()) {
      density = std::move(unused->second);
      all.erase(unused);
    } else {
      density = std::make_unique<ChartDensity>();
    }
    found = all.emplace(id, std::move(density)).first;
  }
  return *found->second;
}

ChartDensity::ChartDensity() : texture_(std::make_unique<ImTextureData>()) {
  texture_->Create(ImTextureFormat_RGBA32, texture_width, texture_height);
  texture_->SetStatus(ImTextureStatus_WantCreate);
  ImGui::RegisterUserTexture(texture_.get());
}

ChartDensity::~ChartDensity() {
  ImGui::UnregisterUserTexture(texture_.get());
}

void ChartDensity::forget() {
  making_.reset();
  made_ = {};
  picture_y_.reset();
  drawn_y_.reset();
  hovered_.reset();
  number_ = drawn_ = 0;
}

void ChartDensity::collect(const Chart& chart, const Range& x, bool leaves_out, ImVec2 size) {
  const int frame = ImGui::GetFrameCount();
  const auto charts = std::count_if(densities().begin(), densities().end(),
                                    [&](const auto& each) { return each.second->last_frame() >= frame - 1; });
  if (last_frame_ < frame - 2 || made_.visible.size() != chart.curves.size()) forget();
  last_frame_ = frame;
  deadline_ = Clock::now() + slice / std::max<std::ptrdiff_t>(1, charts);
  const int columns = std::clamp(static_cast<int>(size.x / px(pixels_of_column)), 1, texture_width);
  const Key now{.curves = fingerprint(chart),
                .x = {.low = x.low, .high = x.high, .is_log = chart.log_x, .parts = columns},
                .log_y = chart.log_y,
                .leaves_out = leaves_out};
  // Of the hand's movement each frame takes a slice; the first picture, and what is left where it rests, are made
  // whole.
  frames_at_rest_ = now == asked_ ? frames_at_rest_ + 1 : 0;
  asked_ = now;
  is_sliced_ = number_ > 0 && frames_at_rest_ < 3;
  // What is being made for the x range and the values of a frame ago is finished first: a range that moves and a run
  // that takes steps never rest.
  if (making_ && (making_->key.log_y != now.log_y || making_->key.leaves_out != now.leaves_out)) making_.reset();
  const auto is_behind = [&] { return number_ == 0 || made_.key != now; };
  if (!making_ && is_behind()) {
    making_.emplace(Ranges{.key = now});
    making_->columns = std::move(spare_);  // look_at() clears it
    making_->columns.resize(chart.curves.size() * static_cast<std::size_t>(columns));
    making_->visible.resize(chart.curves.size());
    making_->whole.resize(chart.curves.size());
  }
  // The picture of the last ranges comes first, unless the plot is out of sight.
  if (making_ && (drawn_ == number_ || drawn_frame_ < frame - 1)) {
    for (; making_->next < chart.curves.size() && (!is_sliced_ || Clock::now() < deadline_); ++making_->next)
      look_at(chart.curves[making_->next], chart.log_y, *making_);
    if (making_->next == chart.curves.size()) {
      spare_ = std::move(made_.columns);
      made_ = std::move(*making_);
      making_.reset();
      ++number_;
    }
  }
  if (chart.commands && is_behind()) chart.commands->data.next_frame = true;
}

void ChartDensity::look_at(const Curve& curve, bool log_y, Ranges& ranges) {
  static Polyline line;
  const PictureAxis& x = ranges.key.x;
  const auto each = static_cast<std::size_t>(x.parts);
  const std::span columns(ranges.columns.data() + ranges.next * each, each);
  std::ranges::fill(columns, ColumnRange());
  if (curve.hidden) return;
  ++ranges.curves;
  ranges.not_finite += curve.not_finite + (curve.levels ? curve.levels->not_finite() : 0);
  if (!curve.smoothed.empty()) {
    add_to_columns(curve.x, curve.smoothed, curve.smoothed, true, x, columns);
  } else if (!curve.low.empty()) {
    add_to_columns(curve.x, curve.low, curve.high, true, x, columns);
  } else if (curve.levels && !x.is_log && curve.y.size() > 4 * each) {
    curve.levels->show(curve.x, curve.y, x.low, x.high, x.parts, line);
    add_to_columns(line.x, line.y, line.y, !curve.points, x, columns);
  } else {
    add_to_columns(curve.x, curve.y, curve.y, !curve.points, x, columns);
  }
  ColumnRange whole;
  for (ColumnRange& column : columns) {
    if (!column.known()) continue;
    if (log_y && !(column.high > 0)) {
      column = {};
      continue;
    }
    whole.include(log_y && !(column.low > 0) ? column.high : column.low, column.high);
  }
  if (whole.known()) ranges.whole[ranges.next] = {whole.low, whole.high};
  ranges.visible[ranges.next] =
      ranges.key.leaves_out ? range_without_outliers(columns, log_y) : ranges.whole[ranges.next];
  if (!log_y) return;
  for (ColumnRange& column : columns)
    if (column.known()) column = {std::log(std::max(column.low, 1e-300)), std::log(column.high)};
}

// Adds curves to the picture until it is made or the slice is over.
void ChartDensity::make_picture(const PictureAxis& y) {
  const int columns = made_.key.x.parts;
  if (!picture_y_ || picture_number_ != number_) {
    picture_y_ = y;
    picture_number_ = number_;
    picture_next_ = 0;
    const bool is_log = y.is_log;
    picture_.start(
        columns,
        {.low = is_log ? std::log(y.low) : y.low, .high = is_log ? std::log(y.high) : y.high, .parts = y.parts});
  }
  const auto each = static_cast<std::size_t>(columns);
  for (; picture_next_ < made_.visible.size() && (!is_sliced_ || Clock::now() < deadline_); ++picture_next_)
    picture_.add(std::span(made_.columns.data() + picture_next_ * each, each));
  if (picture_next_ == made_.visible.size()) paint();
}

void ChartDensity::paint() {
  const std::span<const std::int32_t> counts = picture_.counts();
  const int columns = picture_.columns();
  const int rows = picture_.rows();
  most_ = static_cast<std::uint32_t>(std::max(1, *std::ranges::max_element(counts)));
  std::vector<std::uint32_t> shades(most_ + 1, 0);
  for (std::uint32_t count = 1; count <= most_; ++count)
    shades[count] = 0x00ffffffu | static_cast<std::uint32_t>(255 * shade_of(count, most_)) << 24;
  constexpr int tile = 16;  // columns become rows
  for (int first = 0; first < columns; first += tile) {
    for (int row = 0; row < rows; ++row) {
      auto* to = static_cast<std::uint32_t*>(texture_->GetPixelsAt(first, row));
      const std::int32_t* from = counts.data() + static_cast<std::ptrdiff_t>(first) * rows + row;
      for (int i = 0; i < std::min(tile, columns - first); ++i)
        to[i] = shades[static_cast<std::size_t>(from[static_cast<std::ptrdiff_t>(i) * rows])];
    }
  }
  const ImTextureRect all{0, 0, static_cast<unsigned short>(columns), static_cast<unsigned short>(rows)};
  if (texture_->Status == ImTextureStatus_OK || texture_->Status == ImTextureStatus_WantUpdates) {
    texture_->Updates.resize(0);
    texture_->Updates.push_back(all);
    texture_->UpdateRect = all;
    texture_->SetStatus(ImTextureStatus_WantUpdates);
  }
  drawn_x_ = made_.key.x;
  drawn_y_ = std::exchange(picture_y_, std::nullopt);
  drawn_ = number_;
}

void ChartDensity::draw(const Chart& chart) {
  drawn_frame_ = ImGui::GetFrameCount();
  if (number_ == 0) return;
  hovered_ = ImPlot::IsPlotHovered() ? nearest(ImGui::GetMousePos(), chart.log_y) : std::nullopt;
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const float height = ImPlot::GetPlotSize().y;
  const PictureAxis y{.low = limits.Y.Min,
                      .high = limits.Y.Max,
                      .is_log = chart.log_y,
                      .parts = std::clamp(static_cast<int>(height / px(pixels_of_row)), 1, texture_height)};
  const auto is_behind = [&] { return !drawn_y_ || *drawn_y_ != y || drawn_ != number_; };
  if (is_behind()) make_picture(y);
  if (is_behind() && chart.commands) chart.commands->data.next_frame = true;
  if (!drawn_y_) return;
  const ImVec2 part(static_cast<float>(drawn_x_.parts) / texture_width,
                    static_cast<float>(drawn_y_->parts) / texture_height);
  const ImVec2 low = ImPlot::PlotToPixels(drawn_x_.low, drawn_y_->high);
  const ImVec2 high = ImPlot::PlotToPixels(drawn_x_.high, drawn_y_->low);
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddImage(texture_->GetTexRef(), low, high, ImVec2(0, 0), part, u32(ink()));
  ImPlot::PopPlotClipRect();
  ui_test_anchors::note(std::string("chart.") + chart.id + ".density", low.x, low.y, high.x, high.y);
}

void ChartDensity::draw_key() const {
  if (most_ < 2 || !drawn_y_) return;
  ImGui::PushFont(fonts().regular, small_size);
  const float ramp = px(56);
  const float height = ImGui::GetTextLineHeight();
  text_quiet("1");
  same_line(5);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImU32 faint = u32(ink(), shade_of(1, most_));
  const ImU32 full = u32(ink());
  ImGui::GetWindowDrawList()->AddRectFilledMultiColor(
      ImVec2(at.x, at.y + px(3)), ImVec2(at.x + ramp, at.y + height - px(2)), faint, full, full, faint);
  ImGui::Dummy(ImVec2(ramp, height));
  ImGui::SetItemTooltip("Curves that pass through a place");
  same_line(5);
  text_quiet(key_end());
  ImGui::PopFont();
}

float ChartDensity::key_width() const {
  return most_ < 2 ? 0 : ImGui::CalcTextSize(("1" + key_end()).c_str()).x + px(56 + 5 + 5 + 10);
}

std::string ChartDensity::key_end() const {
  return grouped(most_) + " curves";
}

bool ChartDensity::shows(double x, double y) const {
  if (!drawn_y_) return false;
  const auto part = [](const PictureAxis& axis, double value) {  // a value at the end of the axis is in its last part
    return std::min(static_cast<int>(std::floor(axis.place(value))), axis.parts - 1);
  };
  const int column = part(drawn_x_, x);
  const int row = drawn_y_->parts - 1 - part(*drawn_y_, y);
  const auto has = [&](int at) {
    return at >= 0 && at < drawn_y_->parts &&
           static_cast<const std::uint8_t*>(texture_->GetPixelsAt(column, at))[3] != 0;
  };
  return column >= 0 && column < drawn_x_.parts && (has(row) || has(row - 1) || has(row + 1));  // rounding
}

std::optional<std::size_t> ChartDensity::nearest(ImVec2 pixel, bool log_y) const {
  const PictureAxis& x = made_.key.x;
  const ImPlotPoint at = ImPlot::PixelsToPlot(pixel);
  const auto column = static_cast<std::ptrdiff_t>(std::floor(x.place(at.x)));
  if (column < 0 || column >= x.parts) return std::nullopt;
  const auto height = [&](double y) { return log_y ? std::log(std::max(y, 1e-300)) : y; };
  const double here = height(at.y);
  double best = std::abs(height(ImPlot::PixelsToPlot(pixel.x, pixel.y - px(8)).y) - here);
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < made_.visible.size(); ++i) {
    const ColumnRange& range = made_.columns[i * static_cast<std::size_t>(x.parts) + static_cast<std::size_t>(column)];
    if (!range.known()) continue;
    const double off = std::max({range.low - here, here - range.high, 0.0}) + 1e-3 * (range.high - range.low);
    if (off < best) best = off, found = i;
  }
  return found;
}

}  // namespace stepladder
