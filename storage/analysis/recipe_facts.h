// The values of a run's recipe that analysis needs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "storage/records.h"

namespace stepladder {

struct RecipeFacts {
  std::optional<std::string> data;  // nullopt: unknown; empty: the synthetic source
  bool overfits = false;            // on one batch
  std::string tokenizer;            // the last part of its name; empty: unknown
  std::string evaluation;           // which validation data, and how much: "eval_iters 200"; empty: unknown
  std::string schedule;             // how long the learning rate's schedule is: "max_iters 400"; empty: unknown
  std::int64_t vocab = 0;           // 0: unknown, as for all that follow
  std::int64_t layers = 0;
  std::int64_t d_model = 0;
  std::int64_t heads = 0;
  std::int64_t seq = 0;
  std::int64_t grad_accum = 0;
  std::int64_t batch = 0;      // sequences per micro-batch
  std::string model;           // "gpt2", "nano"
  int devices = 1;             // that shared each step
  bool names_devices = false;  // the recipe says how many
  std::string other_hardware;  // that a log names beside its own; empty: none
  std::string fell_back;  // "compile-max fell back to compile: ...", where steps were taken in a plainer way than that
};

// The facts in Run::recipe (by the names above; `devices` may be called `world_size` or `gpus`; the model's shape also
// as nanoGPT and Hugging Face spell it, at any depth that an importer has flattened: `model.n_layer`). A value that
// isn't JSON, or has another type, is unknown.
RecipeFacts recipe_facts(const Run& run);

// What names the data: the path's last part, since the rest is the machine's; of "fineweb/train_*.bin" the folder too.
std::string data_name(std::string_view path);

// Every value of Run::recipe by its name, as text; empty if the recipe isn't a JSON object.
std::map<std::string, std::string> recipe_values(const Run& run);

// Whether two recipes differ at most in batch size, accumulation, length, schedule, seed, and in validation, samples
// and checkpoints.
bool same_recipe_but_batch(const Run& a, const Run& b);

}  // namespace stepladder
