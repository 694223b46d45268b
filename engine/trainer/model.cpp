// GPT-2 in plain LibTorch operations, the reference that the fused, planned and device steps are compared with. The
// order in which weights are drawn is fixed: an extra random number changes every run's first loss.
#include "engine/trainer/model.h"

#include <ATen/SDPBackend.h>

#include <cmath>
#include <limits>

#include "engine/trainer/attention.h"
#include "engine/trainer/kernels/classifier.h"
#include "engine/trainer/kernels/fused_blocks.h"
#include "engine/trainer/profile/model_range.h"

namespace stepladder {
namespace {

constexpr double weight_std = 0.02;

// Each block adds to the residual stream twice; without this its variance would grow with depth (Radford et al. 2019,
// section 2.3).
double residual_std(const Recipe& recipe) {
  return weight_std / std::sqrt(2.0 * recipe.layers);
}

// The first weights of a linear layer, (out, in), and its biases, (out). PyTorch's own are drawn evenly within
// 1/sqrt(in).
at::Tensor uniform(at::IntArrayRef shape, int in) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  return at::empty(shape).uniform_(-bound, bound);
}

at::Tensor first_weights(const Recipe& recipe, int out, int in, double std) {
  return recipe.init == Init::gpt2 ? at::empty({out, in}).normal_(0.0, std) : uniform({out, in}, in);
}

// Pads a table without drawing random numbers, so that the rest of the model gets the same ones with and without
// padding.
at::Tensor with_zero_rows(const at::Tensor& table, int rows) {
  return at::constant_pad_nd(table, {0, 0, 0, rows - table.size(0)});
}

at::Tensor first_biases(const Recipe& recipe, int out, int in) {
  return recipe.init == Init::gpt2 ? at::zeros({out}) : uniform({out}, in);
}

}  // namespace

Linear::Linear(const Recipe& recipe, int in, int out, bool onto_residual)
    : weight(register_parameter("weight",
                                first_weights(recipe, out, in, onto_residual ? residual_std(recipe) : weight_std))),
      bias(architecture_of(recipe).biases ? register_parameter("bias", first_biases(recipe, out, in)) : at::Tensor()) {}

LayerNorm::LayerNorm(const Recipe& recipe)
    : weight(register_parameter("weight", at::ones({recipe.d_model}))),
      bias(architecture_of(recipe).norm == Norm::layer_norm ? register_parameter("bias", at::zeros({recipe.d_model}))
                                                            : at::Tensor()) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  constexpr double eps = 1e-5;
  return bias.defined() ? at::layer_norm(x, weight.sizes(), weight, bias, eps)
                        : at::rms_norm(x, weight.sizes(), weight, eps);
}

Embedding::Embedding(const Recipe& recipe, int rows, int padded_rows)
    : weight(register_parameter(
          "weight",
          with_zero_rows(at::empty({rows, recipe.d_model}).normal_(0.0, recipe.init == Init::gpt2 ? weight_std : 1.0),
                         padded_rows))) {}

Head::Head(const Recipe& recipe, const at::Tensor& token_embedding)
    : weight(recipe.tied_head ? token_embedding
                              : register_parameter("weight", with_zero_rows(first_weights(recipe, recipe.vocab,
                                                                                          recipe.d_model, weight_std),
                                                                            recipe.padded_vocab()))) {}

SelfAttention::SelfAttention(const Recipe& recipe)
    : way(recipe.attention),
      heads(recipe.heads),
      c_attn(register_module("c_attn", std::make_shared<Linear>(recipe, recipe.d_model, 3 * recipe.d_model))),
      c_proj(register_module("c_proj", std::make_shared<Linear>(recipe, recipe.d_model, recipe.d_model, true))) {}

at::Tensor SelfAttention::forward(const at::Tensor& x, const at::Tensor& future) const {
  return c_proj->forward(mix(x, future));
}

at::Tensor SelfAttention::mix(const at::Tensor& x, const at::Tensor& future) const {
  const auto B = x.size(0), T = x.size(1), C = x.size(2);
  const auto qkv = c_attn->forward(x).split(C, 2);  // three of (B, T, C)
  const auto heads_first = [&](const at::Tensor& t) { return t.view({B, T, heads, C / heads}).transpose(1, 2); };
  const at::Tensor y =
      attend(way, heads_first(qkv[0]), heads_first(qkv[1]), heads_first(qkv[2]), future);  // (B, heads, T, d)
  return y.transpose(1, 2).reshape({B, T, C});
}

Mlp::Mlp(const Recipe& recipe)
    : c_fc(register_module("c_fc", std::make_shared<Linear>(recipe, recipe.d_model, 4 * recipe.d_model))),
      c_proj(register_module("c_proj", std::make_shared<Linear>(recipe, 4 * recipe.d_model, recipe.d_model, true))),
      gelu(architecture_of(recipe).gelu) {}

at::Tensor Mlp::forward(const at::Tensor& x) const {
  return c_proj->forward(at::gelu(c_fc->forward(x), gelu == Gelu::tanh ? "tanh" : "none"));
}

