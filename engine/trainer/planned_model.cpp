// Connects model and optimiser to the plan. All gradients are views into one flat tensor, last layer first, so that DDP
// can send finished pieces during the backward pass. Tokens are range-checked here because the plan doesn't check them.
#include "engine/trainer/planned_model.h"

#include <ATen/ThreadLocalState.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "engine/kernel_parts.h"
#include "engine/trainer/library_kernels.h"
#include "engine/trainer/parallel/data_parallel.h"
#include "engine/trainer/profile/kernel_range.h"

namespace stepladder {
namespace {

constexpr double choice_budget_s = 1;  // for timing ways to compute products

float* elements_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat && tensor.is_cpu(),
              "the plan needs contiguous float32 tensors on the CPU");
  return static_cast<float*>(tensor.mutable_data_ptr());
}

// The plan's view of each parameter, by the parameter's name.
using Parameters = std::map<std::string, PlanParameter>;

// "h.3.": the parameters of layer 3.
std::string prefix_of(int layer) {
  return "h." + std::to_string(layer) + ".";
}

// Places the gradients in the order in which the backward pass computes them. Sets the end of each layer's.
Parameters parameters_of(const AdamW& optimizer, const at::Tensor& gradients, std::vector<std::int64_t>& layer_end) {
  Parameters parameters;
  std::int64_t offset = 0;
  std::vector<AdamW::Slot> slots = optimizer.slots();
  const auto place = [&](const AdamW::Slot& slot) {
    const std::int64_t size = slot.parameter.numel();
    const at::Tensor gradient = gradients.narrow(0, offset, size).view(slot.parameter.sizes());
    at::Tensor(slot.parameter).mutable_grad() = gradient;
    parameters[slot.name] = {.weight = elements_of(slot.parameter),
                             .gradient = elements_of(gradient),
                             .average = elements_of(slot.average),
                             .squared_average = elements_of(slot.squared_average),
                             .elements = size,
                             .weight_decay = slot.weight_decay};
    offset += size;
  };
  for (int layer = static_cast<int>(layer_end.size()) - 1; layer >= 0; --layer) {
    const std::string prefix = prefix_of(layer);
    std::erase_if(slots, [&](const AdamW::Slot& slot) {
      if (!slot.name.starts_with(prefix)) return false;
      place(slot);
      return true;
    });
    layer_end[static_cast<std::size_t>(layer)] = offset;
  }
  for (const AdamW::Slot& slot : slots) place(slot);
  return parameters;
}

PlanParameters arranged(const Recipe& recipe, const Parameters& parameters) {
  const auto layer = [&](const std::string& name) {
    return PlanLayer{parameters.at(name + ".weight"), parameters.at(name + ".bias")};
  };
  PlanParameters plan{.tokens = parameters.at("wte.weight"),
                      .positions = parameters.at("wpe.weight"),
                      .head = parameters.at(recipe.tied_head ? "wte.weight" : "lm_head.weight"),
                      .ln_f = layer("ln_f")};
  for (int i = 0; i < recipe.layers; ++i) {
    const std::string block = prefix_of(i);
    plan.blocks.push_back({.ln_1 = layer(block + "ln_1"),
                           .attention = layer(block + "attn.c_attn"),
                           .attention_out = layer(block + "attn.c_proj"),
                           .ln_2 = layer(block + "ln_2"),
                           .fc = layer(block + "mlp.c_fc"),
                           .fc_out = layer(block + "mlp.c_proj")});
  }
  return plan;
}

PlanShape shape_of(const Recipe& recipe, std::int64_t sequences) {
  return {.layers = recipe.layers,
          .heads = recipe.heads,
          .width = recipe.d_model,
          .vocab = recipe.vocab,
          .padded_vocab = recipe.padded_vocab(),
          .sequences = sequences,
          .length = recipe.seq,
          .tied_head = recipe.tied_head,
          .workers = threads_per_process(recipe)};
}

// The fastest of three passes after one that warms the caches; of one, where that takes long.
double seconds_of(const std::function<void()>& pass) {
  constexpr double long_s = 2;
  const Stopwatch clock = wall_clock();
  pass();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3 && (i == 0 || least < long_s); ++i) least = std::min(least, clock(pass));
  return least;
}

// Of a forward and a backward pass. Leaves the parameters' moments and weights as they are, and writes their gradients.
double seconds_of_step(GptPlan& plan, const PlanShape& shape) {
  const std::vector<std::int64_t> tokens(static_cast<std::size_t>(shape.sequences * shape.length));
  return seconds_of([&] {
    plan.forward(tokens.data(), tokens.data(), 1, false);
    plan.backward(false, {});
  });
}

}  // namespace

PlannedModel::PlannedModel(const Recipe& recipe, const Gpt& model, AdamW& optimizer, std::int64_t sequences,
                           const std::string& machine)
    : recipe_(recipe),
      shape_(shape_of(recipe, sequences)),
      machine_(machine),
      optimizer_(optimizer),
      layer_end_(static_cast<std::size_t>(recipe.layers)) {
  const at::NoGradGuard no_grad;
  std::int64_t all = 0;
  for (const auto& [name, parameter] : named_parameters(model)) all += parameter.numel();
  gradients_ = at::zeros({all}, at::kFloat);
  const PlanParameters parameters = arranged(recipe, parameters_of(optimizer, gradients_, layer_end_));
  plan_ = recipe.autocast == Autocast::bf16 ? make_plan<Bf16>(parameters) : make_plan<float>(parameters);
}

