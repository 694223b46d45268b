// Draws the cells of History's rows by the kind of their column. A number that rests on times is grey where these can't
// be relied on, and its tooltip says why.
#include "app/panels/history/cells.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

void draw_spark(const RunEntry& entry, Quantity quantity, const ImVec4& colour, const Workspace& workspace,
                Commands& commands) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = px(18);
  ImGui::Dummy(ImVec2(width, height));
  const auto overview = workspace.overview(entry.run.id, quantity);
  if (!overview) {
    if (entry.summary.steps > 0 && entry.run.status != RunStatus::running)
      commands.data.curves.push_back({entry.run.id, quantity});
    return;
  }
  const Points& curve = overview->means.mean.empty() ? overview->points : overview->means.mean;
  if (curve.x.size() < 2) return;
  // The whole curve, on a log scale if it can be: the fall of the first steps would flatten the rest.
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double y : curve.y) {
    low = std::min(low, y);
    high = std::max(high, y);
  }
  const auto height_at = [&, is_log = low > 0](double y) {
    return is_log ? std::log(y / low) / std::log(high / low) : (y - low) / (high - low);
  };
  const double x0 = curve.x.front();
  const double across = std::max(curve.x.back() - x0, 1e-9);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->PushClipRect(at, ImVec2(at.x + width, at.y + height), true);
  draw->PathClear();
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const double share = high > low ? height_at(curve.y[i]) : 0;
    draw->PathLineTo(ImVec2(at.x + width * static_cast<float>((curve.x[i] - x0) / across),
                            at.y + px(2) + (height - px(4)) * static_cast<float>(1 - share)));
  }
  draw->PathStroke(u32(colour), 0, px(1.2f));
  draw->PopClipRect();
}

void draw_tags(const RunEntry& entry) {
  const float end = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  bool first = true;
  for (const std::string& tag : entry.curation.tags) {
    if (!first) same_line(4);
    if (!first && ImGui::GetCursorScreenPos().x + pill_size(tag).x > end) {
      text_quiet("...");
      ImGui::SetItemTooltip("%s", tags_text(entry.curation.tags).c_str());
      return;
    }
    ImGui::PushFont(fonts().regular, small_size);
    const std::string fits = cut_to(tag, end - ImGui::GetCursorScreenPos().x - px(16), Cut::middle);
    ImGui::PopFont();
    pill(fits, Tone::accent);
    if (fits != tag) ImGui::SetItemTooltip("%s", tag.c_str());
    first = false;
  }
}

bool rests_on_times(const RunColumn& column) {
  const std::string& name = column.metric ? column.metric->figure.metric : column.id;
  return name.starts_with("dt_ms") || name == "tokens_per_s" || (!column.metric && (name == "factor" || name == "mfu"));
}

std::string why_empty(const MetricColumn& column) {
  if (column.shows != MetricColumn::Shows::value) return "The run or its baseline has no such value.";
  if (column.figure.kind == MetricFigure::Kind::at)
    return "The run has no " + column.figure.metric + " of step " + grouped(column.figure.step) + ".";
  return "The run has no " + column.figure.metric + ", or no finite value of it.";
}

// Why a cell's number can't be relied on; a factor needs its baseline's speed too. Empty if it can.
std::string doubt_about(HistoryRows& list, const RunColumn& column, const RunEntry& entry,
                        const ColumnContext& context) {
  if (!rests_on_times(column)) return "";
  const SpeedDoubt& own = list.doubt_of(entry, *context.workspace);
  if (column.id != "factor" || own.trust == Trust::impossible) return own.why;
  const RunEntry* base = baseline_of(entry, context);
  const SpeedDoubt of_base = base ? list.doubt_of(*base, *context.workspace) : SpeedDoubt{};
  return own.why.empty() && !of_base.why.empty() ? "Its baseline is " + std::string(to_string(of_base.trust)) : own.why;
}

std::string over_text(const RunEntry& base, const RunColumn& column, const ColumnContext& context) {
  if (column.id == "factor" && context.baseline == 0) return "Against the median of its ladder's baseline";
  return "Against run " + std::to_string(base.run.id) + ", " + base.run.name;
}

// Grey if the speed is doubtful or impossible, as in Ladder.
void draw_number(HistoryRows& list, const RunColumn& column, const RunEntry& entry, const ColumnContext& context) {
  const std::string text = in_print(cell_text(column, entry, context));
  if (text.empty()) {
    ImGui::Dummy(ImVec2(std::max(1.0f, ImGui::GetContentRegionAvail().x), px(22)));
    if (column.metric) ImGui::SetItemTooltip("%s", why_empty(*column.metric).c_str());
    return;
  }
  const std::string doubt = text == "-" ? "" : doubt_about(list, column, entry, context);
  const bool is_factor = column.id == "factor" || (column.metric && column.metric->shows != MetricColumn::Shows::value);
  const RunEntry* base = is_factor && text != "-" ? baseline_of(entry, context) : nullptr;
  const bool is_quiet = text == "-" || text == "..." || !doubt.empty();
  middle_line();
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string shown = cut_to(text, room, Cut::middle);  // a setting's value may be a word
  text_right(shown, ImGui::GetCursorPosX() + room, nullptr, 0, is_quiet ? &palette().quiet : &palette().text);
  if (shown != text) ImGui::SetItemTooltip("%s", text.c_str());
  if (base && base != &entry && doubt.empty()) ImGui::SetItemTooltip("%s", over_text(*base, column, context).c_str());
  if (doubt.empty()) return;
  wrapped_tooltip((base && base != &entry ? over_text(*base, column, context) + ". " : "") + doubt +
                      ". The Run view shows the arithmetic.",
                  320);
  mark("history.doubted." + std::to_string(entry.run.id) + "." + column.id);
}

// A run that finished with a speed that can't be relied on isn't shown as a success.
void draw_status(const RunEntry& entry, const SpeedDoubt& doubt) {
  const std::string status(to_string(entry.run.status));
  if (entry.run.status != RunStatus::finished || doubt.trust == Trust::trusted)
    return pill(status, status_tone(entry.run.status));
  pill(std::string(to_string(doubt.trust)), doubt.trust == Trust::impossible ? Tone::bad : Tone::warning);
  wrapped_tooltip("Finished. " + doubt.why + ".", 320);
  mark("history.trust." + std::to_string(entry.run.id) + "." + std::string(to_string(doubt.trust)));
}

}  // namespace

void middle_line() {
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
}

void draw_cell(HistoryRows& list, const RunColumn& column, const RunEntry& entry, const ColumnContext& context,
               const ImVec4& colour, Commands& commands) {
  switch (column.kind) {
    case ColumnKind::spark:
      return draw_spark(entry, column.id == "spark_dt" ? Quantity::dt_ms : Quantity::loss, colour, *context.workspace,
                        commands);
    case ColumnKind::status:
      return draw_status(entry, list.doubt_of(entry, *context.workspace));
    case ColumnKind::tags:
      return draw_tags(entry);
    case ColumnKind::number:
      return draw_number(list, column, entry, context);
    case ColumnKind::text:
      break;
  }
  const std::string text = cell_text(column, entry, context);
  middle_line();
  text_cut(text.empty() ? "-" : text, ImGui::GetContentRegionAvail().x, text.empty() ? palette().quiet : palette().text,
           fonts().regular, text_size, Cut::middle);
}

}  // namespace stepladder
