#include "engine/trainer/trainer.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/preparation.h"
#include "engine/system_metrics.h"
#include "engine/trainer/captured_step.h"
#include "engine/trainer/checkpoint.h"
#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/device/kernel_module.h"
#include "engine/trainer/device/lt_products.h"
#include "engine/trainer/device_probe.h"
#include "engine/trainer/host_copies.h"
#include "engine/trainer/model.h"
#include "engine/trainer/operator_watch.h"
#include "engine/trainer/optimizer.h"
#include "engine/trainer/parallel/data_parallel.h"
#include "engine/trainer/planned_step.h"
#include "engine/trainer/preflight.h"
#include "engine/trainer/profile/step_tracer.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"
#include "engine/trainer/text_sample.h"
#include "engine/trainer/weights.h"

namespace stepladder {
namespace {

using Emit = std::function<void(const RunEvent&)>;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t most_watched_steps = 5;

struct Outcome {
  RunStatus status = RunStatus::finished;
  std::string reason;
  std::int64_t peak_memory_bytes = 0;
};

void reset_peak_memory(at::Device device) {
  if (device.is_cuda()) {
    at::globalContext().lazyInitDevice(device.type());  // without it the allocator has no device yet
    at::getDeviceAllocator(device.type())->resetPeakStats(0);
  } else {
    reset_peak_resident_bytes();
  }
}

// On a GPU, of LibTorch's allocations; on a CPU, of the whole process.
std::int64_t peak_memory_bytes(at::Device device) {
  if (!device.is_cuda()) return peak_resident_bytes();
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return at::getDeviceAllocator(device.type())->getDeviceStats(0).allocated_bytes[all].peak;
}

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

std::shared_ptr<Gpt> model_on(at::Device device, const Recipe& recipe) {
  std::shared_ptr<Gpt> model = build_model(recipe);
  model->to(device);
  return model;
}

std::unique_ptr<DeviceStep> device_step_of(const Recipe& recipe, const Gpt& model, const StepDeviceMaker& make) {
  if (recipe.compile != Compile::max) return nullptr;
  DeviceStep::Device device = make(recipe);
  return device.launcher ? std::make_unique<DeviceStep>(recipe, model, std::move(device)) : nullptr;
}

// One run: its model and everything that trains it. The functions below are in the order in which a run calls them.
class Training {
 public:
  Training(const TrainingJob& job, Prepared prepared, const DeviceReport& report, RunControl& control, const Emit& emit,
           const StepGraphMaker& make_graph, const StepDeviceMaker& make_device, StepTracer* tracer);

  Outcome run();

 private:
  void load_state();
  bool connect();
  double capture_step();
  void plan_step();
  bool is_planned() const { return recipe_.compile == Compile::max && device_.is_cpu() && !device_step_; }
  void prepare_device_step();
  void tell_choices();
  void announce(double setup_ms);
  StepRecord train_step(std::int64_t step);
  template <class Mark>
  StepTensors compute(const TokensOf& tokens_of, const Mark& mark);
  Batch train_batch(std::int64_t step, int micro) const;
  template <class Mark>
  StepTensors compute_planned(const TokensOf& tokens_of, const Mark& mark);
  at::Tensor forward_loss(const Tokens& tokens);
  double loss_of(const Tokens& tokens);
  void begin_step(double lr);
  void emit_gap(const StepRecord& record, double wall_ms);
  void after_step(StepRecord record);
  double evaluate();
  void emit_checkpoints();
  void watch_operators();
  bool is_due(std::int64_t every, std::int64_t step) const {
    return every > 0 && (step % every == 0 || step == recipe_.steps);
  }

