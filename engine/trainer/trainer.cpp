#include "engine/trainer/trainer.h"

#include <ATen/Version.h>
#include <torch/mps.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/stage.h"
#include "engine/tokens.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/model.h"
#include "engine/trainer/optimizer.h"
#include "engine/trainer/settings.h"
#include "engine/trainer/step_timer.h"

namespace stepladder {
namespace {

using Emit = std::function<void(const RunEvent&)>;

struct Outcome {
  RunStatus status = RunStatus::finished;
  std::string reason;
};

void require_device(const Recipe& recipe, const DeviceReport& report) {
  if (recipe.device == "cuda" && report.gpus.empty()) {
    throw RecipeError("--device", "cuda cannot be used: " + report.cuda_note);
  }
  if (recipe.device == "mps" && !report.mps) throw RecipeError("--device", "mps cannot be used: there is no Apple GPU");
  // What a run's precision says must be what its products ran in.
  const auto require_stage = [&](bool asked, const char* id) {
    if (!asked) return;
    const std::string reason = stage_by_id(id).unavailable(report, recipe.device);
    if (!reason.empty()) throw RecipeError("--stage", std::string(id) + " cannot be used: " + reason);
  };
  require_stage(recipe.matmul == MatmulPrecision::tf32, "tf32");
  require_stage(recipe.autocast == Autocast::bf16, "bf16");
}

// The recipe with every "auto" replaced by what it becomes here.
Recipe resolve(Recipe recipe, const TokenSource& source, const DeviceReport& report) {
  recipe.device = report.resolve(recipe.device);
  require_device(recipe, report);
  if (recipe.threads == 0) recipe.threads = std::min(default_threads(), report.cpu_cores);
  if (recipe.vocab == 0) recipe.vocab = source.vocab_needed();
  if (recipe.vocab < source.vocab_needed()) {
    throw RecipeError("--vocab", std::to_string(recipe.vocab) + " is too small: " + source.description() + " needs " +
                                     std::to_string(source.vocab_needed()));
  }
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

// (B, T) inputs and targets on the run's device.
std::pair<at::Tensor, at::Tensor> to_device(Batch batch, const Recipe& recipe, at::Device device) {
  const auto tensor = [&](std::vector<std::int64_t>& values) {
    return at::from_blob(values.data(), {recipe.batch, recipe.seq}, at::kLong).to(device, false, /*copy=*/true);
  };
  return {tensor(batch.inputs), tensor(batch.targets)};
}

at::Tensor forward_loss(const Gpt& model, const Batch& batch, const Recipe& recipe, at::Device device) {
  const auto [inputs, targets] = to_device(batch, recipe, device);
  const AutocastScope autocast(recipe.autocast, device.type());
  return model.loss(inputs, targets);
}

// Mean loss over batches of the validation split; `missing` where it was stopped before the last one.
double evaluate(const Gpt& model, const TokenSource& source, const Recipe& recipe, at::Device device,
                const std::stop_token& stop) {
  const at::NoGradGuard no_grad;
  const std::int64_t batches = std::min(recipe.eval_batches, source.validation_batches(recipe.batch));
  double sum = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    if (stop.stop_requested()) return missing;
    const Batch batch = source.batch(Split::validation, i, recipe.batch);
    sum += forward_loss(model, batch, recipe, device).item<double>();
  }
  return sum / static_cast<double>(batches);
}

Outcome train_to_end(RunId run, const Recipe& asked, const std::stop_token& stop, const Emit& emit) {
  validate(asked);
  const DeviceReport& report = device_report();
  const TokenSource source = TokenSource::open(asked.data, asked.seq, asked.seed);
  const Recipe recipe = resolve(asked, source, report);
  require_memory(recipe, report);

  const at::Device device(recipe.device);
  const RunSettings settings(recipe);
  const std::shared_ptr<Gpt> model = build_model(recipe);
  model->to(device);
  const std::unique_ptr<AdamW> optimizer = make_optimizer(recipe, model->parameters());
  StepTimer timer(device);
  emit(RunStarted{.run = run,
                  .at = unix_now(),
                  .tokens_per_step = recipe.tokens_per_step(),
                  .params = parameter_count(recipe),
                  .loss_floor = source.entropy(),
                  .device = recipe.device,
                  .hardware = report.hardware(recipe.device),
                  .precision = precision_name(recipe),
                  .sync = timer.sync(),
                  .recipe = to_json(recipe),
                  .torch_version = report.torch_version});

  for (std::int64_t step = 1; step <= recipe.steps; ++step) {
    if (stop.stop_requested()) return {RunStatus::stopped, "stopped after step " + std::to_string(step - 1)};
    at::Tensor step_loss;  // (), mean over the micro-batches

    timer.start();  // ------------------------------------------------------------------ what a step's dt is made of
    optimizer->clear_gradients();
    for (int micro = 0; micro < recipe.grad_accum; ++micro) {
      const std::int64_t index = recipe.overfit ? 0 : (step - 1) * recipe.grad_accum + micro;
      at::Tensor loss = forward_loss(*model, source.batch(Split::train, index, recipe.batch), recipe, device);
      if (recipe.grad_accum > 1) loss = loss / recipe.grad_accum;
      loss.backward();
      step_loss = micro == 0 ? loss.detach() : step_loss + loss.detach();
    }
    optimizer->step();
    const double dt_ms = timer.stop_ms();  // ------------------------------------------- from here on: record keeping

    StepRecord record{.run = run, .step = step, .dt_ms = dt_ms, .tokens = recipe.tokens_per_step(), .lr = recipe.lr};
    record.loss = step_loss.item<double>();
    record.grad_norm = optimizer->gradient_norm();
    const bool finite = std::isfinite(record.loss);
    const bool due = recipe.eval_every > 0 && (step % recipe.eval_every == 0 || step == recipe.steps);
    if (finite && due) record.val_loss = evaluate(*model, source, recipe, device, stop);
    record.at = unix_now();
    emit(record);
    if (!finite) {
      const char* what = std::isnan(record.loss) ? "NaN" : "infinite";
      return {RunStatus::failed, std::string("the loss is ") + what + " at step " + std::to_string(step)};
    }
  }
  return {};
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
    return all;
  }();
  return report;
}

void train(RunId run, const Recipe& recipe, std::stop_token stop, const Emit& emit) {
  Outcome outcome;
  try {
    outcome = train_to_end(run, recipe, stop, emit);
  } catch (const c10::Error& error) {
    outcome = failure(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    outcome = {RunStatus::failed, "out of memory"};
  } catch (const std::exception& error) {
    outcome = failure(error.what());
  }
  emit(RunEnded{.run = run, .at = unix_now(), .status = outcome.status, .reason = std::move(outcome.reason)});
}

}  // namespace stepladder
