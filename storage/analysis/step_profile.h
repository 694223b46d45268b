// A run's step profile by kind of operator, so that a comparison of two rungs shows which kind changed. A pure function
// of the operators' names; engine/trainer/operator_watch.h measures the times. (`stepladder profile` is something else:
// it times single calls, engine/call_times.h.)
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

enum class OperatorKind {
  products,   // mm, addmm, bmm: those whose FLOPs are counted
  attention,  // as one operator (scaled_dot_product_attention)
  softmax,    // and the loss
  layer_norm,
  gelu,
  elementwise,  // additions, factors, masks, reductions, sorting
  copies,       // and casts from one type to another
  embedding,
  optimizer,  // the whole update, clipping too
  communication,
  data,     // making the batch
  between,  // autograd, views, allocation, and time outside operators
  idle,     // of a GPU
  // Later kinds follow, since kept slices have a kind's number.
  convolution,
  activation,    // others than GELU
  graph,         // CUDA graphs that a profiler traced as a whole
  other,         // kernels of no known family
  normalisation  // others than layer norm (batch, group, RMS), and where the name doesn't say which
};
inline constexpr std::array all_operator_kinds{
    OperatorKind::products,    OperatorKind::attention,     OperatorKind::convolution, OperatorKind::softmax,
    OperatorKind::layer_norm,  OperatorKind::normalisation, OperatorKind::gelu,        OperatorKind::activation,
    OperatorKind::elementwise, OperatorKind::copies,        OperatorKind::embedding,   OperatorKind::optimizer,
    OperatorKind::data,        OperatorKind::communication, OperatorKind::graph,       OperatorKind::other,
    OperatorKind::between,     OperatorKind::idle};
static_assert(all_operator_kinds.size() == enum_count<OperatorKind>());
std::string_view to_string(OperatorKind kind);  // "matrix products"
// By who launched it first (the part of the step, the operator), then by the kernel's own family.
OperatorKind kind_of(const OperatorTime& each);
// A part of the step as people see it: "optimiser" for the "optimizer" of journals, older files and step parts.
constexpr std::string_view in_words(std::string_view part) {
  return part == "optimizer" ? "optimiser" : part;
}
// Whether a step exists to do this kind of work, as opposed to waiting, exchanging, fetching data, views and time
// outside operators.
bool is_work(OperatorKind kind);

// A GPU kernel's row has the name "aten::gelu > KERNEL" if it is known which operator launched it.
inline constexpr std::string_view launches = " > ";

// Milliseconds of a step in each kind.
class KindTimes {
 public:
  explicit KindTimes(const StepProfile& profile);
  explicit KindTimes(const std::array<double, all_operator_kinds.size()>& ms) : ms_(ms) {}  // by kind
  double of(OperatorKind kind) const { return ms_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<double, all_operator_kinds.size()> ms_{};
};

double step_ms(const StepProfile& profile);  // all operators together

// A step by its parts, in ms: they and `other_ms` add up to `step_ms`.
struct StepBreakdown {
  StepParts parts;  // missing: not timed, and so in `other_ms`
  double other_ms = missing;
  double step_ms = missing;
  bool known() const { return !is_missing(other_ms); }
};
// Parts are recorded as means over the steady steps, but the step time that people see is a median, which few slow
// steps don't move. Means that are longer than it are scaled to it; else the rest is `other_ms`. Unknown if no part is
// known.
StepBreakdown breakdown_of(const StepParts& means, double median_ms);

// A profile beside the run's measured step. Timing each operator costs time, and the profiled steps are few, so they
// rarely take as long as the median step does. The operators of each part are scaled to what the part takes in the
// breakdown, others to the step, unless the two steps differ by more than half: then only the shares mean anything.
struct FittedProfile {
  StepProfile profile;           // as it was measured if it isn't comparable
  double profiled_ms = missing;  // a profiled step
  double measured_ms = missing;  // the median of the steady steps
  bool is_comparable = false;    // with the step's time, and with another run's profile
};
FittedProfile fit_to_step(StepProfile profile, const StepParts& means, double median_ms);
bool is_comparable(double profiled_ms, double measured_ms);  // they differ by at most half

std::string title_of(const OperatorTime& each);        // "addmm"; "outside operators"
double gigaflops_per_s(const OperatorTime& each);      // missing if its FLOPs are unknown
std::string flop_rate_text(const OperatorTime& each);  // "512 G", "15.0 T", before "FLOP/s"; "-" if unknown
std::string why_no_profile(const Run& run);            // a sentence

// One row for each part and name, whatever the shapes; the most expensive first.
std::vector<OperatorTime> by_name(const StepProfile& profile);

// The kinds in which any of them spends time, the most expensive first.
std::vector<OperatorKind> kinds_in(std::span<const KindTimes> runs);

}  // namespace stepladder