  const TrainingJob& job_;
  const DeviceReport& report_;
  const RunControl& control_;
  const Emit& emit_;
  const StepGraphMaker& make_graph_;
  const RunId run_;
  const Recipe recipe_;
  const TokenSource source_;
  const at::Device device_;
  const RunSettings settings_;
  DataParallel parallel_;  // before the model: the other processes load while this one builds it
  const c10::OptionalDeviceGuard own_gpu_;
  const std::shared_ptr<Gpt> model_;
  const Clock::time_point began_ = Clock::now();
  const std::unique_ptr<DeviceStep> device_step_;  // null: the model's own operations, or the plan, compute the step
  const std::unique_ptr<AdamW> optimizer_;
  std::optional<Tokenizer> tokenizer_;  // for text samples
  CheckpointSaver saver_;
  StepTimer timer_;
  TokenFeed feed_;
  FiguresOnHost figures_;
  std::int64_t done_ = 0;                          // the last step
  bool has_checkpoint_ = false;                    // one was saved
  std::string save_error_;                         // why the last one that failed could not be saved
  std::unique_ptr<CapturedStep> captured_;         // null: each step starts its kernels one by one
  std::unique_ptr<PlannedStep> planned_;           // null: LibTorch's autograd and the optimiser compute the step
  std::optional<PlannedStep::Observed> observed_;  // by the tracer
  StepTracer* const tracer_;                       // null: the steps are timed, not traced
};

Training::Training(const TrainingJob& job, Prepared prepared, const DeviceReport& report, RunControl& control,
                   const Emit& emit, const StepGraphMaker& make_graph, const StepDeviceMaker& make_device,
                   StepTracer* tracer)
    : job_(job),
      report_(report),
      control_(control),
      emit_(emit),
      make_graph_(make_graph),
      run_(job.run),
      recipe_(std::move(prepared.recipe)),
      source_(std::move(prepared.source)),
      device_(recipe_.device),
      settings_(recipe_),
      parallel_(recipe_, control),
      own_gpu_(parallel_.own_gpu()),
      model_(model_on(device_, recipe_)),
      device_step_(device_step_of(recipe_, *model_, make_device)),
      optimizer_(device_step_ ? device_step_->make_optimizer() : make_optimizer(recipe_, named_parameters(*model_))),
      saver_(job.run, job.checkpoints, recipe_),
      timer_(device_),
      feed_(device_, recipe_.seq),
      figures_(device_),
      tracer_(tracer) {
  if (tracer_) tracer_->prepare(device_);
}

Outcome Training::run() {
  load_state();
  if (!connect()) return {RunStatus::stopped, "stopped before the first step"};
  prepare_device_step();
  const double setup_ms = capture_step();
  plan_step();
  announce(setup_ms);
  tell_choices();

  Outcome outcome;
  while (done_ < recipe_.steps && outcome.status == RunStatus::finished) {
    parallel_.wait_while_paused();
    if (parallel_.stop_requested()) {
      outcome = {RunStatus::stopped, "stopped after step " + std::to_string(done_)};
      break;
    }
    const StepRecord record = train_step(done_ + 1);
    ++done_;
    after_step(record);
    if (!std::isfinite(record.loss)) {
      const char* what = std::isnan(record.loss) ? "NaN" : "infinite";
      outcome = {RunStatus::failed, std::string("the loss is ") + what + " at step " + std::to_string(done_)};
    }
  }

  if (outcome.status != RunStatus::failed && done_ > 0 && parallel_.is_rank0()) {
    saver_.finish(done_, *model_, *optimizer_,
                  control_.wants_checkpoint() ? AtStop::checkpoint : AtStop::as_recipe_says);
  }
  emit_checkpoints();
  if (!save_error_.empty() && !has_checkpoint_) {
    outcome.reason += (outcome.reason.empty() ? "" : "; ") + ("no checkpoint could be saved: " + save_error_);
  }
  outcome.peak_memory_bytes = peak_memory_bytes(device_);
  if (outcome.status == RunStatus::finished) watch_operators();
  return outcome;
}

// Weights, and after a checkpoint moments and step too. A fresh model has its first weights already.
void Training::load_state() {
  if (recipe_.sample_every > 0) tokenizer_ = tokenizer_of(recipe_, source_);
  if (!job_.start_from.empty()) {
    done_ = restore_checkpoint(job_.start_from, recipe_, *model_, *optimizer_);
  } else if (!recipe_.weights.empty()) {
    load_model(*model_, recipe_, WeightsFile(recipe_.weights));
  }
}

// Gives all processes rank 0's state; false if the run was stopped while waiting for them.
bool Training::connect() {
  const bool connected =
      parallel_.connect(tensors_of(named_parameters(*model_)), tensors_of(optimizer_->state()), done_,
                        is_planned() ? DataParallel::Gradients::planned : DataParallel::Gradients::autograd);
  optimizer_->set_steps(done_);
  return connected;
}

// Compares it with the model's own operations on one sequence, since its kernels were compiled for this card just now.
void Training::prepare_device_step() {
  if (!device_step_) return;
  device_step_->weights_changed();
  Batch batch = train_batch(done_ + 1, 0);
  batch.inputs.resize(static_cast<std::size_t>(recipe_.seq));
  batch.targets.resize(static_cast<std::size_t>(recipe_.seq));
  device_step_->verify(feed_.to_device(batch));
  optimizer_->clear_gradients();
}

// What the products' timing has chosen, as the run's console output.
void Training::tell_choices() {
  if ((!device_step_ && !planned_) || !parallel_.is_rank0()) return;
  std::string text;
  for (const std::string& choice : planned_ ? planned_->choices() : device_step_->products().choices())
    text += "product " + choice + "\n";
  if (!text.empty()) emit_(ConsoleText{.run = run_, .at = unix_now(), .text = std::move(text)});
}

// Captures the step if the recipe asks for it and the device can. Returns the milliseconds until the device had
// finished, with those for compiling kernels; missing without a capture.
double Training::capture_step() {
  if (recipe_.compile == Compile::off || is_planned()) return missing;
  std::unique_ptr<StepGraph> graph = make_graph_(device_);
  if (!graph) return missing;
  const auto started = device_step_ ? began_ : Clock::now();
  std::vector<at::Tensor> state = tensors_of(named_parameters(*model_));
  for (at::Tensor& moment : tensors_of(optimizer_->state())) state.push_back(std::move(moment));
  if (device_step_) {
    for (at::Tensor& copy : device_step_->state()) state.push_back(std::move(copy));
  }
  const auto unmarked = [](double StepParts::*) {};  // a graph's parts cannot be timed
  captured_ = std::make_unique<CapturedStep>(std::move(graph), recipe_, device_, *optimizer_,
                                             [=, this](const TokensOf& tokens) { return compute(tokens, unmarked); });
  const auto fill = [this](std::int64_t step, int micro, const Tokens& place) {
    feed_.copy_into(place, train_batch(step, micro));
  };
  captured_->capture(done_, fill, state);
  return std::chrono::duration<double, std::milli>(Clock::now() - started).count();
}

void Training::plan_step() {
  if (!is_planned()) return;
  planned_ = std::make_unique<PlannedStep>(recipe_, *model_, *optimizer_, recipe_.batch / recipe_.nproc,
                                           report_.hardware(recipe_.device) + ", LibTorch " + report_.torch_version);
  if (tracer_) observed_.emplace(*planned_);
}

void Training::announce(double setup_ms) {
  const AutocastScope autocast(recipe_.autocast, device_.type());
  emit_(RunStarted{.run = run_,
                   .at = unix_now(),
                   .tokens_per_step = recipe_.tokens_per_step(),
                   .params = parameter_count(recipe_),
                   .loss_floor = source_.entropy(),
                   .device = recipe_.device,
                   .hardware = report_.hardware(recipe_.device),
                   .precision = precision_name(recipe_),
                   .attention = model_->attention_backend(recipe_.batch, recipe_.seq),
                   .setup_ms = setup_ms,
                   .sync = timer_.sync(),
                   .recipe = to_json(recipe_),
                   .torch_version = report_.torch_version});
}

StepRecord Training::train_step(std::int64_t step) {
  StepRecord record{.run = run_, .step = step, .tokens = recipe_.tokens_per_step(), .lr = learning_rate(recipe_, step)};
  StepTensors result;
  const auto mark = [this](double StepParts::*part) {
    timer_.mark(part);
    if (tracer_) tracer_->end_part(part);
  };
  const auto began = Clock::now();
  if (tracer_) tracer_->begin_step(step, recipe_.grad_accum);
  if (observed_) observed_->share_observers();

  timer_.start();  // ----------------------------------------------------------------------------- dt begins
  begin_step(record.lr);
  if (captured_) {
    captured_->load([&](int micro, const Tokens& place) { feed_.copy_into(place, train_batch(step, micro)); });
    mark(&StepParts::data_ms);
    if (tracer_) tracer_->replay_begins();
    result = captured_->replay();
  } else {
    result = compute([&](int micro) { return feed_.to_device(train_batch(step, micro)); }, mark);
  }
  figures_.start(result);
  record.dt_ms = timer_.stop_ms();  // ------------------------------ dt ends; the device has finished the step
  if (tracer_) tracer_->end_step(step);

  record.parts = timer_.parts();
  if (const double waited_ms = parallel_.waited_ms(); !is_missing(waited_ms)) {
    record.parts.backward_ms -= waited_ms;
    record.parts.communication_ms = waited_ms;
  }
  record.loss = parallel_.mean(figures_.loss());
  if (result.norm.defined()) {
    record.grad_norm = figures_.norm();
  } else {
    record.grad_norm = planned_ ? planned_->gradient_norm() : optimizer_->gradient_norm().item<double>();
  }
  emit_gap(record, std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  return record;
}

// On a GPU, dt is the time between two events on the device. By the wall clock a step takes longer: the host starts its
// first work and reads its figures. A CPU's dt is by the wall clock already.
void Training::emit_gap(const StepRecord& record, double wall_ms) {
  if (timer_.sync() != Sync::event || !parallel_.is_rank0()) return;
  emit_(MetricValues{.run = run_,
                     .step = record.step,
                     .at = unix_now(),
                     .values = {{"gap_ms", wall_ms - record.dt_ms},
                                {"clock_tokens_per_s", static_cast<double>(record.tokens) * 1e3 / wall_ms}}});
}

void Training::begin_step(double lr) {
  if (planned_) return planned_->begin_step(lr);
  optimizer_->begin_step(lr);
}

// The step's work on the device. Calls `mark(part)` after each part.
template <class Mark>
StepTensors Training::compute(const TokensOf& tokens_of, const Mark& mark) {
  if (planned_) return compute_planned(tokens_of, mark);
  StepTensors result;
  optimizer_->clear_gradients();
  for (int micro = 0; micro < recipe_.grad_accum; ++micro) {
    const Tokens tokens = tokens_of(micro);
    mark(&StepParts::data_ms);
    at::Tensor loss = forward_loss(tokens);
    if (recipe_.grad_accum > 1) loss = loss / recipe_.grad_accum;
    mark(&StepParts::forward_ms);
    parallel_.backward(loss, /*average=*/micro == recipe_.grad_accum - 1);
    result.loss = micro == 0 ? loss.detach() : result.loss + loss.detach();
    mark(&StepParts::backward_ms);
  }
  if (recipe_.clip > 0) result.norm = optimizer_->clip_gradients(recipe_.clip);
  optimizer_->update();
  if (device_step_) device_step_->updated();
  mark(&StepParts::optimizer_ms);
  return result;
}

template <class Mark>
StepTensors Training::compute_planned(const TokensOf& tokens_of, const Mark& mark) {
  double loss = 0;
  for (int micro = 0; micro < recipe_.grad_accum; ++micro) {
    const Tokens tokens = tokens_of(micro);
    mark(&StepParts::data_ms);
    loss += planned_->forward(tokens, micro);
    mark(&StepParts::forward_ms);
    if (recipe_.nproc > 1 && micro == recipe_.grad_accum - 1) {
      planned_->backward(micro, [this](const at::Tensor& gradients) { parallel_.begin_average(gradients); });
      parallel_.finish_averages();
    } else {
      planned_->backward(micro);
    }
    mark(&StepParts::backward_ms);
  }
  StepTensors result{.loss = at::scalar_tensor(loss, at::kDouble)};
  double factor = 1;
  if (recipe_.clip > 0) {
    const double norm = planned_->gradient_norm();
    result.norm = at::scalar_tensor(norm, at::kDouble);
    // As clip_gradients; what is not a number stays none.
    if (!(norm + 1e-6 <= recipe_.clip)) factor = recipe_.clip / (norm + 1e-6);
  }
  planned_->update(factor);
  mark(&StepParts::optimizer_ms);
  return result;
}

Batch Training::train_batch(std::int64_t step, int micro) const {
  const std::int64_t index = (recipe_.overfit ? 0 : (step - 1) * recipe_.grad_accum) + micro;
  return parallel_.share(source_.batch(Split::train, index, recipe_.batch));
}

at::Tensor Training::forward_loss(const Tokens& tokens) {
  if (device_step_) return device_step_->loss(tokens);
  const AutocastScope autocast(recipe_.autocast, device_.type());
  return model_->loss(tokens.inputs, tokens.targets);
}

double Training::loss_of(const Tokens& tokens) {
  return planned_ ? planned_->loss(tokens) : forward_loss(tokens).item<double>();
}

// Everything between two steps: validation, text samples, checkpoints. None of it counts in dt.
void Training::after_step(StepRecord record) {
  const bool finite = std::isfinite(record.loss);
  if (finite && is_due(recipe_.eval_every, record.step)) record.val_loss = evaluate();
  record.at = unix_now();
  emit_(record);
  if (!finite) return;
  if (is_due(recipe_.sample_every, record.step)) {  // on every rank, so that no rank waits for rank 0
    const auto length = device_.is_cuda() ? SampleContext::padded : SampleContext::as_long_as_text;
    std::string text = sample_text(*model_, recipe_, *tokenizer_, device_, record.step, length);
    emit_(TextSample{.run = run_, .step = record.step, .at = unix_now(), .text = std::move(text)});
  }
  if (parallel_.is_rank0()) saver_.after_step(record.step, *model_, *optimizer_);
  emit_checkpoints();
}

// The mean loss over batches of the validation split; `missing` if the run was stopped before the last one.
double Training::evaluate() {
  const at::NoGradGuard no_grad;
  const std::int64_t batches = std::min(recipe_.eval_batches, source_.validation_batches(recipe_.batch));
  double sum = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    if (parallel_.stop_requested()) return missing;
    const Batch batch = parallel_.share(source_.batch(Split::validation, i, recipe_.batch));
    sum += parallel_.mean(loss_of(feed_.to_device(batch)));
  }
  return sum / static_cast<double>(batches);
}

void Training::emit_checkpoints() {
  for (const CheckpointSaved& saved : saver_.results()) {
    has_checkpoint_ |= saved.error.empty();
    if (!saved.error.empty()) save_error_ = saved.error;
    emit_(saved);
  }
}

// Times the operators of a few more steps after everything is done and saved, and keeps nothing else of these steps.
// Every rank takes them, since they exchange gradients. A failure here is ignored: the run is complete without it.
void Training::watch_operators() try {
  if (captured_ || !device_.is_cpu()) return;
  const int steps = static_cast<int>(std::min<std::int64_t>(most_watched_steps, recipe_.steps / 10));
  if (steps == 0) return;
  OperatorWatch watch;
  std::optional<PlannedStep::Observed> observed;
  if (planned_) observed.emplace(*planned_);
  for (int i = 0; i < steps; ++i) {
    watch.begin_step();
    begin_step(learning_rate(recipe_, recipe_.steps));
    compute([&](int micro) { return feed_.to_device(train_batch(recipe_.steps + 1 + i, micro)); },
            [&](double StepParts::*part) { watch.end_part(part); });
  }
  emit_(StepProfile{.run = run_, .at = unix_now(), .steps = steps, .operators = watch.operators()});
} catch (const std::exception&) {
}

Outcome train_to_end(const TrainingJob& job, RunControl& control, const Emit& emit, const StepGraphMaker& make_graph,
                     const StepDeviceMaker& make_device, StepTracer* tracer) {
  const DeviceReport& report = device_report();
  Prepared prepared = prepare(job.recipe, job.start_from.empty() ? Start::fresh : Start::checkpoint);
  prepared.recipe = resolve(std::move(prepared.recipe), report);
  require_memory(prepared.recipe);
  reset_peak_memory(at::Device(prepared.recipe.device));
  return Training(job, std::move(prepared), report, control, emit, make_graph, make_device, tracer).run();
}

// The first line of LibTorch's message, without the place in its source.
std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  if (const auto place = text.find(" (Exception raised from"); place != std::string::npos) text.resize(place);
  if (text.starts_with('[')) {  // "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: ..."
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  }
  return text;
}

Outcome failure(const std::string& message) {
  std::string text = first_line(message);
  const auto cpu = text.find("DefaultCPUAllocator: ");
  if (cpu != std::string::npos) {
    text = "out of memory: " + text.substr(cpu + std::string_view("DefaultCPUAllocator: ").size());
  } else if (text.find("out of memory") != std::string::npos && !text.starts_with("out of memory")) {
    text = "out of memory: " + text;
  }
  return {RunStatus::failed, text.empty() ? "failed without a message" : text};
}

Outcome outcome_of(const TrainingJob& job, RunControl& control, const Emit& emit, const StepGraphMaker& make_graph,
                   const StepDeviceMaker& make_device, StepTracer* tracer = nullptr) {
  try {
    return train_to_end(job, control, emit, make_graph, make_device, tracer);
  } catch (const c10::Error& error) {
    return failure(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return {RunStatus::failed, "out of memory"};
  } catch (const std::exception& error) {
    return failure(error.what());
  }
}

}  // namespace

std::unique_ptr<StepGraph> make_step_graph(at::Device device) {
  const CudaParts* const parts = device.is_cuda() ? cuda_library().parts : nullptr;
  return parts ? parts->make_step_graph() : nullptr;
}

// Its kernels are compiled for the first GPU, or another of the same kind.
DeviceStep::Device make_step_device(const Recipe& recipe) {
  const CudaParts* const parts = recipe.device == "cuda" ? cuda_library().parts : nullptr;
  if (!parts) return {};
  const Gpu& gpu = cuda_library().gpus.front();
  const std::string module = kernel_module({.compute_major = gpu.compute_major,
                                            .compute_minor = gpu.compute_minor,
                                            .half = recipe.autocast == Autocast::bf16,
                                            .width = recipe.d_model,
                                            .vocab = recipe.vocab,
                                            .padded_vocab = recipe.padded_vocab()});
  const bool tf32 = recipe.matmul == MatmulPrecision::tf32;
  return {.launcher = parts->make_launcher(module), .make_products = [parts, tf32](const DeviceKernels& kernels) {
            lt::Library library = parts->lt_library();
            KeptChoices kept(kept_choices_file(library.machine));
            return std::make_unique<LtProducts>(kernels, std::move(library), tf32, std::move(kept));
          }};
}

void train(const TrainingJob& job, RunControl& control, const Emit& emit, const StepGraphMaker& make_graph,
           const StepDeviceMaker& make_device) {
  Outcome outcome = outcome_of(job, control, emit, make_graph, make_device);
  emit(RunEnded{.run = job.run,
                .at = unix_now(),
                .status = outcome.status,
                .reason = std::move(outcome.reason),
                .peak_memory_bytes = outcome.peak_memory_bytes});
}

void trace_training(const StepTracing& asked, const std::function<bool()>& stop_requested,
                    const StepGraphMaker& make_graph, const StepDeviceMaker& make_device) {
  RunControl control;
  const Emit stop_if_asked = [&](const RunEvent&) {
    if (stop_requested()) control.request_stop();
  };
  StepTracer tracer(asked.skipped, asked.steps, asked.file);
  const TrainingJob job{.recipe = recipe_to_trace(asked)};
  const Outcome outcome = outcome_of(job, control, stop_if_asked, make_graph, make_device, &tracer);
  if (!tracer.is_done()) throw std::runtime_error(outcome.reason);
}

}  // namespace stepladder
