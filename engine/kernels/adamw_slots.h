// The tensors of one launch of AdamW's kernels, passed by value; the engine fills it in, the kernels read it.
#pragma once

constexpr int adamw_slots = 64;    // an argument list may have 4,096 bytes
constexpr int adamw_chunk = 8192;  // elements a block

struct AdamWSlots {
  float* weight[adamw_slots];
  unsigned short* half[adamw_slots];  // the weight as bf16; null if no product reads it so
  const float* gradient[adamw_slots];
  float* average[adamw_slots];
  float* squared_average[adamw_slots];
  long long elements[adamw_slots];
  int first_chunk[adamw_slots];  // of this launch, ascending
  float weight_decay[adamw_slots];
  int count;
};
