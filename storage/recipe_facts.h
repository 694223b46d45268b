// What the JSON that is kept with a run says about things that judging its numbers needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/records.h"

namespace stepladder {

struct RecipeFacts {
  std::optional<std::string> data;  // nullopt: the recipe does not say; empty: the synthetic source
  std::int64_t vocab = 0;           // 0: not known
  std::string model;                // "gpt2", "nano"
  int devices = 1;                  // that shared each step
  // From the environment, where an importer left them:
  double printed_tokens_per_s = missing;  // median of the throughput that the log printed, in tokens/s
  std::string throughput_unit;            // "tokens/ms printed as tokens/sec"
};

// From Run::recipe (`data`, `vocab`, `model`, `devices` or `world_size` or `gpus`) and Run::environment
// (`printed_tokens_per_s`, `throughput_unit`). What is not JSON, or not of the type, is not known.
RecipeFacts recipe_facts(const Run& run);

}  // namespace stepladder