template <class T>
std::unique_ptr<GptPlan> PlannedModel::make_plan(const PlanParameters& parameters) {
  const std::set<std::string> left_out = kernels_left_out(recipe_);
  PlanKernels<T> kernels = kernels_without<T>(left_out);
  if (!machine_.empty() && !left_out.contains("products")) {
    std::vector<ProductWay<T>> ways = own_ways<T>();
    ways.push_back(library_products<T>());
    KeptChoices kept(kept_choices_file(machine_));
    ChosenProducts<T> chosen = choose_products(shape_, ways, kept, choice_budget_s, wall_clock());
    const auto step_s = [&](const PlanProducts<T>& products) {
      kernels.products = products;
      return seconds_of_step(*GptPlan::make(shape_, parameters, kernels), shape_);
    };
    confirm_by_steps<T>(shape_, ways.front(), kept, step_s, chosen);
    kernels.products = std::move(chosen.products);
    choices_ = std::move(chosen.lines);
  }
  return GptPlan::make(shape_, parameters, kernels);
}

StepChoice PlannedModel::compare_with(const std::function<void(const Tokens&)>& other) {
  KeptChoices kept(kept_choices_file(machine_));
  const at::Tensor tokens = at::zeros({shape_.sequences, shape_.length}, at::kLong);
  const auto plan_s = [&] { return seconds_of_step(*plan_, shape_); };
  const auto other_s = [&] { return seconds_of([&] { other({tokens, tokens}); }); };
  StepChoice choice = recipe_.autocast == Autocast::bf16 ? choose_step<Bf16>(shape_, kept, plan_s, other_s)
                                                         : choose_step<float>(shape_, kept, plan_s, other_s);
  const at::NoGradGuard no_grad;
  gradients_.zero_();
  return choice;
}

// Checks the tokens' shape and range, which the plan doesn't check.
Tokens PlannedModel::checked(const Tokens& tokens) const {
  for (const at::Tensor& each : {tokens.inputs, tokens.targets}) {
    TORCH_CHECK(each.scalar_type() == at::kLong && each.is_contiguous() && each.size(1) == recipe_.seq,
                "not the tokens of a micro-batch");
    TORCH_CHECK_INDEX(each.min().item<std::int64_t>() >= 0 && each.max().item<std::int64_t>() < recipe_.vocab,
                      "a token is outside the vocabulary of ", recipe_.vocab);
  }
  return tokens;
}

void PlannedModel::begin_step(double lr) {
  lr_ = lr;
  optimizer_.begin_step(lr);
}

double PlannedModel::forward(const Tokens& tokens, int micro) {
  tokens_ = checked(tokens);
  const double share = 1.0 / recipe_.grad_accum;
  return share * plan_->forward(tokens_.inputs.const_data_ptr<std::int64_t>(),
                                tokens_.targets.const_data_ptr<std::int64_t>(), share, micro > 0);
}

void PlannedModel::backward(int micro, const Ready& ready, std::int64_t piece) {
  if (!ready) return plan_->backward(micro > 0, {});
  std::int64_t given = 0;
  const auto give = [&](std::int64_t end, bool all) {
    while (end - given >= piece || (all && end > given)) {
      const std::int64_t size = std::min(piece, end - given);
      ready(gradients_.narrow(0, given, size));
      given += size;
    }
  };
  plan_->backward(micro > 0, [&](std::int64_t layer) { give(layer_end_[static_cast<std::size_t>(layer)], false); });
  give(gradients_.numel(), true);
}

void PlannedModel::update(double gradient_factor) {
  plan_->update({.lr = lr_,
                 .beta1 = recipe_.beta1,
                 .beta2 = recipe_.beta2,
                 .eps = recipe_.eps,
                 .gradient_factor = gradient_factor,
                 .step = optimizer_.steps()});
}

double PlannedModel::loss(const Tokens& tokens) {
  tokens_ = checked(tokens);
  return plan_->forward(tokens_.inputs.const_data_ptr<std::int64_t>(), tokens_.targets.const_data_ptr<std::int64_t>(),
                        0, false);
}

// LibTorch's observers belong to threads; the other workers' threads borrow this thread's state for each kernel.
class PlannedModel::Observed::Watch : public KernelWatch {
 public:
  explicit Watch(int workers) : kernels_(static_cast<std::size_t>(workers)) {}

  void share_observers() { shared_.emplace(); }

  void begin(int worker, const char* kernel, const KernelWork& work) override {
    if (worker > 0 && !shared_) return;
    Kernel& now = kernels_[static_cast<std::size_t>(worker)];
    if (worker > 0) now.borrowed.emplace(*shared_);
    now.range.emplace(kernel, work.flops, work.bytes);
  }
  void end(int worker) override {
    Kernel& now = kernels_[static_cast<std::size_t>(worker)];
    now.range.reset();
    now.borrowed.reset();
  }

 private:
  struct alignas(64) Kernel {
    std::optional<at::ThreadLocalStateGuard> borrowed;
    std::optional<KernelRange> range;
  };
  std::vector<Kernel> kernels_;  // that runs, by worker
  std::optional<at::ThreadLocalState> shared_;
};

PlannedModel::Observed::Observed(PlannedModel& step)
    : step_(step), watch_(std::make_unique<Watch>(step.plan_->workers())) {
  step_.plan_->watch(watch_.get());
}

void PlannedModel::Observed::share_observers() {
  watch_->share_observers();
}

PlannedModel::Observed::~Observed() {
  step_.plan_->watch(nullptr);
}

}  // namespace stepladder
