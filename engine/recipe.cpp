// Names, text, JSON, limits and presets of a recipe. for_each_member is the one list of its values: a new value needs a
// line there, a range in `validate`, and an entry in changes_training (rungs.cpp) if it doesn't affect what a run
// learns.
#include "engine/recipe.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <type_traits>

#include "engine/architecture.h"
#include "engine/kernel_parts.h"
#include "engine/nearest.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

// The names of an enum's values, in their order.
template <class Enum>
constexpr ByEnum<Enum, std::string_view> names{};
template <>
constexpr auto names<Attention> = by_enum<Attention, std::string_view>("explicit", "scaled-dot-product");
template <>
constexpr auto names<MatmulPrecision> = by_enum<MatmulPrecision, std::string_view>("fp32", "tf32", "bf16");
template <>
constexpr auto names<Autocast> = by_enum<Autocast, std::string_view>("off", "bf16");
template <>
constexpr auto names<Init> = by_enum<Init, std::string_view>("pytorch", "gpt2");
template <>
constexpr auto names<Optimizer> = by_enum<Optimizer, std::string_view>("adamw", "fused-adamw");
template <>
constexpr auto names<Compile> = by_enum<Compile, std::string_view>("off", "on", "max");
template <>
constexpr auto names<Schedule> = by_enum<Schedule, std::string_view>("constant", "cosine");
template <>
constexpr auto names<Decay> = by_enum<Decay, std::string_view>("everything", "matrices");

template <class Enum>
std::string name_of(Enum value) {
  return std::string(names<Enum>[value]);
}

template <class Enum>
Enum value_of(const FieldText& about, const std::string& name) {
  if (const std::optional<Enum> found = names<Enum>.find(name)) return *found;
  const auto& known = names<Enum>.values;
  throw RecipeError(about, unknown_name(name, std::vector<std::string>(known.begin(), known.end())));
}

// Visits every member with its name, in the order of the struct. Text, JSON and comparison all use this list.
template <class AnyRecipe, class Visitor>
void for_each_member(AnyRecipe& recipe, Visitor visit) {
  visit("model", recipe.model);
  visit("layers", recipe.layers);
  visit("heads", recipe.heads);
  visit("d_model", recipe.d_model);
  visit("vocab", recipe.vocab);
  visit("vocab_multiple", recipe.vocab_multiple);
  visit("tied_head", recipe.tied_head);
  visit("init", recipe.init);
  visit("weights", recipe.weights);
  visit("data", recipe.data);
  visit("batch", recipe.batch);
  visit("seq", recipe.seq);
  visit("grad_accum", recipe.grad_accum);
  visit("overfit", recipe.overfit);
  visit("steps", recipe.steps);
  visit("warmup", recipe.warmup);
  visit("eval_every", recipe.eval_every);
  visit("eval_batches", recipe.eval_batches);
  visit("sample_every", recipe.sample_every);
  visit("sample_tokens", recipe.sample_tokens);
  visit("sample_prompt", recipe.sample_prompt);
  visit("tokenizer", recipe.tokenizer);
  visit("save_every", recipe.save_every);
  visit("keep", recipe.keep);
  visit("device", recipe.device);
  visit("threads", recipe.threads);
  visit("nproc", recipe.nproc);
  visit("seed", recipe.seed);
  visit("lr", recipe.lr);
  visit("schedule", recipe.schedule);
  visit("lr_warmup", recipe.lr_warmup);
  visit("beta1", recipe.beta1);
  visit("beta2", recipe.beta2);
  visit("eps", recipe.eps);
  visit("weight_decay", recipe.weight_decay);
  visit("decay", recipe.decay);
  visit("clip", recipe.clip);
  visit("attention", recipe.attention);
  visit("matmul", recipe.matmul);
  visit("autocast", recipe.autocast);
  visit("optimizer", recipe.optimizer);
  visit("compile", recipe.compile);
  visit("without_kernel", recipe.without_kernel);
}

constexpr std::string_view seed_models = "seed-";

