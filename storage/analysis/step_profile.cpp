// Sorts operators and kernels into kinds and scales a profile to the measured step. The part of the step overrides the
// name for data and optimiser; idle time and communication override both.
#include "storage/analysis/step_profile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "storage/analysis/kernel_kind.h"
#include "storage/analysis/own_kernels.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Operators without arithmetic: views and allocation.
constexpr std::array views{"autograd",
                           "aten::view",
                           "aten::reshape",
                           "aten::_reshape_alias",
                           "aten::transpose",
                           "aten::t",
                           "aten::as_strided",
                           "aten::expand",
                           "aten::split",
                           "aten::narrow",
                           "aten::slice",
                           "aten::select",
                           "aten::unsqueeze",
                           "aten::squeeze",
                           "aten::detach",
                           "aten::detach_",
                           "aten::permute",
                           "aten::flatten",
                           "aten::empty",
                           "aten::empty_like",
                           "aten::empty_strided",
                           "aten::_unsafe_view",
                           "aten::resize_",
                           "aten::set_",
                           "aten::alias",
                           "aten::result_type",
                           "aten::item",
                           "aten::_local_scalar_dense"};

// Names that PyTorch's profiler shows between the operators of a backward pass and around compiled code.
constexpr std::array wrappers{"autograd::",       "Torch-Compiled", "TorchDynamo",
                              "CompiledFunction", "AOTDispatcher",  "Pregraph"};

bool is_view(std::string_view name) {
  if (name.empty() || name == "detach" || std::ranges::find(views, name) != views.end()) return true;
  const auto begins_name = [&](std::string_view word) { return name.starts_with(word); };
  return std::ranges::any_of(wrappers, begins_name) ||
         (!name.starts_with("aten::") && (name.ends_with("Backward") || name.ends_with("Backward0")));
}

// Whether a name is an operator's, as opposed to a kernel's or a range's.
bool is_operator_name(std::string_view name) {
  return name.find("::") != std::string_view::npos && name.find_first_of(" <(") == std::string_view::npos;
}

// The kind that an operator's name gives, "aten::mm"; nullopt: a compiled graph's, autograd's, or unknown.
std::optional<OperatorKind> kind_of_operator(std::string_view name) {
  if (const OwnKernel* const own = find_own_kernel(name)) return own->kind;
  if (is_view(name) || name.starts_with("triton_")) return std::nullopt;
  if (const std::optional<OperatorKind> kind = operator_kind(name)) return kind;
  return name.starts_with("aten::") ? std::optional(OperatorKind::elementwise) : std::nullopt;
}

// The kind of a kernel whose launcher's kind may be known. A copy in a product is a copy; a product in a convolution is
// a convolution.
OperatorKind kind_of_kernel(KernelKind own, std::optional<OperatorKind> launcher) {
  const auto is_norm = [](std::optional<OperatorKind> kind) {
    return kind == OperatorKind::layer_norm || kind == OperatorKind::normalisation;
  };
  if (is_norm(own.kind) && is_norm(launcher)) return *launcher;  // norms share kernels
  const bool multiplies = launcher == OperatorKind::attention || launcher == OperatorKind::convolution;
  if (!own.is_generic && !(own.kind == OperatorKind::products && multiplies)) return own.kind;
  return launcher.value_or(own.kind);
}

}  // namespace

std::string_view to_string(OperatorKind kind) {
  return by_enum<OperatorKind>("matrix products", "attention", "softmax and loss", "layer norm", "GELU", "element-wise",
                               "copies and casts", "embedding", "optimiser", "communication", "data",
                               "between operators", "idle", "convolution", "activation", "CUDA graphs", "other",
                               "normalisation")[kind];
}

