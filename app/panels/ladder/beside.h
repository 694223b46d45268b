// Several ladders side by side: the gain of the same stage on other machines, as a factor over each ladder's own
// baseline. Drawn by the Ladder view only.
#pragma once

#include <imgui.h>

#include <list>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/models/ladder_model.h"

namespace stepladder {

inline constexpr std::size_t most_beside = 3;

// A chosen ladder and its model.
struct FollowedBeside {
  LadderId ladder = 0;
  LadderViewModel followed;
};

struct BesideLadder {
  std::string name;
  const LadderModel* model = nullptr;
  ImVec4 colour;
};

// One stage: this ladder's rung of it, and the others', in their order; null if a ladder lacks the stage.
struct BesideRow {
  const LadderRung* own = nullptr;
  std::vector<const LadderRung*> others;
};

// A check box for each other ladder, at most most_beside at once.
void draw_beside_picker(std::list<FollowedBeside>& others, const Workspace& workspace, LadderId own);

// The chosen ladders whose models are ready; removes `own` and deleted ladders from the list.
std::vector<BesideLadder> followed_beside(std::list<FollowedBeside>& others, const Workspace& workspace, LadderId own,
                                          Commands& commands);

// A row for every rung of this ladder, then one for each stage that only others have.
std::vector<BesideRow> beside_rows(const LadderModel& own, const std::vector<BesideLadder>& others);

// Relative to the first rung of its own ladder, which is 1.
double factor_over_own_baseline(const LadderRung& rung, const LadderModel& model);

// A thin bar per ladder, from 1 x to its factor; the axis is logarithmic, so that equal factors have equal lengths.
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

// The ladders' colours, in one line.
void draw_beside_legend(const std::string& own_name, const std::vector<BesideLadder>& others);

}  // namespace stepladder
