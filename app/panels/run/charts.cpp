// Draws the Run view's curves of loss and step time, in grey those of the run that it is compared with.
#include <imgui.h>

#include <map>
#include <string>
#include <utility>

#include "app/desktop/models/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

const std::string& name_of(const Run& run) {
  return run.title.empty() ? run.name : run.title;
}

}  // namespace

void draw_run_charts(SharedX& shared, const Workspace& workspace, const RunEntry& shown, const RunEntry* against,
                     ImVec2 room, Commands& commands) {
  const float gap = px(16);
  const float half = (room.x - gap) / 2;
  Chart loss{.id = "loss",
             .title = "Loss",
             .x_label = "step",
             .floor = shown.run.loss_floor,
             .floor_label = "source entropy",
             .legend = false,  // it would cover the end of a loss that rises; the note says what is grey
             .shared = &shared,
             .commands = &commands};
  Chart dt{.id = "dt",
           .title = "Step time",
           .x_label = "step",
           .unit = "ms",
           .from_zero = true,
           .shaded_until = steady_from(shown),
           .legend = false,
           .shared = &shared,
           .commands = &commands};
  std::map<Chart*, std::int64_t> behind;
  const auto add = [&](Chart& chart, const RunEntry& entry, Quantity quantity, Curve curve) {
    const RunPoints points = run_points(workspace, entry, quantity, &shared, commands.data);
    if (!points.levels || (quantity == Quantity::val_loss && points.levels->points() == 0)) return;
    points.draw_as(curve);
    curve.points = curve.points && points.levels->points() <= 200;  // more marks would hide the curve
    behind[&chart] += points.behind;
    chart.curves.push_back(std::move(curve));
  };
  if (against) {
    const ImVec4 quiet = faded(palette().quiet, 0.7f);
    add(loss, *against, Quantity::loss,
        {.label = name_of(against->run), .colour = quiet, .weight = 1, .order = 1, .number = 1});
    add(dt, *against, Quantity::dt_ms, {.label = against->run.name, .colour = quiet, .weight = 1});
  }
  const ImVec4 colour = rung_colour(workspace.colour_of(shown.run));
  const std::string label = name_of(shown.run) + "##own";
  add(loss, shown, Quantity::loss, {.label = label, .colour = colour, .weight = 2});
  add(dt, shown, Quantity::dt_ms, {.label = label, .colour = colour, .weight = 1.4f});
  add(loss, shown, Quantity::val_loss, {.label = "validation", .colour = palette().text, .points = true, .order = 2});
  const auto say = [&loss](const std::string& words) { loss.note += (loss.note.empty() ? "" : ", ") + words; };
  if (against) say("grey: " + (against->run.title == shown.run.title ? against->run.name : name_of(against->run)));
  if (!is_missing(shown.summary.val_loss_last)) say("dots: validation");
  for (const auto& [chart, values] : behind)
    chart->note += (chart->note.empty() || values == 0 ? "" : ", ") + behind_text(values);
  if (const RunDetail* detail = workspace.detail(shown.run.id)) {
    for (const Checkpoint& checkpoint : detail->checkpoints)
      loss.marks.push_back(
          {static_cast<double>(checkpoint.step), "checkpoint at step " + grouped(checkpoint.step), palette().warning});
  }
  begin_card("##loss", ImVec2(half, room.y));
  draw_chart(loss);
  end_card();
  ImGui::SameLine(0, gap);
  begin_card("##dt", ImVec2(half, room.y));
  draw_chart(dt);
  end_card();
}

}  // namespace stepladder
