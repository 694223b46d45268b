// Compares ladders by stage: matches their rungs (`beside_rows`, each used once) and draws each factor over its own
// ladder's baseline, since throughputs of different machines say nothing together.
#include "app/panels/ladder/beside.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/bars.h"
#include "app/panels/ladder/parts.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

bool is_same_stage(const LadderRung& a, const LadderRung& b) {
  return a.stage.empty() ? !a.first.stage.empty() && a.first.stage == b.first.stage : a.stage == b.stage;
}

}  // namespace

void draw_beside_picker(std::list<FollowedBeside>& others, const Workspace& workspace, LadderId own) {
  const std::size_t count = others.size();
  const std::string words = count == 0 ? "Compare ladders"
                            : count == 1 && workspace.ladder(others.front().ladder)
                                ? "vs " + workspace.ladder(others.front().ladder)->name
                                : "vs " + std::to_string(count) + " ladders";
  const bool open = ImGui::BeginCombo("##beside", words.c_str());
  mark("ladder.beside");
  if (!open) return;
  const std::string typed = list_search("Search ladders", workspace.ladders().size());
  // It stays open while ladders are chosen.
  for (auto other = workspace.ladders().rbegin(); other != workspace.ladders().rend(); ++other) {
    if (other->id == own || !holds(other->name, typed)) continue;
    const auto found = std::ranges::find(others, other->id, &FollowedBeside::ladder);
    bool on = found != others.end();
    const std::string item =
        other->name + "   " + local_time_text(other->created_at) + "##" + std::to_string(other->id);
    ImGui::BeginDisabled(!on && count >= most_beside);
    if (ImGui::Checkbox(item.c_str(), &on)) {
      if (on) {
        others.emplace_back().ladder = other->id;
      } else {
        others.erase(found);
      }
    }
    mark("ladder.beside." + std::to_string(other->id));
    ImGui::EndDisabled();
  }
  ImGui::EndCombo();
}

std::vector<BesideLadder> followed_beside(std::list<FollowedBeside>& others, const Workspace& workspace, LadderId own,
                                          Commands& commands) {
  std::vector<BesideLadder> ladders;
  std::erase_if(others,
                [&](const FollowedBeside& beside) { return beside.ladder == own || !workspace.ladder(beside.ladder); });
  int colour = 0;
  for (FollowedBeside& beside : others) {
    ++colour;
    beside.followed.update(workspace, beside.ladder, 0, ComparisonAxis::steps, nullptr, commands.data);
    if (beside.followed.model.ladder != beside.ladder || beside.followed.model.rungs.empty()) continue;
    ladders.push_back({workspace.ladder(beside.ladder)->name, &beside.followed.model, rung_colour(colour)});
  }
  return ladders;
}

std::vector<BesideRow> beside_rows(const LadderModel& own, const std::vector<BesideLadder>& others) {
  std::vector<BesideRow> rows;
  std::set<const LadderRung*> taken;
  for (const LadderRung& rung : own.rungs) {
    BesideRow& row = rows.emplace_back(BesideRow{&rung, {}});
    for (const BesideLadder& other : others) {
      const auto& theirs = other.model->rungs;
      const auto found = std::ranges::find_if(
          theirs, [&](const LadderRung& r) { return !taken.contains(&r) && is_same_stage(r, rung); });
      row.others.push_back(found == theirs.end() ? nullptr : &*found);
      if (found != theirs.end()) taken.insert(&*found);
    }
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    for (const LadderRung& rung : others[i].model->rungs) {
      if (taken.contains(&rung)) continue;
      BesideRow row{nullptr, std::vector<const LadderRung*>(others.size())};
      row.others[i] = &rung;
      for (std::size_t k = i + 1; k < others.size(); ++k) {
        for (const LadderRung& theirs : others[k].model->rungs) {
          if (taken.contains(&theirs) || !is_same_stage(rung, theirs)) continue;
          row.others[k] = &theirs;
          taken.insert(&theirs);
          break;
        }
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

double factor_over_own_baseline(const LadderRung& rung, const LadderModel& model) {
  return factor_over(model.rungs.front().judged, rung.judged);
}

BesideBars::BesideBars(const LadderModel& own, const std::vector<BesideLadder>& others) : own_(own), others_(others) {
  const auto take = [this](const LadderModel& model) {
    for (const LadderRung& rung : model.rungs) {
      const double factor = factor_over_own_baseline(rung, model);
      if (!(factor > 0)) continue;
      least_ = std::min(least_, factor * 0.95);
      most_ = std::max(most_, factor * 1.05);
    }
  };
  take(own);
  for (const BesideLadder& other : others) take(*other.model);
}

float BesideBars::place(double factor) const {
  return static_cast<float>(std::log(factor / least_) / std::log(most_ / least_));
}

void BesideBars::draw(const BesideRow& row, ImVec2 corner, float width, float height) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float one = corner.x + width * place(1);
  const float each = (height - px(10)) / static_cast<float>(1 + others_.size());
  float top = corner.y + px(5);
  const auto bar = [&](const LadderRung* rung, const LadderModel& model, const ImVec4& colour) {
    const double factor = rung ? factor_over_own_baseline(*rung, model) : missing;
    if (factor > 0) {
      const float end = corner.x + width * place(factor);
      const ImVec2 low(std::min(one, end) - px(1), top + px(1));
      const ImVec2 high(std::max(one, end) + px(1), top + each - px(1));
      if (rung->trusted()) {
        draw->AddRectFilled(low, high, u32(colour, 0.9f), px(2));
      } else {
        hatch(low, high);
      }
    }
    top += each;
  };
  bar(row.own, own_, palette().accent);
  for (std::size_t i = 0; i < others_.size(); ++i) bar(row.others[i], *others_[i].model, others_[i].colour);
  draw->AddLine(ImVec2(one, corner.y), ImVec2(one, corner.y + height), u32(palette().quiet, 0.5f));
}

void draw_beside_legend(const std::string& own_name, const std::vector<BesideLadder>& others) {
  ImGui::AlignTextToFramePadding();
  const auto entry = [](const ImVec4& colour, const std::string& name) {
    colour_square(colour);
    same_line(6);
    text_cut(name, px(240), palette().quiet, fonts().regular, small_size);
    same_line(18);
  };
  entry(palette().accent, own_name);
  for (const BesideLadder& other : others) {
    const std::string& hardware = other.model->rungs.front().first.hardware;
    entry(other.colour, other.name + (hardware.empty() ? "" : ", " + hardware));
  }
  text_quiet("each over its own baseline, log scale; hatched: impossible or doubtful");
}

}  // namespace stepladder
