// The parts of the Run view, each drawn by the file of its name. UI thread.
#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

// The side: plausibility of the numbers, timing and hardware.
void draw_run_belief(const Workspace& workspace, const RunEntry& shown, const RunDetail* detail);  // null: not read yet

// Curves of loss and step time, with those of the run that it is compared with.

// `against` may be null.
void draw_run_charts(SharedX& shared, const Workspace& workspace, const RunEntry& shown, const RunEntry* against,
                     ImVec2 room, Commands& commands);

// Recipe and environment: each value, next to another run's or the current environment's.
struct FactsShown {
  RunId against = 0;  // the run whose recipe is shown next to its own; 0: none
  bool only_differences = false;

  void draw_recipe(const Workspace& workspace, const RunEntry& shown);
  void draw_environment(const Workspace& workspace, const RunEntry& shown);
};

// The machine: clocks, power, temperature, load and memory while it ran.
struct MachineMetrics {
  struct Column {
    std::vector<double> steps;
    std::vector<double> values;
  };
  std::vector<Column> columns;  // one for each metric
  std::size_t made_of = 0;      // samples
};

void draw_run_machine(MachineMetrics& metrics, SharedX& shared, const RunDetail& detail, Commands& commands);

// Tags and note. They are saved when a field loses focus (by Escape too), after three seconds without a keystroke, and
// when another view is shown or the window closes, so typed text is never lost.
class RunNote {
 public:
  // Switches to another run; saves unsaved text of the previous one first.
  void show(const RunEntry& run, Commands& commands);
  void draw(const Workspace& workspace, const RunEntry& shown, Commands& commands);
  void keep(Commands& commands);  // saves changes

 private:
  void take(const Curation& curation);

  RunId run_ = 0;
  std::string name_;
  Curation seen_;     // in the project
  Curation kept_;     // with changes that were asked for since
  std::string tags_;  // as typed, as is the note
  std::string note_;
  bool is_typing_ = false;
  double typed_at_ = 0;  // ImGui's clock
};

// The operators: its step time by operator, next to that of the run that it is compared with.
struct RunOperators {
  std::vector<OperatorTime> rows;  // by_name()
  RunId made_of = 0;
  double made_at = missing;      // the profile's `at`
  double made_for_ms = missing;  // the step that it is scaled to
};

void draw_run_operators(RunOperators& operators, const Workspace& workspace, const RunEntry& shown,
                        const RunEntry* against, Commands& commands);

// Console, text samples and checkpoints.
void draw_run_console(const RunDetail& detail);
void draw_run_samples(int& sample, const RunDetail& detail);  // the selected one; -1: the newest
void draw_run_checkpoints(const Workspace& workspace, const RunEntry& shown, const RunDetail& detail,
                          Commands& commands);

}  // namespace stepladder