OperatorKind kind_of(const OperatorTime& each) {
  const std::string_view name = each.name;
  const std::size_t arrow = name.find(launches);
  const bool has_launcher = arrow != std::string_view::npos;
  const std::string_view kernel = has_launcher ? name.substr(arrow + launches.size()) : name;
  const std::optional<OperatorKind> of_operator = kind_of_operator(has_launcher               ? name.substr(0, arrow)
                                                                   : is_operator_name(kernel) ? kernel
                                                                                              : "");
  const bool is_operator = !has_launcher && (of_operator || is_view(kernel));
  constexpr KernelKind unknown{OperatorKind::other, true};
  const KernelKind own = is_operator ? unknown : kernel_kind(kernel).value_or(unknown);
  if (own.kind == OperatorKind::idle || own.kind == OperatorKind::communication) return own.kind;
  if (each.part == "data") return OperatorKind::data;
  if (in_words(each.part) == "optimiser") return OperatorKind::optimizer;
  if (is_operator && is_view(kernel)) return OperatorKind::between;
  return kind_of_kernel(own, of_operator);
}

bool is_work(OperatorKind kind) {
  return kind != OperatorKind::idle && kind != OperatorKind::between && kind != OperatorKind::data &&
         kind != OperatorKind::communication;
}

KindTimes::KindTimes(const StepProfile& profile) {
  for (const OperatorTime& each : profile.operators) ms_[static_cast<std::size_t>(kind_of(each))] += each.self_ms;
}

double step_ms(const StepProfile& profile) {
  return std::accumulate(profile.operators.begin(), profile.operators.end(), 0.0,
                         [](double sum, const OperatorTime& each) { return sum + each.self_ms; });
}

bool is_comparable(double profiled_ms, double measured_ms) {
  constexpr double most = 1.5;
  const double factor = measured_ms / profiled_ms;
  return factor <= most && factor >= 1 / most;
}

StepBreakdown breakdown_of(const StepParts& means, double median_ms) {
  double sum = 0;
  for (const NamedStepPart& part : all_step_parts) sum += is_missing(means.*part.ms) ? 0 : means.*part.ms;
  if (!(sum > 0) || !(median_ms > 0)) return {};
  StepBreakdown step{.parts = means, .other_ms = std::max(0.0, median_ms - sum), .step_ms = median_ms};
  const double factor = std::min(1.0, median_ms / sum);
  for (const NamedStepPart& part : all_step_parts)
    if (!is_missing(means.*part.ms)) step.parts.*part.ms *= factor;
  return step;
}

FittedProfile fit_to_step(StepProfile profile, const StepParts& means, double median_ms) {
  FittedProfile fitted{.profile = std::move(profile), .measured_ms = median_ms};
  if (fitted.profile.steps == 0) return fitted;
  std::vector<OperatorTime>& operators = fitted.profile.operators;
  fitted.profiled_ms = step_ms(fitted.profile);
  fitted.is_comparable = is_comparable(fitted.profiled_ms, median_ms);
  if (!fitted.is_comparable) return fitted;
  const StepBreakdown step = breakdown_of(means, median_ms);
  std::vector<OperatorTime*> rest;
  for (OperatorTime& each : operators) rest.push_back(&each);
  double left_ms = median_ms, rest_ms = fitted.profiled_ms;  // of the operators in `rest`
  const auto fit = [&](const NamedStepPart& part) {
    const double wanted_ms = step.parts.*part.ms;
    const bool is_communication = part.ms == &StepParts::communication_ms;  // which is within other parts of a profile
    const auto is_of_part = [&](const OperatorTime* each) {
      return is_communication ? kind_of(*each) == OperatorKind::communication
                              : in_words(each->part) == in_words(part.name);
    };
    double profiled_ms = 0;
    for (const OperatorTime* each : rest) profiled_ms += is_of_part(each) ? each->self_ms : 0;
    if (is_missing(wanted_ms) || !(profiled_ms > 0)) return;
    for (OperatorTime* each : rest) each->self_ms *= is_of_part(each) ? wanted_ms / profiled_ms : 1;
    std::erase_if(rest, is_of_part);
    left_ms -= wanted_ms;
    rest_ms -= profiled_ms;
  };
  fit({"communication", &StepParts::communication_ms});
  for (const NamedStepPart& part : all_step_parts) fit(part);
  if (rest.empty()) {
    if (left_ms > 0.001 * median_ms) operators.push_back({.part = "other", .self_ms = left_ms});
    return fitted;
  }
  for (OperatorTime* each : rest) each->self_ms *= std::max(0.0, left_ms) / rest_ms;
  return fitted;
}

