// The recipe's options on the command line: a preset first, then every value that was given by hand.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "engine/recipe.h"

namespace stepladder {

class RecipeOptions {
 public:
  void add_to(CLI::App& command);
  Recipe recipe() const;  // throws RecipeError

 private:
  std::string model_ = "nano";
  std::string data_;
  std::string device_ = "auto";
  std::optional<int> layers_, heads_, d_model_, vocab_, batch_, seq_, grad_accum_, threads_;
  std::optional<std::int64_t> steps_, warmup_, eval_every_, eval_batches_;
  std::optional<std::uint64_t> seed_;
  std::optional<double> lr_, beta1_, beta2_, eps_, weight_decay_;
  std::optional<std::string> init_;
  bool tied_head_ = false;
  bool untied_head_ = false;
  bool overfit_ = false;
};

}  // namespace stepladder
