// Several ladders side by side: what the same stage bought on other machines, each as a factor over its own baseline.
// Drawn by the Ladder view only.
#pragma once

#include <imgui.h>

#include <list>
#include <string>
#include <vector>

#include "app/desktop/commands.h"
#include "app/desktop/models/ladder_model.h"

namespace stepladder {

inline constexpr std::size_t most_beside = 3;

// One that was chosen, and what follows from its runs.
struct FollowedBeside {
  LadderId ladder = 0;
  LadderViewModel followed;
};

struct BesideLadder {
  std::string name;
  const LadderModel* model = nullptr;
  ImVec4 colour;
};

// One stage: this ladder's rung of it, and the others', in their order; null where a ladder has none.
struct BesideRow {
  const LadderRung* own = nullptr;
  std::vector<const LadderRung*> others;
};

// Others by a tick each, at most most_beside.
void draw_beside_picker(std::list<FollowedBeside>& others, const Workspace& workspace, LadderId own);

// Those that are there, and have been made; `own` and what was deleted leave the list.
std::vector<BesideLadder> followed_beside(std::list<FollowedBeside>& others, const Workspace& workspace, LadderId own,
                                          Commands& commands);

// A row for every rung of this ladder, then for stages that only others have.
std::vector<BesideRow> beside_rows(const LadderModel& own, const std::vector<BesideLadder>& others);

// Over the first rung of its own ladder, which is 1.
double factor_over_own_baseline(const LadderRung& rung, const LadderModel& model);

// A thin bar a ladder, from 1 x to its factor; the axis is logarithmic, so that equal factors are equally long.
class BesideBars {
 public:
  BesideBars(const LadderModel& own, const std::vector<BesideLadder>& others);
  void draw(const BesideRow& row, ImVec2 corner, float width, float height) const;

 private:
  float place(double factor) const;  // 0 to 1

  const LadderModel& own_;
  const std::vector<BesideLadder>& others_;
  double least_ = 0.9;
  double most_ = 1.1;
};

// Which colour is which ladder, in one line.
void draw_beside_legend(const std::string& own_name, const std::vector<BesideLadder>& others);

}  // namespace stepladder
