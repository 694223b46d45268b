// Draws a rung's bar: solid, hatched where it isn't trusted, hollow where it is only reported; its interval as a
// whisker or, without one, its runs as points; and the hardware's limit.
#include "app/panels/ladder/bars.h"

#include <imgui.h>

#include <string>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

// The throughputs that a bar of its rung must have room for: its own, its interval's end as far as it squeezes no other
// bar, and those of its runs where there is no interval. A whisker that is longer has no end.
std::vector<double> extent_of(const RungJudgement& rung) {
  constexpr double longest_whisker = 1.5;  // of the throughput
  const Interval whisker = rung.rate_ci95(rung.tokens_per_s);
  if (!whisker.known() && rung.each_tokens_per_s.size() > 1) return rung.each_tokens_per_s;
  return {rung.tokens_per_s, whisker.known() ? std::min(whisker.high, rung.tokens_per_s * longest_whisker) : missing};
}

// Green and red mark gains and losses that the judgement is sure of; noise is grey.
ImVec4 step_colour(const Gain& gain) {
  return gain.is(Verdict::faster)   ? palette().good
         : gain.is(Verdict::slower) ? palette().bad
                                    : faded(palette().quiet, 0.6f);
}

// The 95 % interval; where there is none the runs themselves, each a point.
void draw_whisker(const RungJudgement& rung, const BarScale& scale, ImVec2 at, float width) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 ink = u32(palette().text, 0.9f);
  const auto x_of = [&](double rate) { return at.x + width * scale.share(rate); };
  if (const Interval whisker = rung.rate_ci95(rung.tokens_per_s); whisker.known()) {
    draw->AddLine(ImVec2(x_of(whisker.low), at.y), ImVec2(x_of(whisker.high), at.y), ink, px(1.5f));
    for (const double end : {whisker.low, whisker.high})
      if (end >= scale.least && end <= scale.most)
        draw->AddLine(ImVec2(x_of(end), at.y - px(4)), ImVec2(x_of(end), at.y + px(4)), ink, px(1.5f));
    return;
  }
  for (const double rate : rung.each_tokens_per_s) {
    draw->AddCircleFilled(ImVec2(x_of(rate), at.y), px(4.5f), u32(palette().card));
    draw->AddCircleFilled(ImVec2(x_of(rate), at.y), px(3), ink);
  }
  if (!rung.each_tokens_per_s.empty()) {
    ui_test_anchors::note("ladder.points." + std::to_string(rung.rung), at.x, at.y - px(4), at.x + width, at.y + px(4));
  }
}

}  // namespace

BarScale scale_for(const LadderModel& model, bool waterfall) {
  double least = missing;
  BarScale scale;
  bool any = false;
  for (const LadderRung& rung : model.rungs) {
    for (const double value : extent_of(rung.judged)) {
      if (is_missing(value) || value <= 0) continue;
      scale.most = any ? std::max(scale.most, value) : value;
      least = any ? std::min(least, value) : value;
      any = true;
    }
  }
  scale.is_log = any && (waterfall || scale.most / least > 20);
  if (scale.is_log) scale.least = least * (scale.most / least > 3 ? 0.8 : 0.95);
  return scale;
}

void draw_bar(const LadderRung& rung, const LadderRung* before, const BarScale& scale, ImVec2 at, float width,
              bool selected, bool waterfall) {
  const double value = rung.judged.tokens_per_s;
  if (is_missing(value)) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float half = px(7);
  const float middle = at.y + px(ladder_row_height) / 2;
  const float end = at.x + std::max(px(3), width * scale.share(value));
  float from = at.x;
  const bool steps = waterfall && before && !is_missing(before->judged.tokens_per_s);
  // On a log scale a bar has no beginning, only its end means something: what steps from nothing is a mark there.
  const bool is_mark = waterfall && scale.is_log && !steps;
  if (is_mark) from = end - px(4);
  if (steps) {
    from = at.x + width * scale.share(before->judged.tokens_per_s);
    // From the previous rung down to this one.
    draw->AddLine(ImVec2(from, at.y - px(ladder_row_height) / 2 + half), ImVec2(from, middle - half),
                  u32(palette().quiet, 0.6f));
  }
  const ImVec2 low(std::min(from, end), middle - half);
  const ImVec2 high(std::max({from, end, low.x + px(3)}), middle + half);
  // A failed run's measurement is faint.
  const bool failed = rung.first.status == RunStatus::failed;
  const bool reported = rung.first.status == RunStatus::reported;
  if (reported) draw->AddRect(low, high, u32(rung_colour(rung.colour)), px(3), 0, px(1.5f));
  if (is_mark && !rung.trusted()) {
    draw->AddRectFilled(low, high, u32(palette().quiet), px(1));  // too narrow to hatch
  } else if (reported ? rung.judged.trust == Trust::impossible : !rung.trusted()) {
    hatch(low, high);
  } else if (!reported) {
    const ImVec4 colour = steps ? step_colour(rung.judged.over_previous) : rung_colour(rung.colour);
    draw->AddRectFilled(low, high, u32(colour, failed ? 0.35f : selected ? 1.0f : 0.82f), px(3));
  }
  if (!waterfall) draw_whisker(rung.judged, scale, ImVec2(at.x, middle), width);
  if (!is_missing(rung.judged.limit.tokens_per_s) && rung.judged.limit.tokens_per_s <= scale.most) {
    const float limit = at.x + width * scale.share(rung.judged.limit.tokens_per_s);
    draw->AddLine(ImVec2(limit, middle - px(12)), ImVec2(limit, middle + px(12)), u32(palette().bad), px(2));
  }
}

}  // namespace stepladder
