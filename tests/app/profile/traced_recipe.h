// A trace of a recipe's step, for tests of what it predicts.
#pragma once

#include "engine/recipe.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {

// A trace of one thread: 6 ms of products, 4 of the update.
inline void keep_traced_step(RunStore& store, const Recipe& recipe) {
  StepSlices slices{.step = 1, .length_ns = 10'000'000};
  slices.names = {"aten::mm", "aten::add_"};
  slices.lanes = {{"thread 1", false}};
  slices.rows = {
      {.slices = {{.duration_ns = 6'000'000, .name = 0, .kind = OperatorKind::products},
                  {.start_ns = 6'000'000, .duration_ns = 4'000'000, .name = 1, .kind = OperatorKind::optimizer}}}};
  TracedProcess process;
  process.profile = {.has_steps = true, .ranks = 1, .calls = 2, .steps = {{.step = 1, .dt_ms = 10}}};
  process.profile.operators = {
      {.time = {.part = "forward", .name = "aten::mm", .calls = 1, .self_ms = 6, .flops = 6e9}, .busy_ms = 6},
      {.time = {.part = "optimizer", .name = "aten::add_", .calls = 1, .self_ms = 4}, .busy_ms = 4, .bytes = 4e8}};
  process.kept = {pack(slices)};
  keep_trace(store.traces(), {.name = "trace", .format = "stepladder", .recipe = to_json(recipe)}, process);
}

}  // namespace stepladder
