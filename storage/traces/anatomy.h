// A traced step's time by what it is for: data, embedding, each block's attention and MLP, head, loss, their backward
// passes, optimiser, communication, idle. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/own_kernels.h"
#include "storage/by_enum.h"

namespace stepladder {

enum class StepPhase : std::uint8_t { data, forward, backward, optimizer, communication, idle, other };
inline constexpr auto all_step_phases = enumerators<StepPhase>();
std::string_view to_string(StepPhase phase);

enum class KnownBy : std::uint8_t {
  nothing,  // the part of the model isn't known
  order,    // the operators have the order of a GPT's forward pass: a guess
  name      // a range or a module around the work has its name
};
inline constexpr auto all_known_by = enumerators<KnownBy>();
std::string_view to_string(KnownBy known_by);

struct AnatomyRow {
  StepPhase phase = StepPhase::other;
  ModelPart part = ModelPart::unknown;  // of forward and backward
  int block = -1;                       // of attention, MLP and norm; -1: not known
  KnownBy known_by = KnownBy::nothing;
  double ms = 0;  // of a step, a mean
};

// The rows of a step, in its order. They add up to it.
using Anatomy = std::vector<AnatomyRow>;

Anatomy by_part(const Anatomy& anatomy);      // all blocks of a part in one row, whose block is -1
int block_count(const Anatomy& anatomy);      // of which there are rows
std::string title_of(const AnatomyRow& row);  // "block 3 attention, backward"
// The same in its place: the unknown rest of a pass is "rest of forward" only beside parts that are known.
std::string title_of(const AnatomyRow& row, const Anatomy& anatomy);
double ms_known_by(const Anatomy& anatomy, KnownBy known_by);  // of forward and backward
double model_ms(const Anatomy& anatomy);                       // forward and backward together

// Whether an operator or a kernel is a graph that torch.compile made, or a loop of one.
bool is_compiled(std::string_view name);

// The certainty of the rows, in a sentence. `has_graphs`: of a compiled model, whose operators have no order.
std::string certainty_of(const Anatomy& anatomy, bool has_graphs);

// The mean anatomy of several ranks, each with the number of its steps.
Anatomy mean_anatomy(const std::vector<std::pair<Anatomy, double>>& ranks);

}  // namespace stepladder
