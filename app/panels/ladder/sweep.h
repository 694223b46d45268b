// A sweep in the Ladder view: a table of its combinations, and a chart of one result against a swept value. UI thread.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/fields.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/workspace.h"
#include "app/launch/sweep_results.h"

namespace stepladder {

class SweepView {
 public:
  // Reads a ladder's runs. Returns whether it is a sweep. Call in every frame before draw.
  bool follow(const Workspace& workspace, LadderId ladder, Commands& commands);
  void draw(const LadderModel& model, int selected, const std::vector<std::string>& caption, ImVec2 size,
            Commands& commands);

  float table_width(const LadderModel& model, float room) const;
  int best_rung() const;          // by the shown result; -1: none
  std::string result_id() const;  // as remembered for the next start; empty: not chosen
  void choose(const std::string& result_id);

 private:
  struct Column;

  void find_targets(const Workspace& workspace, Commands& commands);
  SweepResult shown_result() const;
  std::vector<Column> columns(const LadderModel& model, SweepResult result) const;
  std::vector<std::size_t> sorted_rungs(const std::vector<Column>& columns, SweepResult result) const;
  void draw_choices(SweepResult result);
  static void draw_heads(const std::vector<Column>& columns);
  void draw_table(const LadderModel& model, int selected, SweepResult result, Commands& commands);
  void draw_row(const LadderModel& model, const SweptRung& rung, const std::vector<Column>& columns, bool is_selected,
                bool is_best, float height, Commands& commands);
  void draw_chart(SweepResult result, int selected, const std::vector<std::string>& caption, Commands& commands);

  LadderId ladder_ = 0;
  std::uint64_t version_ = 0;  // Workspace::version
  SweepResults results_;
  bool is_ours_ = false;  // was launched here, and is over
  int result_ = -1;       // chosen by the user; -1: the first that the runs have
  std::string against_;   // a name of results_; another ladder's: the first
  NumberField target_field_;
  double target_ = missing;
  std::map<RunId, TargetReached> reached_;  // of the finished runs that are in memory
};

}  // namespace stepladder
