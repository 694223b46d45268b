// Autograd functions around the kernels and products, and the GPT-2 step that is made of them. Contexts keep plain
// pointers to this step's objects, so the step must outlive its graphs. `verify` compares it with the model's own
// operations before the first step.
#include "engine/trainer/device/device_model.h"

#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "engine/trainer/attention.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Elements: 256 bytes of bf16, what cuBLASLt's fastest algorithms ask for.
std::int64_t multiple_of_128(std::int64_t elements) {
  return (elements + 127) / 128 * 128;
}

// Keeps an object that a function's backward pass needs beside tensors; the model outlives the graph.
template <class Object>
void keep(AutogradContext* context, const char* name, const Object& object) {
  context->saved_data[name] = reinterpret_cast<std::int64_t>(&object);
}
template <class Object>
Object& kept(AutogradContext* context, const char* name) {
  return *reinterpret_cast<Object*>(context->saved_data[name].toInt());
}

// Turns autocast off: the types are chosen by hand below.
struct WithoutAutocast {
  const c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

struct Embed : Function<Embed> {
  // tokens: (B, T) -> (B T, C), float32.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& positions,
                            const at::Tensor& tokens, const DeviceKernels* kernels) {
    const WithoutAutocast by_hand;
    keep(context, "kernels", *kernels);
    context->save_for_backward({tokens});
    context->saved_data["rows"] = table.size(0);
    context->saved_data["positions"] = positions.size(0);
    return kernels->embed(table, positions, tokens, tokens.size(1));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const WithoutAutocast by_hand;
    const at::Tensor tokens = context->get_saved_variables()[0], &d = gradients[0];
    const std::int64_t T = tokens.size(1), C = d.size(1);
    at::Tensor d_positions = d.view({-1, T, C}).sum(0);  // (T, C)
    if (const std::int64_t unused = context->saved_data["positions"].toInt() - T; unused > 0)
      d_positions = at::constant_pad_nd(d_positions, {0, 0, 0, unused});
    return {
        kept<const DeviceKernels>(context, "kernels").embed_backward(d, tokens, context->saved_data["rows"].toInt()),
        d_positions,
        {},
        {}};
  }
};

struct AddNorm : Function<AddNorm> {
  // -> the residual stream after the add, and its norm.
  static variable_list forward(AutogradContext* context, const at::Tensor& stream,
                               const std::optional<at::Tensor>& added, const std::optional<at::Tensor>& added_bias,
                               const at::Tensor& weight, const at::Tensor& bias, const DeviceKernels* kernels) {
    const WithoutAutocast by_hand;
    const DeviceKernels::Normed result =
        kernels->add_norm(stream, added.value_or(at::Tensor()), added_bias.value_or(at::Tensor()), weight, bias);
    keep(context, "kernels", *kernels);
    context->saved_data["adds"] = added.has_value();
    context->save_for_backward({result.sum, result.mean, result.factor, weight, bias});
    context->set_materialize_grads(false);  // nothing uses the last norm's stream
    return {result.sum, result.normed};     // without an add the stream itself
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const WithoutAutocast by_hand;
    const auto saved = context->get_saved_variables();
    const bool adds = context->saved_data["adds"].toBool();
    const auto d = kept<const DeviceKernels>(context, "kernels")
                       .add_norm_backward(gradients[1].contiguous(),
                                          gradients[0].defined() ? gradients[0].contiguous() : at::Tensor(),
                                          {.sum = saved[0], .mean = saved[1], .factor = saved[2]}, saved[3], saved[4]);
    return {d.sum, adds ? d.added : at::Tensor(), adds ? d.added_bias : at::Tensor(), d.weight, d.bias, {}};
  }
};

struct Product : Function<Product> {
  // weight, bias: the parameters, for their gradients; the product reads `layer`.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const LayerTensors& layer, Products* products) {
    const WithoutAutocast by_hand;
    keep(context, "products", *products);
    context->saved_data["bias"] = bias.has_value();
    context->save_for_backward({x, layer.weight, weight});
    return products->forward(x, layer);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const WithoutAutocast by_hand;
    const auto saved = context->get_saved_variables();
    Products& products = kept<Products>(context, "products");
    const at::Tensor d = gradients[0].contiguous();
    const auto own = products.weight_gradient(d, saved[0], context->saved_data["bias"].toBool());
    return {products.input_gradient(d, saved[1]), own.weight, own.bias, {}, {}};
  }
};