std::string shortest(double value) {  // the fewest digits that give the same number back
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return name_of(value);
  else if constexpr (std::is_same_v<T, std::string>)
    return value;
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "on" : "off";
  else if constexpr (std::is_floating_point_v<T>)
    return shortest(value);
  else
    return std::to_string(value);
}

template <class T>
T value_from_text(const FieldText& about, const std::string& text) {
  if constexpr (std::is_enum_v<T>) {
    return value_of<T>(about, text);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (text == "on" || text == "off") return text == "on";
    throw RecipeError(about, "must be on or off, not '" + text + "'");
  } else {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
    if constexpr (std::is_integral_v<T>) {
      const T most = text.starts_with('-') ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      if (error == std::errc::result_out_of_range)
        throw RecipeError(about, std::string("must be at ") + (text.starts_with('-') ? "least " : "most ") +
                                     text_of(most) + ", not '" + text + "'");
    }
    const char* const kind = std::is_floating_point_v<T> ? "a number"
                             : std::is_signed_v<T>       ? "a whole number"
                                                         : "a whole number of at least 0";
    throw RecipeError(about, std::string("must be ") + kind + ", not '" + text + "'");
  }
}

template <class T>
void require_range(const char* field, T value, T low, T high) {
  if (value < low) throw RecipeError(FieldName{field}, "must be at least " + text_of(low) + ", not " + text_of(value));
  if (value > high) throw RecipeError(FieldName{field}, "must be at most " + text_of(high) + ", not " + text_of(value));
}

// Requires a value in [0, below) or, if `positive`, in (0, below).
void require_number(const char* field, double value, bool positive, double below) {
  if (!std::isfinite(value)) throw RecipeError(FieldName{field}, "must be a finite number, not " + shortest(value));
  if (positive && value <= 0) throw RecipeError(FieldName{field}, "must be greater than 0, not " + shortest(value));
  if (value < 0) throw RecipeError(FieldName{field}, "must not be negative, but is " + shortest(value));
  if (value >= below)
    throw RecipeError(FieldName{field}, "must be less than " + shortest(below) + ", not " + shortest(value));
}

}  // namespace

std::int64_t Recipe::tokens_per_step() const {
  return std::int64_t{batch} * seq * grad_accum;
}

int Recipe::padded_vocab() const {
  return (vocab + vocab_multiple - 1) / vocab_multiple * vocab_multiple;
}

const std::vector<ModelPreset>& model_presets() {
  // Shapes: Radford et al. 2019, table 2. Learning rates of the larger ones: Brown et al. 2020, table 2.1, halved at
  // 124M for the small batch used here.
  static const std::vector<ModelPreset> presets = {
      {"nano", "the size of nanoGPT's CPU example, 0.9M parameters", 4, 4, 128, 0, 12, 64, 1e-3, false, Init::pytorch},
      {"gpt2", "GPT-2 small, 124M parameters", 12, 12, 768, 50257, 4, 1024, 3e-4, true, Init::gpt2},
      {"gpt2-medium", "GPT-2 medium, 355M parameters", 24, 16, 1024, 50257, 4, 1024, 3e-4, true, Init::gpt2},
      {"gpt2-large", "GPT-2 large, 774M parameters", 36, 20, 1280, 50257, 4, 1024, 2.5e-4, true, Init::gpt2},
      {"gpt2-xl", "GPT-2 XL, 1.6B parameters", 48, 25, 1600, 50257, 4, 1024, 2e-4, true, Init::gpt2},
      {"seed-small", "RMSNorm, exact GELU, no biases; 100M parameters", 12, 12, 768, 10000, 16, 128, 3e-4, false,
       Init::gpt2},
      {"seed-medium", "RMSNorm, exact GELU, no biases; 323M parameters", 24, 16, 1024, 10000, 16, 128, 3e-4, false,
       Init::gpt2},
  };
  return presets;
}

