#include "app/cli/recipe_options.h"

#include <algorithm>

namespace stepladder {
namespace {

struct Option {
  const char* name;  // of the recipe's member
  const char* help;
};

constexpr Option value_options[] = {
    {"layers", "Transformer blocks"},
    {"heads", "Attention heads per block"},
    {"d_model", "Width of the residual stream"},
    {"vocab", "Vocabulary size (GPT-2: 50257; nano: as the data needs)"},
    {"init", "Initial weights: pytorch or gpt2 (as published)"},
    {"weights", "Start from a weights file instead: safetensors (Hugging Face's GPT-2) or llm.c's .bin"},
    {"batch", "Sequences per micro-batch (B)"},
    {"seq", "Tokens per sequence (T)"},
    {"grad_accum", "Micro-batches per step"},
    {"steps", "Optimiser updates (default 100)"},
    {"warmup", "Warm-up steps to exclude from timings (default: detected)"},
    {"data", "Text file (bytes), nanoGPT .bin or llm.c .bin (default: synthetic tokens)"},
    {"device", "auto, cpu, cuda or mps"},
    {"threads", "CPU threads (default: one per core)"},
    {"nproc", "Processes that split each batch (and the threads)"},
    {"seed", "Random seed of weights and batches"},
    {"lr", "Peak learning rate"},
    {"schedule", "constant, or cosine (decays to a tenth)"},
    {"lr_warmup", "Learning rate warm-up in steps"},
    {"beta1", "AdamW's first decay rate"},
    {"beta2", "AdamW's second decay rate"},
    {"eps", "AdamW's epsilon"},
    {"weight_decay", "AdamW's decoupled weight decay"},
    {"decay", "Parameters that decay: everything or matrices"},
    {"clip", "Maximum gradient norm (0 disables)"},
    {"eval_every", "Validation interval in steps (0 disables)"},
    {"eval_batches", "Batches per validation"},
    {"sample_every", "Text sample interval in steps (0 disables)"},
    {"sample_tokens", "Tokens per text sample"},
    {"sample_prompt", "Prompt for text samples"},
    {"tokenizer", "tokenizer.json or merges.txt, to read text as GPT-2 tokens"},
    {"save_every", "Checkpoint interval in steps (0 disables)"},
    {"keep", "Newest checkpoints to keep (0: all)"},
};

}  // namespace

void RecipeOptions::add_to(CLI::App& command) {
  std::string models;
  for (const ModelPreset& preset : model_presets()) models += (models.empty() ? "" : ", ") + std::string(preset.name);
  command.add_option("--model", model_, "Shape of the model: " + models + " (default nano)")
      ->group("Recipe")
      ->take_last();
  for (const auto& [name, help] : value_options) {
    std::string option = "--" + std::string(name);
    std::replace(option.begin(), option.end(), '_', '-');
    const auto keep = [this, member = name](const std::string& value) { given_.emplace_back(member, value); };
    command.add_option_function<std::string>(option, keep, help)->group("Recipe")->take_last();
  }
  const auto flag = [&](const char* option, const char* member, const char* value, const char* help) {
    const auto keep = [this, member, value](std::int64_t) { given_.emplace_back(member, value); };
    return command.add_flag_function(option, keep, help)->group("Recipe");
  };
  CLI::Option* tied = flag("--tied-head", "tied_head", "on", "Share the head's weights with the token embedding");
  flag("--untied-head", "tied_head", "off", "Give the head its own weights")->excludes(tied);
  flag("--overfit", "overfit", "on", "Train on one batch only: its loss must approach zero");
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
