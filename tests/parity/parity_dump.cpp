// Writes what PyTorch needs to repeat a run: the first weights, the batches of every step and the losses that the
// engine saw, as one safetensors file. tests/parity/parity_test.py starts it.
#include <iostream>

#include "engine/tokens.h"
#include "engine/trainer/model.h"
#include "engine/trainer/safetensors.h"
#include "engine/trainer/trainer.h"

namespace stepladder {
namespace {

void dump(const Recipe& asked, const std::string& file) {
  std::vector<double> losses;
  Recipe recipe = asked;
  train(1, asked, {}, [&](const RunEvent& event) {
    if (const auto* started = std::get_if<RunStarted>(&event)) recipe = recipe_from_json(started->recipe);
    if (const auto* step = std::get_if<StepRecord>(&event)) losses.push_back(step->loss);
    if (const auto* ended = std::get_if<RunEnded>(&event); ended && ended->status != RunStatus::finished) {
      throw std::runtime_error(ended->reason);
    }
  });

  NamedTensors tensors = {{"losses", at::tensor(losses, at::kDouble)}};
  for (const auto& parameter : build_model(recipe)->named_parameters()) {
    tensors.emplace_back(parameter.key(), parameter.value());
  }
  const TokenSource source = TokenSource::open(recipe.data, recipe.seq, recipe.seed);
  std::vector<at::Tensor> inputs, targets;
  for (std::int64_t step = 0; step < recipe.steps; ++step) {
    const Batch batch = source.batch(Split::train, step, recipe.batch);
    inputs.push_back(at::tensor(batch.inputs, at::kLong).view({recipe.batch, recipe.seq}));
    targets.push_back(at::tensor(batch.targets, at::kLong).view({recipe.batch, recipe.seq}));
  }
  tensors.emplace_back("inputs", at::stack(inputs));    // (steps, B, T)
  tensors.emplace_back("targets", at::stack(targets));  // (steps, B, T)
  write_safetensors(file, tensors);
}

}  // namespace
}  // namespace stepladder

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: parity_dump RECIPE_JSON OUT.safetensors\n";
    return 2;
  }
  try {
    stepladder::dump(stepladder::recipe_from_json(arguments[1]), arguments[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
