#include "engine/trainer/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/trainer/attention.h"
#include "engine/trainer/optimizer.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

Recipe known_recipe() {
  Recipe recipe = tiny_recipe();
  recipe.vocab = 256;
  return recipe;
}

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const at::Tensor& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

TEST(Model, Gpt2HasItsPublishedSize) {
  Recipe recipe;
  apply_preset(recipe, "gpt2");
  recipe.vocab = 50257;
  const auto model = build_model(recipe);
  EXPECT_EQ(count(*model), 124'439'808);
  EXPECT_EQ(parameter_count(recipe), 124'439'808);
}

TEST(Model, CountsAgreeForOtherShapes) {
  Recipe recipe = known_recipe();
  EXPECT_EQ(count(*build_model(recipe)), parameter_count(recipe));
  recipe = Recipe{};
  recipe.vocab = 256;
  EXPECT_EQ(count(*build_model(recipe)), parameter_count(recipe));
}

TEST(Model, ParameterNamesAreThoseOfThePublishedCheckpoints) {
  Recipe recipe = known_recipe();
  recipe.layers = 1;
  recipe.tied_head = false;
  std::set<std::string> names;
  for (const auto& parameter : build_model(recipe)->named_parameters()) names.insert(parameter.key());
  const std::set<std::string> expected = {"wte.weight",
                                          "wpe.weight",
                                          "h.0.ln_1.weight",
                                          "h.0.ln_1.bias",
                                          "h.0.attn.c_attn.weight",
                                          "h.0.attn.c_attn.bias",
                                          "h.0.attn.c_proj.weight",
                                          "h.0.attn.c_proj.bias",
                                          "h.0.ln_2.weight",
                                          "h.0.ln_2.bias",
                                          "h.0.mlp.c_fc.weight",
                                          "h.0.mlp.c_fc.bias",
                                          "h.0.mlp.c_proj.weight",
                                          "h.0.mlp.c_proj.bias",
                                          "ln_f.weight",
                                          "ln_f.bias",
                                          "lm_head.weight"};
  EXPECT_EQ(names, expected);
}

TEST(Model, ATiedHeadIsTheTokenEmbeddingItself) {
  Recipe recipe = known_recipe();
  recipe.tied_head = false;
  const auto untied = build_model(recipe);
  recipe.tied_head = true;
  const auto tied = build_model(recipe);
  EXPECT_FALSE(untied->lm_head->weight.is_alias_of(untied->wte->weight));
  EXPECT_EQ(tied->lm_head->weight.data_ptr(), tied->wte->weight.data_ptr());
  EXPECT_EQ(count(*untied) - count(*tied), recipe.vocab * recipe.d_model);
  EXPECT_EQ(count(*tied), parameter_count(recipe));
}

TEST(Model, InitialWeightsByPyTorchsDefaults) {
  Recipe recipe;
  recipe.vocab = 1000;
  recipe.layers = 1;
  recipe.d_model = 256;
  for (const auto& parameter : build_model(recipe)->named_parameters()) {
    const at::Tensor value = parameter.value().detach();
    const std::string& name = parameter.key();
    if (name.find("ln_") != std::string::npos) continue;
    if (name == "wte.weight" || name == "wpe.weight") {
      EXPECT_NEAR(value.std().item<double>(), 1, 0.03) << name;
    } else {
      const double bound = 1 / std::sqrt(name.starts_with("h.0.mlp.c_proj") ? 1024.0 : 256.0);
      EXPECT_LE(value.abs().max().item<double>(), bound * 1.000001) << name;
      EXPECT_NEAR(value.std().item<double>(), bound / std::sqrt(3.0), bound * 0.05) << name;
    }
  }
}

TEST(Model, InitialWeightsAsPublished) {
  Recipe recipe;
  recipe.init = Init::gpt2;
  recipe.vocab = 1000;
  recipe.layers = 2;
  recipe.d_model = 256;
  for (const auto& parameter : build_model(recipe)->named_parameters()) {
    const at::Tensor value = parameter.value().detach();
    const std::string& name = parameter.key();
    if (name.ends_with("bias")) {
      EXPECT_EQ(value.abs().max().item<float>(), 0) << name;
    } else if (name.find("ln_") != std::string::npos) {
      EXPECT_TRUE(value.eq(1).all().item<bool>()) << name;
    } else {
      const double expected = name.find("c_proj") != std::string::npos ? 0.02 / std::sqrt(4.0) : 0.02;
      EXPECT_NEAR(value.std().item<double>(), expected, expected * 0.03) << name;
      EXPECT_NEAR(value.mean().item<double>(), 0, expected * 0.05) << name;
    }
  }
}