void apply_preset(Recipe& recipe, std::string_view name) {
  const auto& presets = model_presets();
  const auto preset = std::ranges::find(presets, name, &ModelPreset::name);
  if (preset == presets.end()) {
    std::vector<std::string> known;
    for (const ModelPreset& candidate : presets) known.emplace_back(candidate.name);
    throw RecipeError(FieldName{"model"}, unknown_name(name, known));
  }
  recipe.model = preset->name;
  recipe.layers = preset->layers;
  recipe.heads = preset->heads;
  recipe.d_model = preset->d_model;
  recipe.vocab = preset->vocab;
  recipe.batch = preset->batch;
  recipe.seq = preset->seq;
  recipe.lr = preset->lr;
  recipe.tied_head = preset->tied_head;
  recipe.init = preset->init;
  if (name.starts_with(seed_models)) recipe.seed = 20230310;  // of the published experiment
}

void validate_each_value(const Recipe& recipe) {
  // The upper bounds are far beyond anything trainable; they keep products of these numbers within 64 bits.
  require_range("layers", recipe.layers, 1, 10'000);
  require_range("heads", recipe.heads, 1, 65'536);
  require_range("d_model", recipe.d_model, 1, 65'536);
  if (recipe.vocab != 0) require_range("vocab", recipe.vocab, 2, 16'777'216);
  require_range("vocab_multiple", recipe.vocab_multiple, 1, 65'536);
  require_range("batch", recipe.batch, 1, 1'000'000);
  require_range("seq", recipe.seq, 1, 1'000'000);
  require_range("grad_accum", recipe.grad_accum, 1, 1'000'000);
  require_range<std::int64_t>("steps", recipe.steps, 1, 1'000'000'000);
  require_range<std::int64_t>("warmup", recipe.warmup, -1, 1'000'000'000);
  require_range<std::int64_t>("eval_every", recipe.eval_every, 0, 1'000'000'000);
  require_range<std::int64_t>("eval_batches", recipe.eval_batches, 1, 1'000'000'000);
  require_range<std::int64_t>("sample_every", recipe.sample_every, 0, 1'000'000'000);
  require_range("sample_tokens", recipe.sample_tokens, 1, 100'000);
  require_range<std::int64_t>("save_every", recipe.save_every, 0, 1'000'000'000);
  require_range("keep", recipe.keep, 0, 1'000'000);
  const std::vector<std::string> devices = {"auto", "cpu", "cuda", "mps"};
  if (std::ranges::find(devices, recipe.device) == devices.end())
    throw RecipeError(FieldName{"device"}, unknown_name(recipe.device, devices));
  require_range("threads", recipe.threads, 0, 4'096);
  require_range("nproc", recipe.nproc, 1, 4'096);
  const double unlimited = std::numeric_limits<double>::infinity();
  require_number("lr", recipe.lr, true, unlimited);
  require_number("beta1", recipe.beta1, false, 1.0);
  require_number("beta2", recipe.beta2, false, 1.0);
  require_number("eps", recipe.eps, true, unlimited);
  require_number("weight_decay", recipe.weight_decay, false, unlimited);
  require_number("clip", recipe.clip, false, unlimited);
  require_range<std::int64_t>("lr_warmup", recipe.lr_warmup, 0, 1'000'000'000);
  kernels_left_out(recipe);
}

void validate(const Recipe& recipe) {
  validate_each_value(recipe);
  if (recipe.d_model % recipe.heads != 0) {
    throw RecipeError(FieldName{"heads"}, std::to_string(recipe.heads) + " heads do not divide a width of " +
                                              std::to_string(recipe.d_model));
  }
  if (recipe.batch % recipe.nproc != 0) {
    throw RecipeError(FieldName{"nproc"}, std::to_string(recipe.nproc) + " processes do not divide a batch of " +
                                              std::to_string(recipe.batch));
  }
}

double learning_rate(const Recipe& recipe, std::int64_t step) {
  if (step <= recipe.lr_warmup) return recipe.lr * static_cast<double>(step) / static_cast<double>(recipe.lr_warmup);
  if (recipe.schedule == Schedule::constant) return recipe.lr;
  const double lowest = 0.1 * recipe.lr;
  const auto falling_steps = static_cast<double>(std::max<std::int64_t>(1, recipe.steps - recipe.lr_warmup));
  const double done = std::min(1.0, static_cast<double>(step - 1 - recipe.lr_warmup) / falling_steps);
  return lowest + 0.5 * (1 + std::cos(std::numbers::pi * done)) * (recipe.lr - lowest);
}

std::int64_t parameter_count(const Recipe& recipe) {
  const std::int64_t width = recipe.d_model;
  const std::int64_t tables = recipe.tied_head ? 1 : 2;  // of V x C
  const std::int64_t embeddings = (tables * recipe.padded_vocab() + recipe.seq) * width;
  const Architecture architecture = architecture_of(recipe);
  const std::int64_t norm = (architecture.norm == Norm::layer_norm ? 2 : 1) * width;
  const std::int64_t biases = architecture.biases ? 9 * width : 0;    // attention 4 C, MLP 5 C
  const std::int64_t block = 12 * width * width + biases + 2 * norm;  // attention 4 C^2, MLP 8 C^2
  return embeddings + recipe.layers * block + norm;
}

Architecture architecture_of(const Recipe& recipe) {
  if (!recipe.model.starts_with(seed_models)) return {};
  return {.norm = Norm::rms_norm, .gelu = Gelu::exact, .biases = false};
}

void set_value(Recipe& recipe, std::string_view wanted, const std::string& value) {
  if (wanted == "model") return apply_preset(recipe, value);
  if (wanted == "data" && value == "synthetic") return recipe.data.clear();  // as `describe` writes it
  std::vector<std::string> known;
  bool found = false;
  for_each_member(recipe, [&]<class T>(const char* name, T& member) {
    known.emplace_back(name);
    if (name != wanted) return;
    found = true;
    member = value_from_text<T>(FieldName{name}, value);
  });
  if (!found) throw RecipeError(std::string(wanted), unknown_name(wanted, known).substr(wanted.size() + 3));
}

std::string precision_name(const Recipe& recipe) {
  if (recipe.autocast == Autocast::bf16) return "bf16";
  return name_of(recipe.matmul);
}

std::vector<std::pair<std::string, std::string>> describe(const Recipe& recipe) {
  std::vector<std::pair<std::string, std::string>> lines;
  for_each_member(recipe, [&](const char* name, const auto& value) { lines.emplace_back(name, text_of(value)); });
  for (auto& [name, value] : lines)
    if (name == "data" && value.empty()) value = "synthetic";
  return lines;
}

std::string difference(const Recipe& before, const Recipe& after) {
  const auto old_lines = describe(before);
  const auto new_lines = describe(after);
  std::string text;
  for (std::size_t i = 0; i < old_lines.size(); ++i) {
    const auto& [name, old_value] = old_lines[i];
    const std::string& new_value = new_lines[i].second;
    if (old_value == new_value) continue;
    const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
    text += (text.empty() ? "" : ", ") + name + " " + shown(old_value) + " -> " + shown(new_value);
  }
  return text;
}

std::string to_json(const Recipe& recipe) {
  nlohmann::ordered_json json;
  for_each_member(recipe, [&]<class T>(const char* name, const T& value) {
    if constexpr (std::is_enum_v<T>)
      json[name] = name_of(value);
    else
      json[name] = value;
  });
  // A path need not be UTF-8; its odd bytes are replaced rather than losing the run.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Recipe recipe_from_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw RecipeError("recipe", "isn't a JSON object");
  Recipe recipe;
  for_each_member(recipe, [&]<class T>(const char* name, T& value) {
    const auto member = json.find(name);
    if (member == json.end() || member->is_null()) return;
    try {
      if constexpr (std::is_enum_v<T>) {
        value = value_of<T>(name, member->template get<std::string>());
      } else {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (!member->is_number_integer()) throw RecipeError(name, "must be a whole number, not " + member->dump());
        }
        value = member->template get<T>();
      }
    } catch (const nlohmann::json::exception&) {
      throw RecipeError(name, "cannot be " + member->dump());
    }
  });
  return recipe;
}

}  // namespace stepladder
