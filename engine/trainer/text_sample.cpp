#include "engine/trainer/text_sample.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

constexpr double temperature = 0.8;
constexpr std::int64_t likeliest = 200;

// logits: (V), on the CPU.
int draw(const at::Tensor& logits, at::Generator& random) {
  const auto [values, tokens] = (logits / temperature).topk(std::min(likeliest, logits.size(0)));
  const at::Tensor chosen = at::multinomial(at::softmax(values, 0), 1, false, random);
  return static_cast<int>(tokens[chosen.item<std::int64_t>()].item<std::int64_t>());
}

}  // namespace

std::string sample_text(const Gpt& model, const Recipe& recipe, const Tokenizer& tokenizer, at::Device device,
                        std::int64_t step, SampleContext length) {
  const at::NoGradGuard no_grad;
  at::Generator random = at::make_generator<at::CPUGeneratorImpl>(recipe.seed + static_cast<std::uint64_t>(step));
  std::vector<int> text = tokenizer.encode(recipe.sample_prompt);
  if (text.empty()) text.push_back(tokenizer.end_of_text().value_or(0));
  for (int i = 0; i < recipe.sample_tokens; ++i) {
    const auto seen = std::min<std::int64_t>(recipe.seq, std::ssize(text));
    const at::Tensor context = at::zeros({1, length == SampleContext::padded ? recipe.seq : seen}, at::kLong);
    context[0]
        .narrow(0, 0, seen)
        .copy_(at::tensor(at::ArrayRef<int>(text).slice(text.size() - static_cast<std::size_t>(seen)), at::kLong));
    const AutocastScope autocast(recipe.autocast, device.type());
    const at::Tensor logits = model.forward(context.to(device))[0][seen - 1].narrow(0, 0, recipe.vocab);  // (V)
    text.push_back(draw(logits.to(at::kCPU, at::kFloat), random));
  }
  return tokenizer.decode(text);
}

}  // namespace stepladder
