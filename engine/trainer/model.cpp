#include "engine/trainer/model.h"

#include <cmath>

#include "engine/trainer/attention.h"

namespace stepladder {
namespace {

constexpr double weight_std = 0.02;

// Each block adds to the residual stream twice; without this its variance would grow with depth (Radford et al. 2019,
// section 2.3).
double residual_std(const Recipe& recipe) {
  return weight_std / std::sqrt(2.0 * recipe.layers);
}

}  // namespace

Linear::Linear(int in, int out, double std)
    : weight(register_parameter("weight", at::empty({out, in}).normal_(0.0, std))),
      bias(register_parameter("bias", at::zeros({out}))) {}

LayerNorm::LayerNorm(int width)
    : weight(register_parameter("weight", at::ones({width}))), bias(register_parameter("bias", at::zeros({width}))) {}

Embedding::Embedding(int rows, int width, double std)
    : weight(register_parameter("weight", at::empty({rows, width}).normal_(0.0, std))) {}

SelfAttention::SelfAttention(const Recipe& recipe)
    : way(recipe.attention),
      heads(recipe.heads),
      c_attn(register_module("c_attn", std::make_shared<Linear>(recipe.d_model, 3 * recipe.d_model, weight_std))),
      c_proj(
          register_module("c_proj", std::make_shared<Linear>(recipe.d_model, recipe.d_model, residual_std(recipe)))) {}

at::Tensor SelfAttention::forward(const at::Tensor& x, const at::Tensor& future) const {
  const auto B = x.size(0), T = x.size(1), C = x.size(2);
  const auto qkv = c_attn->forward(x).split(C, 2);  // three of (B, T, C)
  const auto heads_first = [&](const at::Tensor& t) { return t.view({B, T, heads, C / heads}).transpose(1, 2); };
  const at::Tensor y =
      attend(way, heads_first(qkv[0]), heads_first(qkv[1]), heads_first(qkv[2]), future);  // (B, heads, T, d)
  return c_proj->forward(y.transpose(1, 2).reshape({B, T, C}));
}

Mlp::Mlp(const Recipe& recipe)
    : c_fc(register_module("c_fc", std::make_shared<Linear>(recipe.d_model, 4 * recipe.d_model, weight_std))),
      c_proj(register_module("c_proj",
                             std::make_shared<Linear>(4 * recipe.d_model, recipe.d_model, residual_std(recipe)))) {}

at::Tensor Mlp::forward(const at::Tensor& x) const {
  return c_proj->forward(at::gelu(c_fc->forward(x), "tanh"));
}

Block::Block(const Recipe& recipe)
    : ln_1(register_module("ln_1", std::make_shared<LayerNorm>(recipe.d_model))),
      attn(register_module("attn", std::make_shared<SelfAttention>(recipe))),
      ln_2(register_module("ln_2", std::make_shared<LayerNorm>(recipe.d_model))),
      mlp(register_module("mlp", std::make_shared<Mlp>(recipe))) {}

at::Tensor Block::forward(at::Tensor x, const at::Tensor& future) const {
  x = x + attn->forward(ln_1->forward(x), future);
  return x + mlp->forward(ln_2->forward(x));
}

Gpt::Gpt(const Recipe& recipe)
    : wte(register_module("wte", std::make_shared<Embedding>(recipe.vocab, recipe.d_model, weight_std))),
      wpe(register_module("wpe", std::make_shared<Embedding>(recipe.seq, recipe.d_model, weight_std))) {
  auto list = register_module("h", std::make_shared<torch::nn::ModuleListImpl>());
  for (int layer = 0; layer < recipe.layers; ++layer) {
    blocks.push_back(std::make_shared<Block>(recipe));
    list->push_back(blocks.back());
  }
  ln_f = register_module("ln_f", std::make_shared<LayerNorm>(recipe.d_model));
  if (recipe.attention == Attention::explicit_scores) {
    future = register_buffer("future", at::ones({recipe.seq, recipe.seq}, at::kBool).triu(1));
  }
}

at::Tensor Gpt::forward(const at::Tensor& tokens) const {
  const auto T = tokens.size(1);
  at::Tensor x = at::embedding(wte->weight, tokens) + wpe->weight.narrow(0, 0, T);  // (B, T, C)
  const at::Tensor mask = future.defined() ? future.narrow(0, 0, T).narrow(1, 0, T) : future;
  for (const auto& block : blocks) x = block->forward(x, mask);
  return at::linear(ln_f->forward(x), wte->weight);
}

at::Tensor Gpt::loss(const at::Tensor& tokens, const at::Tensor& targets) const {
  const at::Tensor logits = forward(tokens).flatten(0, 1);  // (B T, V)
  // In float32 whatever the products ran in: a sum over 50,257 exponentials has no bits to spare.
  return at::cross_entropy_loss(logits.to(at::kFloat), targets.flatten());
}

std::shared_ptr<Gpt> build_model(const Recipe& recipe) {
  torch::manual_seed(recipe.seed);
  return std::make_shared<Gpt>(recipe);
}

}  // namespace stepladder
