// Trains a recipe on the calling thread and records its events.
#pragma once

#include <optional>
#include <vector>

#include "engine/trainer/device_probe.h"

namespace stepladder {

struct Trained {
  std::optional<RunStarted> started;
  std::vector<StepRecord> steps;
  std::vector<TextSample> samples;
  std::vector<CheckpointSaved> checkpoints;
  std::vector<StepProfile> profiles;
  std::vector<RunEnded> endings;
  std::string console;

  std::vector<double> losses() const {
    std::vector<double> values;
    for (const StepRecord& step : steps) values.push_back(step.loss);
    return values;
  }
};

inline Trained train_here(const TrainingJob& job,
                          const std::function<void(const StepRecord&, RunControl&)>& on_step = {},
                          const StepGraphMaker& make_graph = make_step_graph,
                          const StepDeviceMaker& make_device = make_step_device) {
  Trained trained;
  RunControl control;
  const auto keep = [&](const RunEvent& event) {
    if (const auto* started = std::get_if<RunStarted>(&event)) trained.started = *started;
    if (const auto* step = std::get_if<StepRecord>(&event)) {
      trained.steps.push_back(*step);
      if (on_step) on_step(*step, control);
    }
    if (const auto* text = std::get_if<ConsoleText>(&event)) trained.console += text->text;
    if (const auto* sample = std::get_if<TextSample>(&event)) trained.samples.push_back(*sample);
    if (const auto* saved = std::get_if<CheckpointSaved>(&event)) trained.checkpoints.push_back(*saved);
    if (const auto* profile = std::get_if<StepProfile>(&event)) trained.profiles.push_back(*profile);
    if (const auto* ended = std::get_if<RunEnded>(&event)) trained.endings.push_back(*ended);
  };
  train(job, control, keep, {make_graph, make_device});
  return trained;
}

inline Trained train_here(const Recipe& recipe) {
  return train_here(TrainingJob{.run = 1, .recipe = recipe});
}

// Two layers, 32 wide, on the synthetic source: a step takes about a millisecond.
inline Recipe tiny_recipe() {
  Recipe recipe;
  recipe.layers = 2;
  recipe.heads = 2;
  recipe.d_model = 32;
  recipe.batch = 4;
  recipe.seq = 16;
  recipe.steps = 3;
  recipe.tied_head = true;
  recipe.init = Init::gpt2;
  recipe.device = "cpu";
  recipe.threads = 1;  // two would only wait for each other
  return recipe;
}

}  // namespace stepladder
