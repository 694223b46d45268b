// Draws one chart: derives its view, draws the plot, handles mouse and keys, and writes the caption. Order matters:
// ImPlot changes a linked x range only in EndPlot, and only a move by the user may be stored, so that untouched charts
// follow their data.
#include "app/desktop/charts/charts.h"

#include <implot.h>

#include <algorithm>
#include <utility>

#include "app/desktop/charts/chart_density.h"
#include "app/desktop/charts/chart_export.h"
#include "app/desktop/charts/chart_layers.h"
#include "app/desktop/charts/chart_view.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

// The user's changes to a chart's axes. ImGui keeps them from frame to frame, except an x range that charts share.
struct ChartState {
  explicit ChartState(const Chart& chart) : shared(chart.shared) {
    const ImGuiStorage& kept = *ImGui::GetStateStorage();
    y_taken = kept.GetBool(ImGui::GetID("y taken"));
    on_y = kept.GetBool(ImGui::GetID("on y"));
    leaves_out = kept.GetBool(ImGui::GetID("leaves out"));
    const float low = kept.GetFloat(ImGui::GetID("low"));
    const float high = kept.GetFloat(ImGui::GetID("high"));
    if (low != high) own.low = static_cast<double>(low), own.high = static_cast<double>(high);
  }

  SharedX& x() { return shared ? *shared : own; }
  YAxis y_axis() const { return y_taken || on_y ? YAxis::free : leaves_out ? YAxis::without_outliers : YAxis::fitted; }

  void keep() {
    if (reset) {
      y_taken = leaves_out = false;
      x().low = x().high = missing;
    }
    ImGuiStorage& kept = *ImGui::GetStateStorage();
    kept.SetBool(ImGui::GetID("y taken"), y_taken);
    kept.SetBool(ImGui::GetID("on y"), on_y);
    kept.SetBool(ImGui::GetID("leaves out"), leaves_out);
    if (shared) return;
    kept.SetFloat(ImGui::GetID("low"), own.zoomed() ? static_cast<float>(own.low) : 0);
    kept.SetFloat(ImGui::GetID("high"), own.zoomed() ? static_cast<float>(own.high) : 0);
  }

  SharedX* shared;
  SharedX own;              // if the charts share none
  bool y_taken = false;     // the user moved y
  bool on_y = false;        // the mouse was over the y axis, where it may move y
  bool leaves_out = false;  // the lowest and highest 2 % are off-screen
  bool reset = false;       // show everything again
};

void save(const Chart& chart, const std::string& ending) {
  if (ending == ".csv") {
    chart.commands->push_back(SavePoints{chart.title, points_of(chart)});
  } else {
    chart.commands->push_back(SaveFigure{figure_of(chart), ending});
  }
}

void draw_menu(const Chart& chart, ChartState& state) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##menu")) {
    if (ImGui::MenuItem("Show everything", "double click")) state.reset = true;
    if (ImGui::MenuItem("Hide outliers", "O", state.leaves_out)) state.leaves_out = !state.leaves_out;
    for (const auto& [words, ending] :
         {std::pair("Export as PNG", ".png"), std::pair("Export as SVG", ".svg"), std::pair("Export as PDF", ".pdf"),
          std::pair("Export points as CSV", ".csv")}) {
      if (ImGui::MenuItem(words, ending == std::string(".png") ? "Ctrl+E" : nullptr)) save(chart, ending);
    }
    if (ImGui::MenuItem("Copy points as CSV"))
      chart.commands->push_back(CopyPoints{points_of(chart), "the points of " + chart.title});
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void take_keys(const Chart& chart, ChartState& state) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.WantTextInput || io.KeyCtrl) return;
  if (ImGui::IsKeyPressed(ImGuiKey_O, false)) state.leaves_out = !state.leaves_out;
  if (!chart.shared) return;
  if (ImGui::IsKeyPressed(ImGuiKey_A, false)) state.x().a = state.x().hovered;
  if (ImGui::IsKeyPressed(ImGuiKey_B, false)) state.x().b = state.x().hovered;
}

