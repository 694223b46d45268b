// Copies a run's tensors on the training thread and writes them on another; restores them on resume. Everything is read
// and checked before the first tensor is changed, so a failed restore leaves the model as it was.
#include "engine/trainer/checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/architecture.h"
#include "engine/files/files.h"
#include "engine/files/run_checkpoints.h"
#include "engine/trainer/weights.h"
#include "storage/errors.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr const char* generator_name = "random_generator.cpu";

// A copy of everything in a checkpoint, so that the run can continue.
struct Snapshot {
  CheckpointState state;
  Recipe recipe;
  NamedTensors weights;
  NamedTensors optimizer;
};

NamedTensors copied(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies.emplace_back(name, tensor.detach().to(at::kCPU, false, true));
  return copies;
}

// The configuration that Hugging Face's transformers needs besides the weights. Another architecture than GPT-2's gets
// no name of one.
std::string config_json(const Recipe& recipe) {
  constexpr int end_of_text = 50256;
  const nlohmann::ordered_json token = recipe.vocab > end_of_text ? nlohmann::ordered_json(end_of_text) : nullptr;
  nlohmann::ordered_json json = {{"architectures", {"GPT2LMHeadModel"}},
                                 {"model_type", "gpt2"},
                                 {"activation_function", "gelu_new"},
                                 {"layer_norm_epsilon", 1e-5},
                                 {"n_layer", recipe.layers},
                                 {"n_head", recipe.heads},
                                 {"n_embd", recipe.d_model},
                                 {"n_positions", recipe.seq},
                                 {"vocab_size", recipe.vocab},
                                 {"tie_word_embeddings", recipe.tied_head},
                                 {"bos_token_id", token},
                                 {"eos_token_id", token},
                                 {"attn_pdrop", 0.0},
                                 {"embd_pdrop", 0.0},
                                 {"resid_pdrop", 0.0}};
  if (!architecture_of(recipe).is_gpt2()) {
    json["architectures"] = nullptr;
    json["model_type"] = nullptr;
    json["activation_function"] = architecture_of(recipe).gelu == Gelu::exact ? "gelu" : "gelu_new";
  }
  return json.dump(2) + "\n";
}

void write_text(const fs::path& path, const std::string& text) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

CheckpointSaved write_checkpoint(RunId run, const CheckpointPlace& place, const Snapshot& snapshot) {
  CheckpointSaved saved{.run = run, .step = snapshot.state.step};
  const auto write = [&](const fs::path& folder) {
    write_model(folder / checkpoint_weights, snapshot.weights, snapshot.recipe);
    write_tensors(folder / checkpoint_optimizer, snapshot.optimizer);
    write_text(folder / checkpoint_config, config_json(snapshot.recipe));
    write_text(folder / checkpoint_state, to_json(snapshot.state));
  };
  try {
    const fs::path folder = save_checkpoint(place.owner, saved.step, snapshot.recipe.keep, write, place.store_steps);
    saved.folder = folder.string();
    saved.bytes = bytes_in(folder);
  } catch (const std::exception& error) {
    saved.error = error_text(error);
  }
  saved.at = unix_now();
  return saved;
}

}  // namespace

std::int64_t restore_checkpoint(const fs::path& folder, const Recipe& recipe, Gpt& model, AdamW& optimizer) {
  verify_checkpoint(folder);
  const CheckpointState state = read_checkpoint_state(folder);
  const WeightsFile weights(folder / checkpoint_weights);
  const WeightsFile moments(folder / checkpoint_optimizer);
  const at::Tensor generator = at::detail::getDefaultCPUGenerator().get_state();
  const at::Tensor saved_generator = read_tensor(moments, generator_name, generator);
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // all are read before one is changed
  for (auto& [name, tensor] : optimizer.state()) copies.emplace_back(tensor, read_tensor(moments, name, tensor));
  load_model(model, recipe, weights);
  for (auto& [place, values] : copies) place.narrow(0, 0, values.size(0)).copy_(values);
  optimizer.set_steps(state.optimizer_steps);
  at::Generator random = at::detail::getDefaultCPUGenerator();  // a handle to the shared state
  random.set_state(saved_generator);
  return state.step;
}

CheckpointSaver::CheckpointSaver(RunId run, CheckpointPlace place, const Recipe& recipe)
    : run_(run), place_(std::move(place)), recipe_(recipe) {}

CheckpointSaver::~CheckpointSaver() = default;  // std::async's future waits

void CheckpointSaver::after_step(std::int64_t step, const Gpt& model, const AdamW& optimizer) {
  due_ = due_ || (recipe_.save_every > 0 && step % recipe_.save_every == 0);
  if (due_ && !writing_.valid()) start(step, model, optimizer);
}

void CheckpointSaver::finish(std::int64_t step, const Gpt& model, const AdamW& optimizer, AtStop at_stop) {
  wait();
  const bool is_wanted = recipe_.save_every > 0 || at_stop == AtStop::checkpoint;
  if (!is_wanted || step == saved_step_) return;
  start(step, model, optimizer);
  wait();
}

std::vector<CheckpointSaved> CheckpointSaver::results() {
  if (writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) wait();
  return std::exchange(written_, {});
}

void CheckpointSaver::wait() {
  if (writing_.valid()) written_.push_back(writing_.get());
}

void CheckpointSaver::start(std::int64_t step, const Gpt& model, const AdamW& optimizer) {
  due_ = false;
  saved_step_ = step;
  Snapshot snapshot{.state = {.step = step,
                              .optimizer_steps = optimizer.steps(),
                              .recipe = to_json(recipe_),
                              .uid = place_.owner.uid},
                    .recipe = recipe_,
                    .weights = copied(named_parameters(model)),
                    .optimizer = copied(optimizer.state())};
  snapshot.optimizer.emplace_back(generator_name, at::detail::getDefaultCPUGenerator().get_state());
  writing_ = std::async(std::launch::async, [run = run_, place = place_, snapshot = std::move(snapshot)] {
    return write_checkpoint(run, place, snapshot);
  });
}

}  // namespace stepladder