TEST(Model, ATokenNeverChangesWhatComesBeforeIt) {
  for (const Attention way : {Attention::explicit_scores, Attention::scaled_dot_product}) {
    Recipe recipe = known_recipe();
    recipe.attention = way;
    const auto model = build_model(recipe);
    const at::NoGradGuard no_grad;
    at::Tensor tokens = at::randint(256, {2, recipe.seq}, at::kLong);
    const at::Tensor before = model->forward(tokens);
    for (const std::int64_t t : {1, 7, 15}) {
      at::Tensor changed = tokens.clone();
      changed.select(1, t).add_(1).remainder_(256);
      const at::Tensor after = model->forward(changed);
      EXPECT_TRUE(before.narrow(1, 0, t).equal(after.narrow(1, 0, t))) << t;
      EXPECT_FALSE(before.select(1, t).equal(after.select(1, t))) << t;
    }
  }
}

TEST(Attention, ExplicitEqualsFused) {
  torch::manual_seed(1);
  const std::int64_t T = 33;
  const at::Tensor future = at::ones({T, T}, at::kBool).triu(1);
  std::vector<at::Tensor> inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(at::randn({2, 3, T, 16}).requires_grad_());
  std::vector<std::vector<at::Tensor>> results;  // output and three gradients, for each way
  for (const Attention way : {Attention::explicit_scores, Attention::scaled_dot_product}) {
    const at::Tensor out = attend(way, inputs[0], inputs[1], inputs[2], future);
    std::vector<at::Tensor> result = {out.detach()};
    for (const at::Tensor& gradient : torch::autograd::grad({out.square().sum()}, inputs)) result.push_back(gradient);
    results.push_back(result);
  }
  EXPECT_LT((results[0][0] - results[1][0]).abs().max().item<double>(), 1e-5);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_TRUE(at::allclose(results[0][i], results[1][i], 1e-4, 1e-5)) << "gradient " << i;
  }
}

TEST(Optimizer, PlainAndFusedAgree) {
  std::vector<NamedTensors> ends;
  for (const Optimizer kind : {Optimizer::adamw, Optimizer::fused_adamw}) {
    Recipe recipe = known_recipe();
    recipe.optimizer = kind;
    recipe.weight_decay = 0.1;
    torch::manual_seed(3);
    recipe.decay = Decay::matrices;  // two groups: the last one decays
    NamedTensors parameters = {{"a", at::randn({1})}, {"b", at::randn({7})}, {"c", at::randn({10, 100})}};
    for (auto& [name, parameter] : parameters) parameter.requires_grad_();
    const auto optimizer = make_optimizer(recipe, parameters);
    for (int step = 0; step < 20; ++step) {
      optimizer->clear_gradients();
      at::Tensor loss = at::zeros({});
      for (const auto& [name, parameter] : parameters)
        loss = loss + (parameter * at::randn_like(parameter)).sin().sum();
      loss.backward();
      EXPECT_GT(optimizer->gradient_norm().item<double>(), 0);
      optimizer->begin_step(recipe.lr);
      optimizer->update();
    }
    ends.push_back(parameters);
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::allclose(ends[0][i].second, ends[1][i].second, 1e-5, 1e-6)) << i;
}

TEST(Optimizer, GradientNormIsOverAllGradientsTogether) {
  at::Tensor a = at::zeros({2}).requires_grad_(), b = at::zeros({1}).requires_grad_();
  a.mutable_grad() = at::tensor({2.0f, 3.0f});
  b.mutable_grad() = at::tensor({6.0f});
  const auto optimizer = make_optimizer(known_recipe(), {{"a", a}, {"b", b}});
  EXPECT_DOUBLE_EQ(optimizer->gradient_norm().item<double>(), 7.0);
  EXPECT_DOUBLE_EQ(optimizer->clip_gradients(8.0).item<double>(), 7.0);
  EXPECT_EQ(a.grad()[0].item<float>(), 2.0f);
  optimizer->clip_gradients(3.5);
  EXPECT_NEAR(a.grad()[0].item<double>(), 1.0, 1e-6);
  EXPECT_NEAR(b.grad()[0].item<double>(), 3.0, 1e-6);
  optimizer->clear_gradients();
  EXPECT_FALSE(a.grad().defined());
}

}  // namespace
}  // namespace stepladder