struct TwoLayers : Function<TwoLayers> {
  // gelu(x fc^T + bias) proj^T, without the last bias.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& fc_weight,
                            const at::Tensor& fc_bias, const at::Tensor& proj_weight, const LayerTensors& fc,
                            const LayerTensors& proj, Products* products) {
    const WithoutAutocast by_hand;
    const Products::Activated hidden = products->forward_gelu(x, fc);
    keep(context, "products", *products);
    context->save_for_backward({x, hidden.pre, hidden.after, fc.weight, fc.bias, fc.float_bias, proj.weight});
    (void)fc_weight, (void)fc_bias, (void)proj_weight;  // for their gradients
    return products->forward(hidden.after, {.weight = proj.weight});
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const WithoutAutocast by_hand;
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &pre = saved[1], &after = saved[2], &proj = saved[6];
    const LayerTensors fc{.weight = saved[3], .bias = saved[4], .float_bias = saved[5]};
    Products& products = kept<Products>(context, "products");
    const at::Tensor d = gradients[0].contiguous();
    const at::Tensor d_proj = products.weight_gradient(d, after, false).weight;
    const Products::GeluGradients hidden = products.gelu_gradient(d, proj, pre, fc);
    const at::Tensor d_fc = products.weight_gradient(hidden.pre, x, false).weight;
    return {products.input_gradient(hidden.pre, fc.weight), d_fc, hidden.bias, d_proj, {}, {}, {}};
  }
};

// Both gradients are made in the forward pass, since the logits turn into their gradient in place there. They are those
// of the mean loss over all micro-batches, and `backward` takes no notice of the gradient that it is given: to divide
// by the number of micro-batches there would round bf16 gradients a second time.
struct Classify : Function<Classify> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                            const at::Tensor& targets, const at::Tensor& head_copy, std::int64_t vocab, bool learns,
                            const DeviceKernels* kernels, Products* products, std::int64_t micro_batches) {
    const WithoutAutocast by_hand;
    at::Tensor logits = products->forward(hidden, {.weight = head_copy});  // (N, V'')
    const double scale = learns ? 1.0 / static_cast<double>(hidden.size(0) * micro_batches) : 0.0;
    const at::Tensor losses = kernels->classify(logits, targets, vocab, scale);
    if (learns) {
      const at::Tensor d_head = products->weight_gradient(logits, hidden, false).weight;
      context->save_for_backward({products->input_gradient(logits, head_copy), d_head.narrow(0, 0, head.size(0))});
    }
    return losses.mean();
  }
  static variable_list backward(AutogradContext* context, const variable_list&) {
    const auto saved = context->get_saved_variables();
    return {saved[0], saved[1], {}, {}, {}, {}, {}, {}, {}};
  }
};

// qkv: (B T, 3 C) -> (B T, C), by the fused attention that LibTorch picks for the device.
at::Tensor attention(const at::Tensor& qkv, std::int64_t B, std::int64_t T, std::int64_t heads) {
  const std::int64_t C = qkv.size(1) / 3;
  const auto parts = qkv.view({B, T, 3 * C}).split(C, 2);
  const auto heads_first = [&](const at::Tensor& t) { return t.view({B, T, heads, C / heads}).transpose(1, 2); };
  return attend(Attention::scaled_dot_product, heads_first(parts[0]), heads_first(parts[1]), heads_first(parts[2]), {})
      .transpose(1, 2)
      .reshape({B * T, C});
}

}  // namespace

std::int64_t head_rows(const Recipe& recipe) {
  return recipe.autocast == Autocast::bf16 ? multiple_of_128(recipe.padded_vocab()) : recipe.padded_vocab();
}

