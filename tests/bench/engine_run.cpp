// Trains one recipe (JSON, as the database stores it) and prints each step as a line of JSON: the engine without the
// program around it. tests/bench/throughput.py starts it.
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/engine.h"

namespace {

nlohmann::json number(double value) {
  return stepladder::is_missing(value) ? nlohmann::json() : nlohmann::json(value);
}

void print(const stepladder::RunEvent& event) {
  nlohmann::ordered_json line;
  if (const auto* started = std::get_if<stepladder::RunStarted>(&event)) {
    line = {{"params", started->params}, {"hardware", started->hardware}, {"recipe", started->recipe}};
  } else if (const auto* step = std::get_if<stepladder::StepRecord>(&event)) {
    line = {{"step", step->step},
            {"loss", number(step->loss)},
            {"val_loss", number(step->val_loss)},
            {"dt_ms", step->dt_ms},
            {"grad_norm", step->grad_norm}};
  } else if (const auto* ended = std::get_if<stepladder::RunEnded>(&event)) {
    line = {{"status", ended->status == stepladder::RunStatus::finished ? "finished" : "failed"},
            {"reason", ended->reason}};
  }
  std::cout << line << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  stepladder::keep_workers_from_spinning();
  if (count != 2) {
    std::cerr << "usage: engine_run RECIPE_JSON\n";
    return 2;
  }
  try {
    stepladder::Engine engine(print);
    engine.submit({.run = 1, .recipe = stepladder::recipe_from_json(arguments[1])});
    engine.wait_idle();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
