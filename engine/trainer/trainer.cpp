// Trains one run: Training's members are constructed and its functions called in the order in which they are written
// here. Everything between `dt begins` and `dt ends` in train_step is measured, so nothing else may move there. Errors
// of LibTorch become a run that failed, with one line of reason.
#include "engine/trainer/trainer.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/preparation.h"
#include "engine/stage.h"
#include "engine/system_metrics.h"
#include "engine/trainer/checkpoint.h"
#include "engine/trainer/device_probe.h"
#include "engine/trainer/host_copies.h"
#include "engine/trainer/model.h"
#include "engine/trainer/operator_watch.h"
#include "engine/trainer/parallel/data_parallel.h"
#include "engine/trainer/preflight.h"
#include "engine/trainer/profile/step_tracer.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"
#include "engine/trainer/text_sample.h"
#include "engine/trainer/weights.h"

namespace stepladder {
namespace {

using Emit = std::function<void(const RunEvent&)>;

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

// The peak of LibTorch's allocations on a GPU, of the whole process's memory on a CPU.
std::int64_t peak_memory_bytes(at::Device device) {
  if (!device.is_cuda()) return peak_resident_bytes();
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return at::getDeviceAllocator(device.type())->getDeviceStats(0).allocated_bytes[all].peak;
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

// The way to take a step, by the stage that asks for it.
std::string name_of(Compile compile) {
  for (const Stage& stage : all_stages()) {
    Recipe recipe;
    stage.apply(recipe);
    if (recipe.compile == compile && compile != Compile::off) return stage.id;
  }
  return "plain operations";
}

// "compile-max fell back to compile: the loss is 5, there 4". Reasons may begin with the name of a way.
std::string fall_back_text(Compile from, const std::string& to, const std::string& why) {
  std::string reason = first_line(why);
  for (const Compile way : {Compile::max, Compile::on})
    if (const std::string prefix = name_of(way) + ": "; reason.starts_with(prefix)) reason.erase(0, prefix.size());
  return name_of(from) + " fell back to " + to + ": " + reason;
}

std::shared_ptr<Gpt> model_on(at::Device device, const Recipe& recipe) {
  std::shared_ptr<Gpt> model = build_model(recipe);
  model->to(device);
  return model;
}

// One run: its model and everything that trains it. The functions below are in the order in which a run calls them.
class Training {
 public:
  Training(const TrainingJob& job, Prepared prepared, const DeviceReport& report, RunControl& control, const Emit& emit,
           const StepMakers& makers, StepTracer* tracer);

  Outcome run();

 private:
  std::unique_ptr<Step> choose_step();
  void load_state();
  bool connect();
  double prepare_step();
  void note_fall_back(const std::string& sentence);
  std::string recorded_recipe() const;
  void announce(double setup_ms);
  void log_choices();
  StepRecord train_step(std::int64_t step);
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
  const RunId run_;
  const Recipe recipe_;
  Recipe step_recipe_;     // the same, but for `compile` where the step that it asks for fails its check
  std::string fell_back_;  // then from which way to which, and why
  const TokenSource source_;
  const at::Device device_;
  const RunSettings settings_;
  DataParallel parallel_;  // before the model: the other processes load while this one builds it
  const c10::OptionalDeviceGuard own_gpu_;
  const std::shared_ptr<Gpt> model_;
  MicroBatches batches_;
  const StepMakers& makers_;
  std::unique_ptr<Step> step_;
  std::optional<Tokenizer> tokenizer_;  // for text samples
  CheckpointSaver saver_;
  StepTimer timer_;
  FiguresOnHost figures_;
  std::int64_t done_ = 0;        // the last step
  bool has_checkpoint_ = false;  // one was saved
  std::string save_error_;       // why the last one that failed could not be saved
  StepTracer* const tracer_;     // null: the steps are timed, not traced
};

Training::Training(const TrainingJob& job, Prepared prepared, const DeviceReport& report, RunControl& control,
                   const Emit& emit, const StepMakers& makers, StepTracer* tracer)
    : job_(job),
      report_(report),
      control_(control),
      emit_(emit),
      run_(job.run),
      recipe_(std::move(prepared.recipe)),
      step_recipe_(recipe_),
      source_(std::move(prepared.source)),
      device_(recipe_.device),
      settings_(recipe_),
      parallel_(recipe_, control),
      own_gpu_(parallel_.own_gpu()),
      model_(model_on(device_, recipe_)),
      batches_(recipe_, source_, parallel_, device_),
      makers_(makers),
      step_(choose_step()),
      saver_(job.run, job.checkpoints, recipe_),
      timer_(device_),
      figures_(device_),
      tracer_(tracer) {
  if (tracer_) tracer_->prepare(device_);
}

Outcome Training::run() {
  load_state();
  if (!connect()) return {RunStatus::stopped, "stopped before the first step"};
  announce(prepare_step());
  log_choices();

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
    saver_.finish(done_, *model_, step_->optimizer(),
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

std::unique_ptr<Step> Training::choose_step() {
  return make_step({step_recipe_, *model_, parallel_, batches_, device_},
                   report_.hardware(recipe_.device) + ", LibTorch " + report_.torch_version, makers_);
}

// Prepares the step; returns its setup time. Where it fails its check or can't be captured, the run begins anew with
// the next plainer way, and says so: a run is right on a machine that nobody has tried, if not fast.
double Training::prepare_step() {
  while (true) {
    std::string why;
    try {
      const double setup_ms = step_->prepare(done_);
      if (const std::string refused = step_->without_library(); !refused.empty())
        note_fall_back(fall_back_text(step_recipe_.compile, "LibTorch's products", refused));
      return setup_ms;
    } catch (const std::exception& error) {
      if (step_recipe_.compile == Compile::off || recipe_.nproc > 1 || !makers_.falls_back) throw;
      const auto* const torch = dynamic_cast<const c10::Error*>(&error);
      why = torch ? torch->what_without_backtrace() : error.what();
    }
    const Compile refused = step_recipe_.compile;
    step_recipe_.compile = refused == Compile::max ? Compile::on : Compile::off;
    note_fall_back(fall_back_text(refused, name_of(step_recipe_.compile), why));
    step_.reset();
    const at::NoGradGuard no_grad;
    const std::shared_ptr<Gpt> fresh = model_on(device_, recipe_);
    const auto first = named_parameters(*fresh);
    const auto parameters = named_parameters(*model_);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor parameter = parameters[i].second;
      parameter.copy_(first[i].second);
      parameter.mutable_grad().reset();
    }
    step_ = choose_step();
    load_state();
    step_->optimizer().set_steps(done_);
  }
}

void Training::note_fall_back(const std::string& sentence) {
  fell_back_ += (fell_back_.empty() ? "" : "; ") + sentence;
  emit_(ConsoleText{.run = run_, .at = unix_now(), .text = sentence + "\n"});
}

// Weights, and after a checkpoint moments and step too. A fresh model has its first weights already.
void Training::load_state() {
  if (recipe_.sample_every > 0) tokenizer_ = tokenizer_of(recipe_, source_);
  if (!job_.start_from.empty()) {
    done_ = restore_checkpoint(job_.start_from, recipe_, *model_, step_->optimizer());
  } else if (!recipe_.weights.empty()) {
    load_model(*model_, recipe_, WeightsFile(recipe_.weights));
  }
}

// Gives all processes rank 0's state; false if the run was stopped while waiting for them.
bool Training::connect() {
  const bool connected = parallel_.connect(tensors_of(named_parameters(*model_)),
                                           tensors_of(step_->optimizer().state()), done_, step_->gradients());
  step_->optimizer().set_steps(done_);
  return connected;
}

// The recipe as it was asked for, since a repeat or a resumed run asks for the same again, and how its steps are taken
// where that is another way.
std::string Training::recorded_recipe() const {
  std::string recipe = to_json(recipe_);
  if (fell_back_.empty()) return recipe;
  auto json = nlohmann::ordered_json::parse(recipe);
  json["fell_back"] = fell_back_;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
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
                   .attention = model_->attention_backend(step_recipe_),
                   .setup_ms = setup_ms,
                   .sync = timer_.sync(),
                   .recipe = recorded_recipe(),
                   .torch_version = report_.torch_version});
}

// What the step chose by timing, as the run's console output.
void Training::log_choices() {
  if (!parallel_.is_rank0()) return;
  std::string text;
  for (const std::string& choice : step_->choices()) text += choice + "\n";
  if (!text.empty()) emit_(ConsoleText{.run = run_, .at = unix_now(), .text = std::move(text)});
}

StepRecord Training::train_step(std::int64_t step) {
  StepRecord record{.run = run_, .step = step, .tokens = recipe_.tokens_per_step(), .lr = learning_rate(recipe_, step)};
  const auto mark = [this](double StepParts::*part) {
    timer_.mark(part);
    if (!tracer_) return;
    tracer_->end_part(part);
    if (step_->is_replayed()) tracer_->replay_begins();
  };
  const auto began = std::chrono::steady_clock::now();
  if (tracer_) {
    tracer_->begin_step(step, recipe_.grad_accum);
    step_->show_kernels(Step::Threads::all);
  }

  timer_.start();  // ----------------------------------------------------------------------------- dt begins
  const StepTensors result = step_->take(step, record.lr, mark);
  figures_.start(result);
  record.dt_ms = timer_.stop_ms();  // ------------------------------ dt ends; the device has finished the step
  if (tracer_) tracer_->end_step(step);

  record.parts = timer_.parts();
  if (const double waited_ms = parallel_.waited_ms(); !is_missing(waited_ms)) {
    record.parts.backward_ms -= waited_ms;
    record.parts.communication_ms = waited_ms;
  }
  record.loss = parallel_.mean(figures_.loss());
  record.grad_norm = result.norm.defined() ? figures_.norm() : step_->gradient_norm();
  emit_gap(record, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
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
  if (parallel_.is_rank0()) saver_.after_step(record.step, *model_, step_->optimizer());
  emit_checkpoints();
}

// The mean loss over batches of the validation split; `missing` if the run was stopped before the last one.
double Training::evaluate() {
  const at::NoGradGuard no_grad;
  const std::int64_t batches = std::min(recipe_.eval_batches, source_.validation_batches(recipe_.batch));
  double sum = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    if (parallel_.stop_requested()) return missing;
    sum += parallel_.mean(step_->loss_within_memory(batches_.validation(i)));
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
  if (step_->is_replayed() || !device_.is_cpu()) return;
  const int steps = static_cast<int>(std::min<std::int64_t>(most_watched_steps, recipe_.steps / 10));
  if (steps == 0) return;
  OperatorWatch watch;
  step_->show_kernels(Step::Threads::calling);
  for (int i = 0; i < steps; ++i) {
    watch.begin_step();
    step_->take(recipe_.steps + 1 + i, learning_rate(recipe_, recipe_.steps),
                [&](double StepParts::*part) { watch.end_part(part); });
  }
  emit_(StepProfile{.run = run_, .at = unix_now(), .steps = steps, .operators = watch.operators()});
} catch (const std::exception&) {
}

Outcome train_to_end(const TrainingJob& job, RunControl& control, const Emit& emit, const StepMakers& makers,
                     StepTracer* tracer) {
  const DeviceReport& report = device_report();
  Prepared prepared = prepare(job.recipe, job.start_from.empty() ? Start::fresh : Start::checkpoint);
  prepared.recipe = resolve(std::move(prepared.recipe), report);
  require_memory(prepared.recipe);
  reset_peak_memory(at::Device(prepared.recipe.device));
  return Training(job, std::move(prepared), report, control, emit, makers, tracer).run();
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

Outcome outcome_of(const TrainingJob& job, RunControl& control, const Emit& emit, const StepMakers& makers,
                   StepTracer* tracer = nullptr) {
  try {
    return train_to_end(job, control, emit, makers, tracer);
  } catch (const c10::Error& error) {
    return failure(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return {RunStatus::failed, "out of memory"};
  } catch (const std::exception& error) {
    return failure(error.what());
  }
}

}  // namespace

void train(const TrainingJob& job, RunControl& control, const Emit& emit, const StepMakers& makers) {
  Outcome outcome = outcome_of(job, control, emit, makers);
  emit(RunEnded{.run = job.run,
                .at = unix_now(),
                .status = outcome.status,
                .reason = std::move(outcome.reason),
                .peak_memory_bytes = outcome.peak_memory_bytes});
}

void trace_training(const StepTracing& asked, const std::function<bool()>& stop_requested, const StepMakers& makers) {
  RunControl control;
  const Emit stop_if_asked = [&](const RunEvent&) {
    if (stop_requested()) control.request_stop();
  };
  StepTracer tracer(asked.skipped, asked.steps, asked.file);
  const TrainingJob job{.recipe = recipe_to_trace(asked)};
  const Outcome outcome = outcome_of(job, control, stop_if_asked, makers, &tracer);
  if (!tracer.is_done()) throw std::runtime_error(outcome.reason);
}

}  // namespace stepladder
