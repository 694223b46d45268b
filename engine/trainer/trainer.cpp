#include "engine/trainer/trainer.h"

#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <torch/mps.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/preparation.h"
#include "engine/stage.h"
#include "engine/system_metrics.h"
#include "engine/trainer/captured_step.h"
#include "engine/trainer/checkpoint.h"
#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/model.h"
#include "engine/trainer/operator_watch.h"
#include "engine/trainer/optimizer.h"
#include "engine/trainer/parallel/data_parallel.h"
#include "engine/trainer/parallel/process_group.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"
#include "engine/trainer/text_sample.h"
#include "engine/trainer/weights.h"

namespace stepladder {
namespace {

using Emit = std::function<void(const RunEvent&)>;

constexpr std::int64_t most_profiled_steps = 5;

struct Outcome {
  RunStatus status = RunStatus::finished;
  std::string reason;
  std::int64_t peak_memory_bytes = 0;
};

void reset_peak_memory(at::Device device) {
  if (device.is_cuda()) {
    at::globalContext().lazyInitDevice(device.type());  // else the allocator knows of no device yet
    at::getDeviceAllocator(device.type())->resetPeakStats(0);
  } else {
    reset_peak_resident_bytes();
  }
}

// Of what LibTorch has taken on a GPU; on a CPU of the whole process.
std::int64_t peak_memory_bytes(at::Device device) {
  if (!device.is_cuda()) return peak_resident_bytes();
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return at::getDeviceAllocator(device.type())->getDeviceStats(0).allocated_bytes[all].peak;
}

void require_device(const Recipe& recipe, const DeviceReport& report) {
  if (recipe.device == "cuda" && report.gpus.empty()) {
    throw RecipeError("--device", "cuda cannot be used: " + report.cuda_note);
  }
  if (recipe.device == "mps" && !report.mps) throw RecipeError("--device", "mps cannot be used: there is no Apple GPU");
  for (const Stage& stage : all_stages()) {
    if (!stage.needs_support || !stage.is_on(recipe)) continue;
    const std::string reason = stage.unavailable(recipe, report, recipe.device);
    if (!reason.empty()) throw RecipeError("--stage", stage.id + " cannot be used: " + reason);
  }
}

// The recipe with every "auto" replaced by what it becomes here.
Recipe resolve(Recipe recipe, const DeviceReport& report) {
  recipe.device = report.resolve(recipe.device);
  require_device(recipe, report);
  if (recipe.threads == 0) recipe.threads = std::min(default_threads(), report.cpu_cores);
  recipe.threads = threads_per_process(recipe) * recipe.nproc;
  return recipe;
}

// Said before anything is built: where memory runs out while weights are written, Linux kills the process instead of
// refusing an allocation.
void require_memory(const Recipe& recipe, const DeviceReport& report) {
  const std::int64_t bytes_per_parameter = 16;  // float32 weight, gradient and two moments
  const std::int64_t needed = parameter_count(recipe) * bytes_per_parameter;
  const std::int64_t free = recipe.device == "cuda" ? report.gpus.front().memory_bytes : available_memory_bytes();
  if (free <= 0 || needed <= free) return;
  const auto gigabytes = [](std::int64_t bytes) {
    const std::int64_t tenths = (bytes + 50'000'000) / 100'000'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
  };
  throw std::runtime_error("out of memory: weights, gradients and moments of " +
                           std::to_string(parameter_count(recipe)) + " parameters take " + gigabytes(needed) +
                           ", but " + gigabytes(free) + " are free");
}

Tokens to_device(const Batch& batch, const Recipe& recipe, at::Device device) {
  const auto tensor = [&](const std::vector<std::int64_t>& values) {
    const auto rows = std::ssize(values) / recipe.seq;
    const at::Tensor view = at::from_blob(const_cast<std::int64_t*>(values.data()), {rows, recipe.seq}, at::kLong);
    return view.to(device, false, /*copy=*/true);
  };
  return {tensor(batch.inputs), tensor(batch.targets)};
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

// One run's model and all that trains it, from its recipe to its last step.
class Training {
 public:
  Training(const TrainingJob& job, Prepared prepared, const DeviceReport& report, RunControl& control, const Emit& emit,
           const StepGraphMaker& make_graph);

  Outcome run();

 private:
  double capture_step(std::unique_ptr<StepGraph> graph);
  void announce(const DeviceReport& report, double setup_ms);
  StepRecord train_step(std::int64_t step);
  template <class Mark>
  StepTensors compute(const TokensOf& tokens_of, const Mark& mark);
  Tokens train_tokens(std::int64_t step, int micro, at::Device device);
  void after_step(StepRecord record);
  void profile();
  double evaluate();
  at::Tensor forward_loss(const Tokens& tokens);
  bool is_due(std::int64_t every, std::int64_t step) const {
    return every > 0 && (step % every == 0 || step == recipe_.steps);
  }
  void emit_checkpoints();

  const RunId run_;
  const Recipe recipe_;
  const TokenSource source_;
  const Emit& emit_;
  const at::Device device_;
  const RunSettings settings_;
  DataParallel parallel_;  // before the model: the other processes load while this one builds it
  const c10::OptionalDeviceGuard own_gpu_;
  const std::shared_ptr<Gpt> model_;
  const std::unique_ptr<AdamW> optimizer_;
  std::optional<Tokenizer> tokenizer_;  // where there are text samples
  CheckpointSaver saver_;
  StepTimer timer_;
  std::int64_t done_ = 0;                   // the last step
  bool connected_ = false;                  // false: stopped while it waited for the other processes
  std::unique_ptr<CapturedStep> captured_;  // null: each step starts its kernels one by one
};

Training::Training(const TrainingJob& job, Prepared prepared, const DeviceReport& report, RunControl& control,
                   const Emit& emit, const StepGraphMaker& make_graph)
    : run_(job.run),
      recipe_(std::move(prepared.recipe)),
      source_(std::move(prepared.source)),
      emit_(emit),
      device_(recipe_.device),
      settings_(recipe_),
      parallel_(recipe_, control),
      own_gpu_(parallel_.own_gpu()),
      model_(model_on(device_, recipe_)),
      optimizer_(make_optimizer(recipe_, named_parameters(*model_))),
      saver_(job.run, job.checkpoints, recipe_),
      timer_(device_) {
  if (recipe_.sample_every > 0) tokenizer_ = tokenizer_of(recipe_, source_);
  if (!job.start_from.empty()) {
    done_ = restore_checkpoint(job.start_from, recipe_, *model_, *optimizer_);
  } else if (!recipe_.weights.empty()) {
    load_model(*model_, recipe_, WeightsFile(recipe_.weights));
  }
  connected_ = parallel_.connect(tensors_of(named_parameters(*model_)), tensors_of(optimizer_->state()), done_);
  optimizer_->set_steps(done_);
  if (!connected_) return;
  double setup_ms = missing;
  if (recipe_.compile == Compile::on) {
    if (auto graph = make_graph(device_)) setup_ms = capture_step(std::move(graph));
  }
  announce(report, setup_ms);
}

// Returns the milliseconds that it took, until the device was done with it.
double Training::capture_step(std::unique_ptr<StepGraph> graph) {
  using Clock = std::chrono::steady_clock;
  const auto started = Clock::now();
  std::vector<at::Tensor> state = tensors_of(named_parameters(*model_));
  for (at::Tensor& moment : tensors_of(optimizer_->state())) state.push_back(std::move(moment));
  const auto unmarked = [](double StepParts::*) {};  // a graph knows no parts
  captured_ = std::make_unique<CapturedStep>(std::move(graph), recipe_, device_, *optimizer_,
                                             [=, this](const TokensOf& tokens) { return compute(tokens, unmarked); });
  captured_->capture(
      done_, [this](std::int64_t step, int micro) { return train_tokens(step, micro, at::kCPU); }, state);
  return std::chrono::duration<double, std::milli>(Clock::now() - started).count();
}

void Training::announce(const DeviceReport& report, double setup_ms) {
  const AutocastScope autocast(recipe_.autocast, device_.type());
  emit_(RunStarted{.run = run_,
                   .at = unix_now(),
                   .tokens_per_step = recipe_.tokens_per_step(),
                   .params = parameter_count(recipe_),
                   .loss_floor = source_.entropy(),
                   .device = recipe_.device,
                   .hardware = report.hardware(recipe_.device),
                   .precision = precision_name(recipe_),
                   .attention = model_->attention_backend(recipe_.batch, recipe_.seq),
                   .setup_ms = setup_ms,
                   .sync = timer_.sync(),
                   .recipe = to_json(recipe_),
                   .torch_version = report.torch_version});
}

Outcome Training::run() {
  if (!connected_) return {RunStatus::stopped, "stopped before the first step"};
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
    saver_.finish(done_, *model_, *optimizer_);
  }
  emit_checkpoints();
  outcome.peak_memory_bytes = peak_memory_bytes(device_);
  if (outcome.status == RunStatus::finished) {
    try {
      profile();
    } catch (const std::exception&) {  // the run is whole without it
    }
  }
  return outcome;
}

// When all is done and saved: a few steps more, of which nothing is kept but where their time goes. Every rank does
// them, since they exchange gradients.
void Training::profile() {
  if (captured_ || !device_.is_cpu()) return;
  const int steps = static_cast<int>(std::min<std::int64_t>(most_profiled_steps, recipe_.steps / 10));
  if (steps == 0) return;
  OperatorWatch watch;
  for (int i = 0; i < steps; ++i) {
    watch.begin_step();
    optimizer_->begin_step(learning_rate(recipe_, recipe_.steps));
    compute([&](int micro) { return train_tokens(recipe_.steps + 1 + i, micro, device_); },
            [&](double StepParts::*part) { watch.end_part(part); });
  }
  emit_(StepProfile{.run = run_, .at = unix_now(), .steps = steps, .operators = watch.operators()});
}

StepRecord Training::train_step(std::int64_t step) {
  StepRecord record{.run = run_, .step = step, .tokens = recipe_.tokens_per_step(), .lr = learning_rate(recipe_, step)};
  StepTensors result;
  const auto mark = [this](double StepParts::*part) { timer_.mark(part); };

  timer_.start();  // ------------------------------------------------------------------ what a step's dt is made of
  optimizer_->begin_step(record.lr);
  if (captured_) {
    captured_->load([&](int micro) { return train_tokens(step, micro, at::kCPU); });
    mark(&StepParts::data_ms);
    result = captured_->replay();
  } else {
    result = compute([&](int micro) { return train_tokens(step, micro, device_); }, mark);
  }
  record.dt_ms = timer_.stop_ms();  // ----------------------------------------------- from here on: record keeping

  record.parts = timer_.parts();
  if (const double waited_ms = parallel_.waited_ms(); !is_missing(waited_ms)) {
    record.parts.backward_ms -= waited_ms;
    record.parts.communication_ms = waited_ms;
  }
  record.loss = parallel_.mean(result.loss.item<double>());
  record.grad_norm = (result.norm.defined() ? result.norm : optimizer_->gradient_norm()).item<double>();
  return record;
}

// A step's work on the device. `mark(part)` is called after each part.
template <class Mark>
StepTensors Training::compute(const TokensOf& tokens_of, const Mark& mark) {
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
  mark(&StepParts::optimizer_ms);
  return result;
}

Tokens Training::train_tokens(std::int64_t step, int micro, at::Device device) {
  const std::int64_t index = (recipe_.overfit ? 0 : (step - 1) * recipe_.grad_accum) + micro;
  return to_device(parallel_.share(source_.batch(Split::train, index, recipe_.batch)), recipe_, device);
}

void Training::after_step(StepRecord record) {
  const bool finite = std::isfinite(record.loss);
  if (finite && is_due(recipe_.eval_every, record.step)) record.val_loss = evaluate();
  record.at = unix_now();
  emit_(record);
  if (!finite) return;
  if (is_due(recipe_.sample_every, record.step)) {  // on every rank, so that none waits for rank 0
    std::string text = sample_text(*model_, recipe_, *tokenizer_, device_, record.step);
    emit_(TextSample{.run = run_, .step = record.step, .at = unix_now(), .text = std::move(text)});
  }
  if (parallel_.is_rank0()) saver_.after_step(record.step, *model_, *optimizer_);
  emit_checkpoints();
}

at::Tensor Training::forward_loss(const Tokens& tokens) {
  const AutocastScope autocast(recipe_.autocast, device_.type());
  return model_->loss(tokens.inputs, tokens.targets);
}

// Mean loss over batches of the validation split; `missing` where it was stopped before the last one.
double Training::evaluate() {
  const at::NoGradGuard no_grad;
  const std::int64_t batches = std::min(recipe_.eval_batches, source_.validation_batches(recipe_.batch));
  double sum = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    if (parallel_.stop_requested()) return missing;
    const Batch batch = parallel_.share(source_.batch(Split::validation, i, recipe_.batch));
    sum += parallel_.mean(forward_loss(to_device(batch, recipe_, device_)).item<double>());
  }
  return sum / static_cast<double>(batches);
}

void Training::emit_checkpoints() {
  for (const CheckpointSaved& saved : saver_.results()) emit_(saved);
}

Outcome train_to_end(const TrainingJob& job, RunControl& control, const Emit& emit, const StepGraphMaker& make_graph) {
  const DeviceReport& report = device_report();
  Prepared prepared = prepare(job.recipe, job.start_from.empty() ? Start::fresh : Start::checkpoint);
  prepared.recipe = resolve(std::move(prepared.recipe), report);
  require_memory(prepared.recipe, report);
  reset_peak_memory(at::Device(prepared.recipe.device));
  return Training(job, std::move(prepared), report, control, emit, make_graph).run();
}

// The first line, without the place in LibTorch's source that it begins or goes on with.
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

}  // namespace