DeviceModel::DeviceModel(const Recipe& recipe, const Gpt& model, Device device)
    : recipe_(recipe),
      model_(model),
      launcher_(std::move(device.launcher)),
      kernels_(*launcher_, recipe.autocast == Autocast::bf16, device_parts(recipe)),
      products_(device.make_products && kernels_.parts().products ? device.make_products(kernels_)
                                                                  : std::make_unique<Products>(kernels_)),
      has_library_products_(device.make_products && kernels_.parts().products) {
  TORCH_CHECK(recipe.d_model <= DeviceKernels::widest, "compile-max: the kernels take rows of at most ",
              DeviceKernels::widest, " columns");
  if (kernels_.element() == at::kFloat) return;
  const at::NoGradGuard no_grad;
  std::int64_t size = 0;
  const auto is_head = [&](const at::Tensor& parameter) { return parameter.is_same(model.lm_head->weight); };
  const auto room = [&](const at::Tensor& of) {
    return multiple_of_128(is_head(of) ? head_rows(recipe) * of.size(1) : of.numel());
  };
  for (const auto& [name, parameter] : named_parameters(model)) size += room(parameter);
  all_copies_ =
      at::zeros({size}, named_parameters(model).front().second.options().dtype(at::kBFloat16).requires_grad(false));
  std::int64_t begin = 0;
  for (const auto& [name, parameter] : named_parameters(model)) {
    copies_[parameter.unsafeGetTensorImpl()] = all_copies_.narrow(0, begin, parameter.numel()).view(parameter.sizes());
    if (is_head(parameter))
      head_ =
          all_copies_.narrow(0, begin, head_rows(recipe) * recipe.d_model).view({head_rows(recipe), recipe.d_model});
    begin += room(parameter);
  }
  weights_changed();
}

DeviceModel::~DeviceModel() = default;

bool DeviceModel::leave_library_products() {
  if (!std::exchange(has_library_products_, false)) return false;
  products_ = std::make_unique<Products>(kernels_);
  return true;
}

std::unique_ptr<AdamW> DeviceModel::make_optimizer() const {
  if (!kernels_.parts().adamw) return stepladder::make_optimizer(recipe_, named_parameters(model_));
  return make_kernel_adamw(recipe_, named_parameters(model_), kernels_, copies_);
}

void DeviceModel::weights_changed() {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : named_parameters(model_)) {
    const auto copy = copies_.find(parameter.unsafeGetTensorImpl());
    if (copy != copies_.end()) copy->second.copy_(parameter);
  }
}

void DeviceModel::updated() {
  if (!kernels_.parts().adamw) weights_changed();  // else the kernel has written the copies
}

std::vector<at::Tensor> DeviceModel::state() const {
  return all_copies_.defined() ? std::vector<at::Tensor>{all_copies_} : std::vector<at::Tensor>{};
}

at::Tensor DeviceModel::for_products(const at::Tensor& parameter) const {
  const auto copy = copies_.find(parameter.unsafeGetTensorImpl());
  return copy == copies_.end() ? parameter.detach() : copy->second;
}

