// The law of a stage: which rows of a traced step it changes, and by what arithmetic. Each file in engine/stages/
// states its own, as values; the arithmetic is here. Whatever a law can't know makes it a bound: "at most". Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/own_kernels.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

enum class LawRule {
  unchanged,      // these rows stay as they are; for a stage that changes none
  vanishes,       // they take no time
  times,          // `amount` times as long
  at_peak,        // their FLOPs at the peak in `precision` (empty: the run's own)
  moves_bytes,    // `amount` bytes for each parameter, at the bandwidth that these rows reach besides their calls
  adds_bytes,     // as long as before, and `amount` bytes for each parameter
  by_parameters,  // in proportion to the parameters of the model after and before
};

// One change of some rows. Of terms that are about the same rows, all count.
struct LawTerm {
  std::string_view device;                  // "cpu", "cuda"; empty: any
  std::vector<OperatorKind> kinds;          // empty: all that are work
  ModelPart part = ModelPart::unknown;      // only in this part of the model; unknown: in all
  std::vector<std::string_view> operators;  // only these: "aten::bmm"; empty: all of these kinds
  LawRule rule = LawRule::unchanged;
  double amount = 0;
  std::string_view precision = {};
  bool at_most = false;  // the gain is at most this
  std::string_view why;  // in words, for people: "products at the peak in bf16"
};

struct StageLaw {
  std::vector<LawTerm> terms;
  // Why its gain isn't predicted on a device that no term is about; a clause: "processes of one CPU share its cores".
  std::string_view unknown = {};
  bool is_stated() const { return !terms.empty() || !unknown.empty(); }
};

// What a law may need to know. missing and 0: not known.
struct LawFacts {
  std::string device;                                  // "cpu", "cuda"
  double parameters_before = 0, parameters_after = 0;  // of the model
  std::string precision;                               // of the run's products
  std::vector<std::pair<std::string, double>> tflops;  // peaks by precision
  double bandwidth_gb_s = missing;
  double peak(std::string_view precision) const;  // missing: not known
};

// A row of the step, for laws.
struct LawRow {
  OperatorKind kind = OperatorKind::between;
  ModelPart part = ModelPart::unknown;
  std::string name;  // of the operator; of a kernel that of its launcher
  double ms = 0;
  double calls = 0;
  double call_ms = 0;  // that a call of this kind of work takes however little it does
  double flops = missing, bytes = missing;
};

// The factor by which rows change.
struct WorkChange {
  std::vector<OperatorKind> kinds;  // empty: all that are work
  ModelPart part = ModelPart::unknown;
  std::vector<std::string> operators;
  double factor = 1;
  double before_ms = 0, after_ms = 0;
  bool at_most = false;
  std::string why;
  bool matches(OperatorKind kind, ModelPart part, std::string_view name) const;
};

struct LawAnswer {
  std::vector<WorkChange> changes;
  bool at_most = false;
  std::string unknown;  // a clause: why there is no answer; empty: there is one
};

// LawAnswer::unknown where only the recipe could say it.
inline constexpr std::string_view no_recipe = "it needs the run's recipe, which this trace doesn't have";

LawAnswer apply(const StageLaw& law, const LawFacts& facts, std::span<const LawRow> rows);

}  // namespace stepladder