const DeviceReport& device_report() {
  static const DeviceReport report = [] {
    const CudaLibrary& cuda = cuda_library();
    DeviceReport all = describe_cpu();
    all.torch_version = TORCH_VERSION;
    all.cpu_capability = at::get_cpu_capability();
    all.gpus = cuda.gpus;
    all.cuda_note = cuda.note;
    all.mps = torch::mps::is_available();
    all.process_groups_note = process_groups_note(at::kCPU);
    all.gpu_process_groups_note = process_groups_note(at::kCUDA);
    all.step_capture_note = cuda.parts_note;
    return all;
  }();
  return report;
}

std::unique_ptr<StepGraph> make_step_graph(at::Device device) {
  const CudaParts* const parts = device.is_cuda() ? cuda_library().parts : nullptr;
  return parts ? parts->make_step_graph() : nullptr;
}

void train(const TrainingJob& job, RunControl& control, const Emit& emit, const StepGraphMaker& make_graph) {
  Outcome outcome;
  try {
    outcome = train_to_end(job, control, emit, make_graph);
  } catch (const c10::Error& error) {
    outcome = failure(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    outcome = {RunStatus::failed, "out of memory"};
  } catch (const std::exception& error) {
    outcome = failure(error.what());
  }
  emit(RunEnded{.run = job.run,
                .at = unix_now(),
                .status = outcome.status,
                .reason = std::move(outcome.reason),
                .peak_memory_bytes = outcome.peak_memory_bytes});
}

std::string try_to_capture(at::Device device, const StepGraphMaker& make_graph) {
  Recipe tiny;
  tiny.layers = tiny.heads = 2;
  tiny.d_model = 64;
  tiny.batch = 2;
  tiny.seq = 32;
  tiny.steps = 1;
  tiny.device = device.is_cuda() ? "cuda" : "cpu";
  tiny.compile = Compile::on;
  std::string reason;
  RunControl control;
  train(
      {.recipe = tiny}, control,
      [&](const RunEvent& event) {
        if (const auto* ended = std::get_if<RunEnded>(&event)) reason = ended->reason;
      },
      make_graph);
  return reason;
}

DeviceReport probe() {
  DeviceReport report = device_report();
  if (!report.gpus.empty() && report.step_capture_note.empty())
    report.step_capture_note = try_to_capture(at::Device(at::kCUDA, 0));
  return report;
}

}  // namespace stepladder
