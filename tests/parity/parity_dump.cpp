// Writes a run's data for PyTorch to repeat it: the first weights, the batches of every step and the engine's losses,
// as one safetensors file. tests/parity/parity_test.py starts it.
#include <algorithm>
#include <iostream>

#include "engine/files/tokens.h"
#include "engine/stage.h"
#include "engine/trainer/model.h"
#include "engine/trainer/trainer.h"
#include "engine/trainer/weights.h"

namespace stepladder {
namespace {

void dump(const Recipe& asked, const std::string& file) {
  std::vector<double> losses, norms;
  Recipe recipe = asked;
  RunControl control;
  train({.run = 1, .recipe = asked}, control, [&](const RunEvent& event) {
    if (const auto* started = std::get_if<RunStarted>(&event)) recipe = recipe_from_json(started->recipe);
    if (const auto* step = std::get_if<StepRecord>(&event)) {
      losses.push_back(step->loss);
      norms.push_back(step->grad_norm);
    }
    if (const auto* ended = std::get_if<RunEnded>(&event); ended && ended->status != RunStatus::finished) {
      throw std::runtime_error(ended->reason);
    }
  });

  NamedTensors tensors = {{"losses", at::tensor(losses, at::kDouble)}, {"norms", at::tensor(norms, at::kDouble)}};
  for (auto& [name, parameter] : named_parameters(*build_model(recipe))) {
    const bool of_vocabulary = name == "wte.weight" || name == "lm_head.weight";
    tensors.emplace_back(name, of_vocabulary ? parameter.narrow(0, 0, recipe.vocab) : parameter);
  }
  const TokenSource source = TokenSource::open(recipe.data, recipe.seq, recipe.seed);
  std::vector<at::Tensor> inputs, targets;
  for (std::int64_t step = 0; step < recipe.steps; ++step) {
    const Batch batch = source.batch(Split::train, recipe.overfit ? 0 : step, recipe.batch * recipe.grad_accum);
    const std::vector<std::int64_t> shape = {recipe.grad_accum, recipe.batch, recipe.seq};
    inputs.push_back(at::tensor(batch.inputs, at::kLong).view(shape));
    targets.push_back(at::tensor(batch.targets, at::kLong).view(shape));
  }
  tensors.emplace_back("inputs", at::stack(inputs));    // (steps, micro-batches, B, T)
  tensors.emplace_back("targets", at::stack(targets));  // (steps, micro-batches, B, T)
  write_tensors(file, tensors);
}

}  // namespace
}  // namespace stepladder

// One process for all runs, since each start of LibTorch takes half a second.
int main(int count, char** arguments) {
  if (count == 2 && arguments[1] == std::string("--stages")) {
    for (const stepladder::Stage& stage : stepladder::all_stages()) std::cout << stage.id << "\n";
    return 0;
  }
  if (count != 1) {
    std::cerr << "usage: parity_dump < PAIRS | --stages; a pair is a line with a recipe and one with a file's name\n";
    return 2;
  }
  for (std::string recipe, file; std::getline(std::cin, recipe) && std::getline(std::cin, file);) {
    try {
      stepladder::dump(stepladder::recipe_from_json(recipe), file);
      std::cout << "done" << std::endl;
    } catch (const std::exception& error) {
      std::string why = error.what();
      std::replace(why.begin(), why.end(), '\n', ' ');
      std::cout << why << std::endl;
    }
  }
}
