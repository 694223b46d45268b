#include "app/recipe_options.h"

namespace stepladder {

void RecipeOptions::add_to(CLI::App& command) {
  std::string models;
  for (const ModelPreset& preset : model_presets()) models += (models.empty() ? "" : ", ") + std::string(preset.name);
  const auto add = [&command](const char* name, auto& value, const std::string& help) {
    command.add_option(name, value, help)->group("Recipe");
  };
  add("--model", model_, "Shape of the model: " + models + " (nano unless given)");
  add("--layers", layers_, "Transformer blocks");
  add("--heads", heads_, "Attention heads per block");
  add("--d-model", d_model_, "Width of the residual stream");
  add("--vocab", vocab_, "Vocabulary size (GPT-2: 50257; nano: what the data needs)");
  CLI::Option* tied = command.add_flag("--tied-head", tied_head_, "The head is the token embedding itself");
  CLI::Option* untied = command.add_flag("--untied-head", untied_head_, "The head has weights of its own");
  tied->group("Recipe");
  untied->group("Recipe")->excludes(tied);
  add("--init", init_, "First weights: pytorch or gpt2 (as published)");
  add("--batch", batch_, "Sequences per micro-batch (B)");
  add("--seq", seq_, "Tokens per sequence (T)");
  add("--grad-accum", grad_accum_, "Micro-batches per step");
  add("--steps", steps_, "Optimiser updates (100 unless given)");
  add("--warmup", warmup_, "Steps left out of the time figures (by rule unless given)");
  add("--data", data_, "A text file (bytes), nanoGPT .bin or llm.c .bin; synthetic tokens unless given");
  add("--device", device_, "auto, cpu, cuda or mps");
  add("--threads", threads_, "CPU threads (one per core unless given)");
  add("--seed", seed_, "Seed of weights and batches");
  add("--lr", lr_, "Learning rate, constant");
  add("--beta1", beta1_, "AdamW's first decay rate");
  add("--beta2", beta2_, "AdamW's second decay rate");
  add("--eps", eps_, "AdamW's epsilon");
  add("--weight-decay", weight_decay_, "AdamW's decoupled weight decay");
  add("--eval-every", eval_every_, "Steps between validations (0: never)");
  add("--eval-batches", eval_batches_, "Batches per validation");
  command.add_flag("--overfit", overfit_, "Train on one batch again and again: its loss must go to zero")
      ->group("Recipe");
}

Recipe RecipeOptions::recipe() const {
  Recipe recipe;
  apply_preset(recipe, model_);
  recipe.data = data_;
  recipe.device = device_;
  recipe.overfit = overfit_;
  const auto set = [](auto& value, const auto& given) {
    if (given) value = *given;
  };
  set(recipe.layers, layers_);
  set(recipe.heads, heads_);
  set(recipe.d_model, d_model_);
  set(recipe.vocab, vocab_);
  if (tied_head_ || untied_head_) recipe.tied_head = tied_head_;
  if (init_) recipe.init = init_named(*init_);
  set(recipe.batch, batch_);
  set(recipe.seq, seq_);
  set(recipe.grad_accum, grad_accum_);
  set(recipe.steps, steps_);
  set(recipe.warmup, warmup_);
  set(recipe.threads, threads_);
  set(recipe.seed, seed_);
  set(recipe.lr, lr_);
  set(recipe.beta1, beta1_);
  set(recipe.beta2, beta2_);
  set(recipe.eps, eps_);
  set(recipe.weight_decay, weight_decay_);
  set(recipe.eval_every, eval_every_);
  set(recipe.eval_batches, eval_batches_);
  validate(recipe);
  return recipe;
}

}  // namespace stepladder
