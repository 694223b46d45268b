#include "storage/analysis/recipe_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "storage/name_pattern.h"

namespace stepladder {
namespace {

using SortedJson = nlohmann::json;

SortedJson object_of(const std::string& text) {
  if (text.empty()) return SortedJson::object();
  SortedJson json = SortedJson::parse(text, nullptr, false);
  return json.is_object() ? json : SortedJson::object();
}

// The whole number in a value, at most 10^9, so that products of two don't overflow.
std::int64_t integer_in(const SortedJson& value) {
  constexpr std::int64_t largest = 1'000'000'000;
  return std::clamp(value.get<std::int64_t>(), -largest, largest);
}

std::int64_t integer_or(const SortedJson& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? integer_in(*found) : otherwise;
}

// The last part of a name with a path in front ("data.dataset").
std::string_view last_part(std::string_view name) {
  return name.substr(name.find_last_of("./") + 1);
}

// The value of the first of `names` in the object, with or without a path in front ("model.n_layer") or quotes around
// the number.
std::int64_t count_of(const SortedJson& object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const auto& [key, value] : object.items()) {
      if (last_part(key) != name) continue;
      const SortedJson number = value.is_string() ? SortedJson::parse(value.get<std::string>(), nullptr, false) : value;
      if (number.is_number_integer()) return std::max<std::int64_t>(integer_in(number), 0);
    }
  }
  return 0;
}

// "eval_iters 200, val_tokens 1024": the values of these names.
std::string named_values(const SortedJson& object, std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names)
    for (const auto& [key, value] : object.items())
      if (last_part(key) == name && (value.is_number() || value.is_string()))
        text += (text.empty() ? "" : ", ") + std::string(name) + " " +
                (value.is_string() ? data_name(value.get<std::string>()) : value.dump());
  return text;
}

// The data's name in a foreign recipe.
std::optional<std::string> dataset_of(const SortedJson& object) {
  for (const std::string_view name :
       {"dataset", "dataset_name", "dataset_path", "data_dir", "data_path", "train_data", "train_dataset", "train_file",
        "train_files", "train_path", "train_bin", "input_bin"})
    for (const auto& [key, value] : object.items())
      if (last_part(key) == name && value.is_string() && !value.get<std::string>().empty())
        return data_name(value.get<std::string>());
  return std::nullopt;
}

std::optional<std::string> text_of(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace

std::string data_name(std::string_view path) {
  while (path.ends_with('/') || path.ends_with('\\')) path.remove_suffix(1);
  std::size_t at = path.find_last_of("/\\");
  const std::string last = lower_case(path.substr(at + 1));
  if (at > 0 && at != path.npos && (last.starts_with("train") || last.starts_with("val")))
    at = path.find_last_of("/\\", at - 1);
  return std::string(path.substr(at + 1));
}

RecipeFacts recipe_facts(const Run& run) {
  RecipeFacts facts;
  const SortedJson recipe = object_of(run.recipe);
  facts.data = text_of(recipe, "data");
  if (!facts.data) facts.data = dataset_of(recipe);
  const auto overfit = recipe.find("overfit");
  facts.overfits = overfit != recipe.end() && overfit->is_boolean() && overfit->get<bool>();
  facts.evaluation =
      named_values(recipe, {"eval_iters", "eval_batches", "eval_tokens", "val_tokens", "val_batches", "val_max_steps",
                            "limit_val_batches", "eval_data", "eval_dataset", "val_data", "val_dataset", "val_file",
                            "val_files", "val_bin", "input_val_bin", "eval_file", "eval_path", "val_path"});
  facts.tokenizer = data_name(text_of(recipe, "tokenizer").value_or(""));
  facts.schedule = named_values(recipe, {"max_iters", "lr_decay_iters", "max_steps", "num_iterations", "train_iters",
                                         "total_steps", "num_train_steps", "num_train_epochs", "max_epochs", "epochs"});
  facts.vocab = count_of(recipe, {"vocab", "vocab_size"});
  facts.layers = count_of(recipe, {"layers", "n_layer", "n_layers", "num_layers", "num_hidden_layers"});
  facts.d_model = count_of(recipe, {"d_model", "n_embd", "hidden_size"});
  facts.heads = count_of(recipe, {"heads", "n_head", "n_heads", "num_attention_heads"});
  facts.seq = count_of(recipe, {"seq", "block_size", "seq_len", "max_seq_len", "sequence_length", "n_positions"});
  facts.grad_accum = count_of(recipe, {"grad_accum", "gradient_accumulation_steps"});
  facts.model = text_of(recipe, "model").value_or("");
  for (const char* key : {"devices", "world_size", "gpus"}) {
    const auto devices = static_cast<int>(integer_or(recipe, key, 0));
    facts.devices = std::max(facts.devices, devices);
    facts.names_devices = facts.names_devices || devices > 0;
  }
  facts.other_hardware = text_of(recipe, "other_hardware").value_or("");
  facts.fell_back = text_of(recipe, "fell_back").value_or("");
  facts.batch = count_of(recipe, {"batch", "batch_size", "train_batch_size", "micro_batch_size", "device_batch_size",
                                  "per_device_train_batch_size"});
  return facts;
}

std::map<std::string, std::string> recipe_values(const Run& run) {
  std::map<std::string, std::string> values;
  const SortedJson recipe = object_of(run.recipe);
  for (const auto& [name, value] : recipe.items())
    values[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return values;
}

bool same_recipe_but_batch(const Run& a, const Run& b) {
  const auto rest = [](const Run& run) {
    SortedJson recipe = object_of(run.recipe);
    for (const char* key :
         {"batch", "data", "grad_accum", "steps", "warmup", "eval_every", "eval_batches", "sample_every",
          "sample_tokens", "sample_prompt", "save_every", "keep", "lr", "lr_warmup", "seed"})
      recipe.erase(key);
    return recipe;
  };
  return rest(a) == rest(b);
}

}  // namespace stepladder