// Handles mouse and keys. Returns whether the mouse moves x.
bool interact(const Chart& chart, const ChartView& view, ChartState& state) {
  const bool on_plot = ImPlot::IsPlotHovered();
  const bool on_x = ImPlot::IsAxisHovered(ImAxis_X1);
  state.on_y = ImPlot::IsAxisHovered(ImAxis_Y1);
  const bool moves = ImGui::GetIO().MouseWheel != 0 || ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2);
  if (state.on_y && moves) state.y_taken = true;
  if (on_plot) {
    state.x().hovered = nearest_x(chart, ImPlot::GetPlotMousePos().x);
    state.x().fresh = true;
    take_keys(chart, state);
  }
  draw_target(chart);
  draw_cursors(chart, state.x().hovered);
  if (!on_plot && !is_missing(state.x().hovered)) draw_values(chart, view, state.x().hovered);
  if (on_plot && !ImGui::IsPopupOpen("##menu")) read_out(chart, view, state.x().hovered);
  if ((on_plot || on_x || state.on_y) && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) state.reset = true;
  if (on_plot && ImGui::IsMouseReleased(ImGuiMouseButton_Right) && !ImGui::IsMouseDragging(ImGuiMouseButton_Right))
    ImGui::OpenPopup("##menu");
  if (chart.commands) draw_menu(chart, state);
  if (on_plot && chart.commands && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_E)) save(chart, ".png");
  return (on_plot || on_x) && moves;
}

// Results of drawing the plot.
struct Drawn {
  OffScreen off_screen;
  bool floor_is_below = false;
};

Drawn draw_plot(const Chart& chart, const ChartView& view, ChartState& state) {
  Drawn drawn;
  if (!ImPlot::BeginPlot("##plot", view.size,
                         ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect |
                             (has_room_for_legend(chart, view.size.y) ? 0 : ImPlotFlags_NoLegend)))
    return drawn;
  Range moved = view.x;
  set_up_axes(chart, view, moved);
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  drawn.off_screen = off_screen(view, {limits.X.Min, limits.X.Max}, {limits.Y.Min, limits.Y.Max});
  drawn.floor_is_below = chart.floor < limits.Y.Min;
  const LegendRoom room = legend_room(chart, view.size.x);
  draw_layers(chart, view, room);
  use_legend(chart, room);
  if (view.density && view.density->hovered() && chart.legend_input && chart.legend_input->hovered < 0)
    chart.legend_input->hovered = chart.curves[*view.density->hovered()].order;
  const bool moves_x = interact(chart, view, state);
  const ImVec2 low = ImPlot::GetPlotPos();
  const ImVec2 plot = ImPlot::GetPlotSize();
  ui_test_anchors::note(std::string("chart.") + chart.id, low.x, low.y, low.x + plot.x, low.y + plot.y);
  ImPlot::EndPlot();  // here the mouse's change reaches the linked range
  if (moves_x && (moved.low != view.x.low || moved.high != view.x.high))
    state.x().low = moved.low, state.x().high = moved.high;
  return drawn;
}

// Writes the note, the counts of points that aren't drawn as they are, and the smoothing.
void draw_caption(const Chart& chart, const ChartView& view, const Drawn& drawn) {
  std::string text = chart.note;
  const auto add = [&](const std::string& words, const char* between) {
    if (!words.empty()) text += (text.empty() ? "" : between) + words;
  };
  const bool has_hidden = std::ranges::any_of(chart.curves, &Curve::hidden);
  add(caption(view, drawn.off_screen, has_hidden), "  \xE2\x80\x93  ");
  add(view.density ? chart.smoothing.substr(0, chart.smoothing.find(',')) : chart.smoothing, ", ");
  if (drawn.floor_is_below) add(chart.floor_label + " " + loss_text(chart.floor) + " below", ", ");
  const float room = ImGui::GetContentRegionAvail().x - chart.title_room;
  const float key = view.density ? view.density->key_width() : 0;
  text_cut(text, room - key, palette().quiet, fonts().regular, small_size);
  if (key == 0 || key > room) return;
  same_line(10);
  view.density->draw_key();
}

ImVec2 size_of(const Chart& chart) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  return {chart.size.x > 0 ? chart.size.x : room.x, chart.size.y > 0 ? chart.size.y : room.y};
}

}  // namespace

void SharedX::begin_frame() {
  if (!fresh) hovered = missing;
  fresh = false;
}

void draw_chart(const Chart& chart) {
  ImGui::PushID(chart.id);
  ChartState state(chart);
  text_strong(chart.title);
  ImGui::SameLine();
  const ImVec2 caption_at(ImGui::GetCursorPosX(), ImGui::GetCursorPosY() + px(2));
  ImGui::NewLine();
  if (!has_points(chart)) {
    empty_state(chart.if_empty, "");
    ImGui::SetCursorPos(caption_at);
    text_quiet(chart.note);
    ImGui::PopID();
    return;
  }
  const ChartView view = derive(chart, {state.x().low, state.x().high}, state.y_axis(), size_of(chart));
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  const Drawn drawn = draw_plot(chart, view, state);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SetCursorPos(caption_at);
  draw_caption(chart, view, drawn);
  mark(std::string("chart.") + chart.id + ".off_screen." + std::to_string(drawn.off_screen.points));
  state.keep();
  ImGui::PopID();
}

}  // namespace stepladder
