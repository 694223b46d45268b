// The list of a recipe's values, from which the command line makes its options and Launch its fields. A new value of
// the recipe needs one row here; its name is the one in `describe`.
#include "app/launch/recipe_fields.h"

#include <utility>

#include "engine/rungs.h"

namespace stepladder {
namespace {

using enum FieldGroup;

constexpr RecipeField all_fields[] = {
    {"steps", everyday, "Steps", "Optimiser updates (default 100)"},
    {"batch", everyday, "Batch (B)", "Sequences per micro-batch (B)"},
    {"seq", everyday, "Sequence (T)", "Tokens per sequence (T)"},
    {"lr", everyday, "Learning rate", "Peak learning rate"},
    {"seed", everyday, "Seed", "Random seed of weights and batches"},
    {"eval_every", everyday, "Validate every", "Validation interval in steps (0 disables)"},
    {"device", everyday, "Device", "auto, cpu, cuda or mps", "auto,cpu,cuda,mps"},
    {"layers", model, "Layers", "Transformer blocks"},
    {"heads", model, "Heads", "Attention heads per block"},
    {"d_model", model, "Width", "Width of the residual stream"},
    {"vocab", model, "Vocabulary", "Vocabulary size (GPT-2: 50257; nano: as the data needs)"},
    {"init", model, "Initial weights", "Initial weights: pytorch or gpt2 (as published)", "pytorch,gpt2"},
    {"tied_head", model, "Tied head", "Share the head's weights with the token embedding", "off,on"},
    {"weights", model, "Weights file",
     "Start from a weights file instead: safetensors (Hugging Face's GPT-2) or llm.c's .bin"},
    {"grad_accum", optimiser, "Accumulation", "Micro-batches per step"},
    {"clip", optimiser, "Clip", "Maximum gradient norm (0 disables)"},
    {"schedule", optimiser, "Schedule", "constant, or cosine (decays to a tenth)", "constant,cosine"},
    {"lr_warmup", optimiser, "LR warm-up", "Learning rate warm-up in steps"},
    {"beta1", optimiser, "Beta 1", "AdamW's first decay rate"},
    {"beta2", optimiser, "Beta 2", "AdamW's second decay rate"},
    {"eps", optimiser, "Epsilon", "AdamW's epsilon"},
    {"weight_decay", optimiser, "Weight decay", "AdamW's decoupled weight decay"},
    {"decay", optimiser, "Decayed tensors", "Parameters that decay: everything or matrices", "everything,matrices"},
    {"overfit", optimiser, "Overfit", "Train on one batch only: its loss must approach zero", "off,on"},
    {"eval_batches", validation, "Batches", "Batches per validation"},
    {"sample_every", validation, "Sample every", "Text sample interval in steps (0 disables)"},
    {"sample_tokens", validation, "Sample tokens", "Tokens per text sample"},
    {"sample_prompt", validation, "Prompt", "Prompt for text samples"},
    {"tokenizer", validation, "Tokenizer file", "tokenizer.json or merges.txt, to read text as GPT-2 tokens"},
    {"save_every", checkpoints, "Save every", "Checkpoint interval in steps (0 disables)"},
    {"keep", checkpoints, "Keep", "Newest checkpoints to keep (0: all)"},
    {"warmup", execution, "Timing warm-up", "Warm-up steps to exclude from timings (default: detected)"},
    {"threads", execution, "Threads", "CPU threads (default 0: one per core)"},
    {"nproc", execution, "Processes", "Processes that split each batch (and the threads)"},
    {"without_kernel", execution, "Without kernel",
     "Leave a kernel out of compile-max: products, add-norm, attention, gelu, softmax or adamw (several: gelu+adamw)"},
    {"attention", stages, "Attention", "How attention is computed", "explicit,scaled-dot-product"},
    {"matmul", stages, "Matmul precision", "Precision of float32 matrix products", "fp32,tf32,bf16"},
    {"autocast", stages, "Autocast", "Precision of autocast", "off,bf16"},
    {"optimizer", stages, "Optimiser", "AdamW tensor by tensor, or fused", "adamw,fused-adamw"},
    {"compile", stages, "Compile", "Fused kernels, or a captured step", "off,on"},
    {"vocab_multiple", stages, "Padding", "Rows of the embedding and the head are a multiple of it"},
};

// What else errors name.
constexpr std::pair<const char*, const char*> other_labels[] = {
    {"model", "Model"},       {"data", "Data"},     {"repeats", "Repeats"}, {"over", "Lists"},
    {"stages", "Rungs"},      {"stage", "Stage"},   {"plan", "Preset"},     {"fork", "Fork"},
    {"continue", "Continue"}, {"resume", "Resume"}, {"adopt", "Adopt"},     {"format", "Format"},
};

}  // namespace

const char* title_of(FieldGroup group) {
  return by_enum<FieldGroup>("Recipe", "Shape and weights", "Optimiser", "Validation and samples", "Checkpoints",
                             "Timing and processes", "What stages set")[group];
}

bool RecipeField::has_option() const {
  return group != FieldGroup::stages && std::string_view(choices) != "off,on";
}

bool RecipeField::is_path() const {
  return std::string_view(name) == "weights" || std::string_view(name) == "tokenizer";
}

bool RecipeField::takes_list() const {
  return !is_path() && std::string_view(name) != "sample_prompt";
}

std::span<const RecipeField> recipe_fields() {
  return all_fields;
}

std::vector<std::string> choices_of(const RecipeField& field) {
  std::vector<std::string> choices;
  if (*field.choices == 0) return choices;
  for (const std::string_view choice : split_list(field.choices)) choices.emplace_back(choice);
  return choices;
}

std::string label_of(std::string_view field) {
  for (const RecipeField& each : all_fields)
    if (field == each.name) return each.label;
  for (const auto& [name, label] : other_labels)
    if (field == name) return label;
  return std::string(field);
}

}  // namespace stepladder
