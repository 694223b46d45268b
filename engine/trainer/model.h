// GPT-2 (Radford et al. 2019) with the parameter names of the published checkpoints.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/architecture.h"
#include "engine/recipe.h"

namespace stepladder {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// y = x W^T + b. `onto_residual` marks the layers whose output is added to the residual stream (Init::gpt2 scales
// them).
struct Linear : torch::nn::Module {
  Linear(const Recipe& recipe, int in, int out, bool onto_residual = false);
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  at::Tensor weight;  // (out, in); published checkpoints hold its transpose
  at::Tensor bias;    // (out); undefined in an architecture without biases
};

// LayerNorm, or RMSNorm (Zhang and Sennrich 2019) in an architecture that has it.
struct LayerNorm : torch::nn::Module {
  explicit LayerNorm(const Recipe& recipe);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight;  // (C)
  at::Tensor bias;    // (C); undefined for RMSNorm
};

struct Embedding : torch::nn::Module {
  Embedding(const Recipe& recipe, int rows, int padded_rows);
  at::Tensor weight;  // (padded_rows, C), zero from `rows` on
};

// The layer that gives each token of the vocabulary its logit: the token embedding itself if the head is tied.
struct Head : torch::nn::Module {
  Head(const Recipe& recipe, const at::Tensor& token_embedding);
  at::Tensor weight;  // (V', C), V' the padded vocabulary
};

struct SelfAttention : torch::nn::Module {
  explicit SelfAttention(const Recipe& recipe);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& future) const;
  at::Tensor mix(const at::Tensor& x, const at::Tensor& future) const;  // c_proj's input, (B, T, C)
  Attention way;
  int heads;
  std::shared_ptr<Linear> c_attn;  // (C) -> (3 C): queries, keys, values
  std::shared_ptr<Linear> c_proj;  // (C) -> (C)
};

struct Mlp : torch::nn::Module {
  explicit Mlp(const Recipe& recipe);
  at::Tensor forward(const at::Tensor& x) const;
  std::shared_ptr<Linear> c_fc;    // (C) -> (4 C)
  std::shared_ptr<Linear> c_proj;  // (4 C) -> (C)
  Gelu gelu;
};

struct Block : torch::nn::Module {
  explicit Block(const Recipe& recipe);
  // `layer` is its number, for profiles.
  at::Tensor forward(at::Tensor x, const at::Tensor& future, int layer) const;
  std::shared_ptr<LayerNorm> ln_1;
  std::shared_ptr<SelfAttention> attn;
  std::shared_ptr<LayerNorm> ln_2;
  std::shared_ptr<Mlp> mlp;
};

struct Gpt : torch::nn::Module {
  // Draws the weights from LibTorch's generator, on the CPU, so that they are the same on every device. The recipe's
  // vocabulary must be known.
  explicit Gpt(const Recipe& recipe);

  at::Tensor forward(const at::Tensor& tokens) const;  // (B, T) -> logits (B, T, V'), those of the padding -infinity
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets) const;  // (B, T) twice -> (), nats per token

  // The kernel that computes the attention of (B, T, C) under the current autocast in steps as this recipe takes them:
  // "explicit", or the kernel that LibTorch picks: "flash", "efficient", "cudnn", "math".
  std::string attention_backend(const Recipe& recipe) const;

  std::shared_ptr<Embedding> wte;  // tokens
  std::shared_ptr<Embedding> wpe;  // positions
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<LayerNorm> ln_f;
  std::shared_ptr<Head> lm_head;
  at::Tensor future;   // (T, T), true above the diagonal; undefined if attention doesn't need it
  at::Tensor padding;  // (V'), 0 for a token, -infinity beyond; undefined without padding

 private:
  at::Tensor hidden(const at::Tensor& tokens) const;  // (B, T) -> (B, T, C), the head's input

  int vocab_;
  bool fused_on_cpu_;  // blocks and classifier by fused kernels: the `compile` stage on a CPU
};

// The model's parameters by their GPT-2 names ("h.0.attn.c_attn.weight"); a tied head isn't among them. The tensors
// are the model's own.
NamedTensors named_parameters(const Gpt& model);

std::vector<at::Tensor> tensors_of(const NamedTensors& named);

// The model of a run: the same recipe and seed give the same weights.
std::shared_ptr<Gpt> build_model(const Recipe& recipe);

}  // namespace stepladder
