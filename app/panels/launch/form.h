// The Launch view's form: the chosen recipe and rungs, and the resulting ladder. UI thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"
#include "engine/stage.h"

namespace stepladder {

enum class LaunchData { shakespeare, file, synthetic };

struct LaunchForm {
  int model = 0;  // of model_presets()
  LaunchData data = LaunchData::shakespeare;
  std::array<char, 1024> file{};
  std::array<char, 128> name{};
  int steps = 100;
  int batch = 12;
  int seq = 64;
  int eval_every = 0;
  int repeats = 1;
  bool interleave = false;
  bool when_quiet = false;
  int device = 0;  // of the list of devices
  double lr = 1e-3;
  int seed = 1337;
  std::vector<bool> rungs;        // of all_stages()
  std::vector<PlannedRung> plan;  // a preset's or another view's ladder instead of rungs chosen by hand
  std::string plan_name;
  Recipe plan_base;

  LaunchForm();
  void take_preset();                            // the chosen model's batch, sequence and learning rate
  void take_plan(const LadderRequest& request);  // of another view, or of a preset
};

LadderRequest request_of(const LaunchForm& form, std::vector<PlannedRung> rungs);

// Why a stage cannot be on this form's ladder; empty if it can, or while the hardware is being detected.
std::string why_not(const Stage& stage, const Recipe& base, const Workspace& workspace);

std::vector<PlannedRung> chosen_rungs(const LaunchForm& form, const Workspace& workspace);

// Why the form cannot be launched, or empty. Launching checks whether its files exist.
std::string problem_of(const LaunchForm& form, const Workspace& workspace);

void draw_launch_form(LaunchForm& form);

}  // namespace stepladder
