// Sorts, groups and names the rows of a step's anatomy. Rows always add up to the step, so grouping sums and never
// drops. certainty_of writes the sentence that says how much of it is known by name and how much is guessed from the
// order.
#include "storage/traces/anatomy.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "storage/wording.h"

namespace stepladder {
namespace {

bool is_of_model(const AnatomyRow& row) {
  return row.phase == StepPhase::forward || row.phase == StepPhase::backward;
}

// The sorting key of a row, in the order of a step: a forward pass by blocks, a backward pass from the loss to the
// embedding.
auto place_in_step(const AnatomyRow& row) {
  int group = 0;
  switch (row.part) {
    case ModelPart::embedding:
      group = 0;
      break;
    case ModelPart::attention:
    case ModelPart::mlp:
    case ModelPart::norm:
      group = 1;
      break;
    case ModelPart::head:
      group = 2;
      break;
    case ModelPart::loss:
      group = 3;
      break;
    case ModelPart::unknown:
      group = 4;
      break;
  }
  int block = row.block, within = static_cast<int>(row.part);
  if (row.phase == StepPhase::backward && row.part != ModelPart::unknown) {
    group = 3 - group;
    block = -block;
    within = -within;
  }
  return std::tuple(row.phase, group, block, within, row.known_by);
}

void sort(Anatomy& anatomy) {
  std::ranges::stable_sort(
      anatomy, [](const AnatomyRow& a, const AnatomyRow& b) { return place_in_step(a) < place_in_step(b); });
}

}  // namespace

std::string_view to_string(StepPhase phase) {
  return by_enum<StepPhase>("data", "forward", "backward", "optimiser", "communication", "idle", "other")[phase];
}

std::string_view to_string(KnownBy known_by) {
  return by_enum<KnownBy>("nothing", "order", "name")[known_by];
}

Anatomy by_part(const Anatomy& anatomy) {
  std::map<std::tuple<StepPhase, ModelPart, KnownBy>, AnatomyRow> sums;
  for (const AnatomyRow& row : anatomy) {
    AnatomyRow& sum = sums.try_emplace({row.phase, row.part, row.known_by},
                                       AnatomyRow{.phase = row.phase, .part = row.part, .known_by = row.known_by})
                          .first->second;
    sum.ms += row.ms;
  }
  Anatomy rows;
  for (const auto& [key, sum] : sums) rows.push_back(sum);
  sort(rows);
  return rows;
}

int block_count(const Anatomy& anatomy) {
  std::set<int> blocks;
  for (const AnatomyRow& row : anatomy) {
    if (row.block >= 0) blocks.insert(row.block);
  }
  return static_cast<int>(blocks.size());
}

std::string title_of(const AnatomyRow& row) {
  if (row.phase == StepPhase::optimizer) return "optimiser";
  if (row.phase == StepPhase::other) return "other";
  if (!is_of_model(row)) return std::string(to_string(row.phase));
  const std::string phase(to_string(row.phase));
  if (row.part == ModelPart::unknown) return "rest of " + phase;
  return (row.block >= 0 ? fmt::format("block {} ", row.block) : "") + std::string(to_string(row.part)) + ", " + phase;
}

double ms_known_by(const Anatomy& anatomy, KnownBy known_by) {
  double sum = 0;
  for (const AnatomyRow& row : anatomy) {
    if (is_of_model(row) && row.known_by == known_by) sum += row.ms;
  }
  return sum;
}

double model_ms(const Anatomy& anatomy) {
  double sum = 0;
  for (const KnownBy each : all_known_by) sum += ms_known_by(anatomy, each);
  return sum;
}

std::string title_of(const AnatomyRow& row, const Anatomy& anatomy) {
  const bool is_rest = is_of_model(row) && row.part == ModelPart::unknown;
  const bool is_alone = std::ranges::none_of(
      anatomy, [&](const AnatomyRow& each) { return each.phase == row.phase && each.part != ModelPart::unknown; });
  return is_rest && is_alone ? std::string(to_string(row.phase)) : title_of(row);
}

bool is_compiled(std::string_view name) {
  return name.find("CompiledFxGraph") != std::string_view::npos ||
         name.find("CompiledFunction") != std::string_view::npos || name.starts_with("triton_");
}

std::string certainty_of(const Anatomy& anatomy, bool has_graphs) {
  const double whole = model_ms(anatomy);
  if (whole <= 0) return "The trace has no forward or backward pass that can be told apart.";
  const double by_name = ms_known_by(anatomy, KnownBy::name) / whole;
  const double by_order = ms_known_by(anatomy, KnownBy::order) / whole;
  if (by_name + by_order < 0.005 && has_graphs)
    return "torch.compile made graphs of this model. A graph's loops mix the work of neighbouring operators, so its "
           "time "
           "belongs to no single part; the kinds of work and the difference tell more. To see the parts, trace the "
           "model "
           "without torch.compile, or compile its blocks one by one with a range around each "
           "(torch.profiler.record_function(\"block 3\")).";
  if (by_name + by_order < 0.005)
    return "Neither names nor the operators' order tell the parts of the model. Put ranges around them "
           "(torch.profiler.record_function(\"attention\"), or NVTX), or profile with with_stack=True.";
  std::string text = "Of forward and backward, ";
  if (by_name >= 0.005) text += percent_text(by_name) + " is known by names of ranges and modules";
  if (by_name >= 0.005 && by_order >= 0.005) text += ", ";
  if (by_order >= 0.005) text += percent_text(by_order) + " is guessed from the order of operators";
  const double rest = 1 - by_name - by_order;
  const std::string why = has_graphs ? " isn't known, since torch.compile's graphs mix operators." : " isn't known.";
  return text + (rest >= 0.005 ? ", and " + percent_text(rest) + why : ".");
}

Anatomy mean_anatomy(const std::vector<std::pair<Anatomy, double>>& ranks) {
  double steps = 0;
  for (const auto& [anatomy, count] : ranks) steps += count;
  std::map<std::tuple<StepPhase, ModelPart, int, KnownBy>, AnatomyRow> sums;
  for (const auto& [anatomy, count] : ranks) {
    for (const AnatomyRow& row : anatomy) {
      AnatomyRow empty = row;
      empty.ms = 0;
      sums.try_emplace({row.phase, row.part, row.block, row.known_by}, empty).first->second.ms +=
          steps > 0 ? row.ms * count / steps : 0;
    }
  }
  Anatomy mean;
  for (const auto& [key, row] : sums) mean.push_back(row);
  sort(mean);
  return mean;
}

}  // namespace stepladder
