// The head of the Ladder view: its name and facts, the picker of other ladders, its buttons. UI thread.
#pragma once

#include <array>
#include <list>
#include <string>

#include "app/desktop/command.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/system/path_field.h"
#include "app/panels/ladder/beside.h"

namespace stepladder {

struct LadderHead {
  bool waterfall = false;            // the table's bars
  bool is_sweep = false;             // whether the ladder is one
  bool as_sweep = true;              // then the results are shown by the swept values, instead of the rungs
  std::list<FollowedBeside> beside;  // other ladders
  bool renaming = false;
  std::array<char, 256> name{};
  PathField exports{{.title = "Choose a folder for exports", .kind = FileQuestion::Kind::folder}};

  void rename(const std::string& from);  // begins it
  void draw(const Workspace& workspace, const Ladder& ladder, const LadderModel& model, Commands& commands);
};

}  // namespace stepladder
