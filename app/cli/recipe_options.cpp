#include "app/cli/recipe_options.h"

#include <algorithm>

namespace stepladder {
namespace {

struct Option {
  const char* name;  // of the recipe's member
  const char* help;
};

constexpr Option options[] = {
    {"layers", "Transformer blocks"},
    {"heads", "Attention heads per block"},
    {"d_model", "Width of the residual stream"},
    {"vocab", "Vocabulary size (GPT-2: 50257; nano: what the data needs)"},
    {"init", "First weights: pytorch or gpt2 (as published)"},
    {"weights", "Start from this file instead: safetensors (Hugging Face's GPT-2) or llm.c's .bin"},
    {"batch", "Sequences per micro-batch (B)"},
    {"seq", "Tokens per sequence (T)"},
    {"grad_accum", "Micro-batches per step"},
    {"steps", "Optimiser updates (100 unless given)"},
    {"warmup", "Steps left out of the time figures (by rule unless given)"},
    {"data", "A text file (bytes), nanoGPT .bin or llm.c .bin; synthetic tokens unless given"},
    {"device", "auto, cpu, cuda or mps"},
    {"threads", "CPU threads (one per core unless given)"},
    {"nproc", "Processes that share the rows of each batch (threads are divided among them)"},
    {"seed", "Seed of weights and batches"},
    {"lr", "Learning rate, the highest of the run"},
    {"schedule", "constant, or cosine: down to a tenth"},
    {"lr_warmup", "Steps in which the learning rate climbs"},
    {"beta1", "AdamW's first decay rate"},
    {"beta2", "AdamW's second decay rate"},
    {"eps", "AdamW's epsilon"},
    {"weight_decay", "AdamW's decoupled weight decay"},
    {"decay", "What decays: everything, or matrices only"},
    {"clip", "Gradients are scaled down to this L2 norm (0: never)"},
    {"eval_every", "Steps between validations (0: never)"},
    {"eval_batches", "Batches per validation"},
    {"sample_every", "Steps between text samples (0: never)"},
    {"sample_tokens", "Tokens of a text sample"},
    {"sample_prompt", "What a text sample goes on from"},
    {"tokenizer", "tokenizer.json or merges.txt, for text in GPT-2's tokens"},
    {"save_every", "Steps between checkpoints (0: none)"},
    {"keep", "Checkpoints that stay, the newest (0: all)"},
};

}  // namespace

void RecipeOptions::add_to(CLI::App& command) {
  std::string models;
  for (const ModelPreset& preset : model_presets()) models += (models.empty() ? "" : ", ") + std::string(preset.name);
  command.add_option("--model", model_, "Shape of the model: " + models + " (nano unless given)")
      ->group("Recipe")
      ->take_last();
  for (const auto& [name, help] : options) {
    std::string option = "--" + std::string(name);
    std::replace(option.begin(), option.end(), '_', '-');
    const auto keep = [this, member = name](const std::string& value) { given_.emplace_back(member, value); };
    command.add_option_function<std::string>(option, keep, help)->group("Recipe")->take_last();
  }
  const auto flag = [&](const char* option, const char* member, const char* value, const char* help) {
    const auto keep = [this, member, value](std::int64_t) { given_.emplace_back(member, value); };
    return command.add_flag_function(option, keep, help)->group("Recipe");
  };
  CLI::Option* tied = flag("--tied-head", "tied_head", "on", "The head is the token embedding itself");
  flag("--untied-head", "tied_head", "off", "The head has weights of its own")->excludes(tied);
  flag("--overfit", "overfit", "on", "Train on one batch again and again: its loss must go to zero");
}

Recipe RecipeOptions::recipe() const {
  Recipe recipe;
  apply_preset(recipe, "nano");
  return over(std::move(recipe));
}

Recipe RecipeOptions::over(Recipe recipe) const {
  if (!model_.empty()) apply_preset(recipe, model_);
  for (const auto& [name, value] : given_) set_value(recipe, name, value);
  validate(recipe);
  return recipe;
}

}  // namespace stepladder