Block::Block(const Recipe& recipe)
    : ln_1(register_module("ln_1", std::make_shared<LayerNorm>(recipe))),
      attn(register_module("attn", std::make_shared<SelfAttention>(recipe))),
      ln_2(register_module("ln_2", std::make_shared<LayerNorm>(recipe))),
      mlp(register_module("mlp", std::make_shared<Mlp>(recipe))) {}

at::Tensor Block::forward(at::Tensor x, const at::Tensor& future, int layer) const {
  {
    const ModelRange range("attn", layer);
    x = x + attn->forward(ln_1->forward(x), future);
  }
  const ModelRange range("mlp", layer);
  return x + mlp->forward(ln_2->forward(x));
}

Gpt::Gpt(const Recipe& recipe)
    : wte(register_module("wte", std::make_shared<Embedding>(recipe, recipe.vocab, recipe.padded_vocab()))),
      wpe(register_module("wpe", std::make_shared<Embedding>(recipe, recipe.seq, recipe.seq))),
      vocab_(recipe.vocab),
      fused_on_cpu_(recipe.compile != Compile::off && recipe.device == "cpu") {
  auto list = register_module("h", std::make_shared<torch::nn::ModuleListImpl>());
  for (int layer = 0; layer < recipe.layers; ++layer) {
    blocks.push_back(std::make_shared<Block>(recipe));
    list->push_back(blocks.back());
  }
  ln_f = register_module("ln_f", std::make_shared<LayerNorm>(recipe));
  lm_head = register_module("lm_head", std::make_shared<Head>(recipe, wte->weight));
  if (recipe.attention == Attention::explicit_scores) {
    future = register_buffer("future", at::ones({recipe.seq, recipe.seq}, at::kBool).triu(1));
  }
  if (recipe.padded_vocab() > recipe.vocab) {
    padding = register_buffer("padding", at::zeros({recipe.padded_vocab()}));
    padding.slice(0, recipe.vocab).fill_(-std::numeric_limits<double>::infinity());
  }
}

at::Tensor Gpt::hidden(const at::Tensor& tokens) const {
  const auto T = tokens.size(1);
  at::Tensor x;  // (B, T, C)
  {
    const ModelRange range("embedding");
    x = at::embedding(wte->weight, tokens) + wpe->weight.narrow(0, 0, T);
  }
  if (fused_on_cpu_) return fused_blocks(blocks, *ln_f, x);
  const at::Tensor mask = future.defined() ? future.narrow(0, 0, T).narrow(1, 0, T) : future;
  for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i]->forward(x, mask, static_cast<int>(i));
  const ModelRange range("head");
  return ln_f->forward(x);
}

at::Tensor Gpt::forward(const at::Tensor& tokens) const {
  const at::Tensor x = hidden(tokens);
  const ModelRange range("head");
  return at::linear(x, lm_head->weight, padding);
}

at::Tensor Gpt::loss(const at::Tensor& tokens, const at::Tensor& targets) const {
  if (fused_on_cpu_) {
    const at::Tensor x = hidden(tokens).flatten(0, 1);
    const ModelRange range("loss");
    return fused_classifier(x, lm_head->weight, targets.flatten(), vocab_);
  }
  const at::Tensor logits = forward(tokens).flatten(0, 1);  // (B T, V')
  const ModelRange range("loss");
  // Always in float32: a sum over 50,257 exponentials needs all its bits.
  return at::cross_entropy_loss(logits.to(at::kFloat), targets.flatten());
}

std::string Gpt::attention_backend(const Recipe& recipe) const {
  const SelfAttention& attention = *blocks.front()->attn;
  const bool is_own = recipe.compile == Compile::max;    // whatever the recipe's way is: device/device_model.h
  if (is_own && recipe.device == "cpu") return "flash";  // plan/attention_tiles.h
  if (attention.way == Attention::explicit_scores && !is_own) return "explicit";
  const at::NoGradGuard no_grad;
  const at::Tensor& weight = attention.c_attn->weight;
  const auto C = weight.size(1);
  const at::Tensor probe = at::linear(at::zeros({1, 1, C}, weight.options()), weight);  // in autocast's type
  const at::Tensor q =
      at::zeros({recipe.batch, attention.heads, recipe.seq, C / attention.heads}, probe.options()).requires_grad_(true);
  switch (static_cast<at::SDPBackend>(at::_fused_sdp_choice(q, q, q, {}, 0.0, /*is_causal=*/true))) {
    case at::SDPBackend::flash_attention:
      return "flash";
    case at::SDPBackend::efficient_attention:
      return "efficient";
    case at::SDPBackend::cudnn_attention:
      return "cudnn";
    case at::SDPBackend::math:
      return "math";
    default:
      return "other";
  }
}

NamedTensors named_parameters(const Gpt& model) {
  NamedTensors parameters;
  for (const auto& item : model.named_parameters()) parameters.emplace_back(item.key(), item.value());
  return parameters;
}

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

std::shared_ptr<Gpt> build_model(const Recipe& recipe) {
  torch::manual_seed(recipe.seed);
  return std::make_shared<Gpt>(recipe);
}

}  // namespace stepladder