std::string title_of(const OperatorTime& each) {
  if (each.name.empty()) return "outside operators";
  // A function of the engine's, as autograd calls it: "torch::autograd::CppNode<stepladder::...::FusedMlp>".
  const std::size_t arrow = std::min(each.name.find(launches), each.name.size());
  if (const std::string node = each.name.substr(0, arrow); node.starts_with("torch::autograd::CppNode<")) {
    const std::size_t begin = node.rfind("::") + 2, end = node.find_last_not_of('>') + 1;
    if (begin < end) return node.substr(begin, end - begin) + each.name.substr(arrow);
  }
  return each.name.starts_with("aten::") ? each.name.substr(6) : each.name;
}

double gigaflops_per_s(const OperatorTime& each) {
  return is_missing(each.flops) || each.self_ms <= 0 ? missing : each.flops / each.self_ms / 1e6;
}

std::string flop_rate_text(const OperatorTime& each) {
  const double rate = gigaflops_per_s(each);
  if (is_missing(rate)) return compact(rate);
  return rate >= 999.5 ? compact(rate / 1e3) + " T" : compact(rate) + " G";
}

std::string why_no_profile(const Run& run) {
  if (run.source != "launched") return "operators are timed only in runs trained here";
  if (!run.device.empty() && run.device != "cpu" && run.device != "auto")  // auto: it is queued
    return "it ran on " + run.device + ", and operators are timed on CPUs only";
  if (run.planned_steps < 10) return "operators aren't timed in runs of fewer than ten steps";
  switch (run.status) {
    case RunStatus::finished:
      return "it was recorded by a version of Stepladder that didn't time operators";
    case RunStatus::queued:
    case RunStatus::running:
      return "operators are timed after the last step";
    default:
      return "operators are timed after the last step, and it was " + std::string(to_string(run.status)) + " before";
  }
}

std::vector<OperatorTime> by_name(const StepProfile& profile) {
  std::map<std::pair<std::string, std::string>, OperatorTime> sums;
  for (const OperatorTime& each : profile.operators) {
    const auto [place, is_new] = sums.try_emplace({each.part, each.name}, each);
    OperatorTime& sum = place->second;
    sum.shapes.clear();
    if (is_new) continue;
    sum.calls += each.calls;
    sum.self_ms += each.self_ms;
    if (!is_missing(each.flops)) sum.flops = (is_missing(sum.flops) ? 0 : sum.flops) + each.flops;
  }
  std::vector<OperatorTime> rows;
  for (auto& [key, sum] : sums) rows.push_back(std::move(sum));
  std::ranges::stable_sort(rows, std::greater{}, &OperatorTime::self_ms);
  return rows;
}

std::vector<OperatorKind> kinds_in(std::span<const KindTimes> runs) {
  const auto most = [&](OperatorKind kind) {
    double ms = 0;
    for (const KindTimes& times : runs) ms = std::max(ms, times.of(kind));
    return ms;
  };
  std::vector<OperatorKind> kinds;
  std::copy_if(all_operator_kinds.begin(), all_operator_kinds.end(), std::back_inserter(kinds),
               [&](OperatorKind kind) { return most(kind) > 0; });
  std::ranges::stable_sort(kinds, [&](OperatorKind a, OperatorKind b) { return most(a) > most(b); });
  return kinds;
}

}  // namespace stepladder