void DeviceModel::verify(const Tokens& tokens) const {
  // Takes the gradients out of the parameters.
  const auto gradients = [&] {
    std::vector<at::Tensor> all;
    for (const auto& [name, parameter] : named_parameters(model_)) {
      all.push_back(parameter.grad());
      at::Tensor(parameter).mutable_grad().reset();
    }
    return all;
  };
  gradients();
  // One sequence after the other: the model's own operations may need far more memory than the kernels.
  const std::int64_t B = tokens.inputs.size(0);
  const auto part = static_cast<double>(B * recipe_.grad_accum);
  double plain = 0;
  for (std::int64_t i = 0; i < B; ++i) {
    at::Tensor loss;
    {
      const AutocastScope autocast(recipe_.autocast, model_.wte->weight.device().type());
      loss = model_.loss(tokens.inputs.narrow(0, i, 1), tokens.targets.narrow(0, i, 1));
    }
    (loss / part).backward();
    plain += loss.item<double>() / static_cast<double>(B);
  }
  std::vector<at::Tensor> wanted;  // on the CPU: the device may lack memory for a second copy
  for (const at::Tensor& gradient : gradients()) wanted.push_back(gradient.to(at::kCPU));
  const at::Tensor own_loss = loss(tokens);
  own_loss.backward();
  const std::vector<at::Tensor> found = gradients();

  const bool rounds = precision_name(recipe_) != "fp32";
  const auto differ = [](const std::string& what, double here, double there) {
    std::ostringstream sentence;
    sentence << "compile-max: the kernels differ from LibTorch's operations: " << what << " is " << here << ", there "
             << there;
    throw std::runtime_error(sentence.str());
  };
  const double own = own_loss.item<double>();
  if (!(std::abs(own - plain) <= (rounds ? 2e-2 : 1e-4) * std::abs(plain)) && std::isfinite(plain))
    differ("the loss", own, plain);
  double all = 0;
  for (const at::Tensor& gradient : wanted) all += std::pow(gradient.norm().item<double>(), 2);
  const auto names = named_parameters(model_);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double size = wanted[i].norm().item<double>();
    // Relative to a gradient that counts: that of a bias may be nothing but rounding.
    const double scale = std::max(size, 1e-2 * std::sqrt(all));
    const double gap = (found[i].to(at::kCPU) - wanted[i]).norm().item<double>();
    if (!(gap <= (rounds ? 0.1 : 1e-2) * scale) && std::isfinite(all))
      differ("the gradient of " + names[i].first, found[i].norm().item<double>(), size);
  }
}

LayerTensors DeviceModel::layer(const Linear& linear) const {
  return {.weight = for_products(linear.weight), .bias = for_products(linear.bias), .float_bias = linear.bias.detach()};
}

at::Tensor DeviceModel::loss(const Tokens& tokens) const {
  const WithoutAutocast by_hand;
  const std::int64_t B = tokens.inputs.size(0), T = tokens.inputs.size(1);
  const std::optional<at::Tensor> none;
  const DeviceKernels* const kernels = &kernels_;
  Products* const products = products_.get();
  const at::Tensor embedded = Embed::apply(model_.wte->weight, model_.wpe->weight, tokens.inputs, kernels);
  const LayerNorm& first = *model_.blocks.front()->ln_1;
  // The residual stream, and its norm: the next product's input.
  variable_list state = AddNorm::apply(embedded, none, none, first.weight, first.bias, kernels);
  for (std::size_t i = 0; i < model_.blocks.size(); ++i) {
    const Block& block = *model_.blocks[i];
    const SelfAttention& attn = *block.attn;
    const Linear &c_attn = *attn.c_attn, &c_proj = *attn.c_proj, &fc = *block.mlp->c_fc, &proj = *block.mlp->c_proj;
    const at::Tensor qkv = Product::apply(state[1], c_attn.weight, std::optional(c_attn.bias), layer(c_attn), products);
    const at::Tensor mixed = Product::apply(attention(qkv, B, T, attn.heads), c_proj.weight, none,
                                            LayerTensors{.weight = for_products(c_proj.weight)}, products);
    state = AddNorm::apply(state[0], std::optional(mixed), std::optional(c_proj.bias), block.ln_2->weight,
                           block.ln_2->bias, kernels);
    const at::Tensor added =
        TwoLayers::apply(state[1], fc.weight, fc.bias, proj.weight, layer(fc), layer(proj), products);
    const LayerNorm& next = i + 1 < model_.blocks.size() ? *model_.blocks[i + 1]->ln_1 : *model_.ln_f;
    state = AddNorm::apply(state[0], std::optional(added), std::optional(proj.bias), next.weight, next.bias, kernels);
  }
  return Classify::apply(state[1], model_.lm_head->weight, tokens.targets.reshape({B * T}),
                         head_.defined() ? head_ : for_products(model_.lm_head->weight),
                         static_cast<std::int64_t>(recipe_.vocab), at::GradMode::is_enabled(), kernels, products,
                         static_cast<std::int64_t>(recipe_.grad_accum));
}

}  // namespace stepladder
