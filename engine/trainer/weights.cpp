// Translates between the model's tensors and files: transposes linear weights stored as (in, out), and handles tables
// whose row count differs from the model's. load_model reads and checks all tensors before it changes one.
#include "engine/trainer/weights.h"

#include "engine/architecture.h"

namespace stepladder {
namespace {

TensorType type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return TensorType::f32;
    case at::kDouble:
      return TensorType::f64;
    case at::kBFloat16:
      return TensorType::bf16;
    case at::kHalf:
      return TensorType::f16;
    case at::kLong:
      return TensorType::i64;
    case at::kInt:
      return TensorType::i32;
    case at::kByte:
      return TensorType::u8;
    default:
      throw DataError("tensor files cannot store the type " + std::string(c10::toString(type)));
  }
}

bool is_linear_weight(const std::string& name) {
  return name.starts_with("h.") &&
         (name.ends_with(".c_attn.weight") || name.ends_with(".c_proj.weight") || name.ends_with(".c_fc.weight"));
}

bool has_vocabulary_rows(const std::string& name) {
  return name == "wte.weight" || name == "lm_head.weight";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ")";
}

// Reads the file's tensor in the model's layout: (out, in), float32, on the CPU. `rows` is the number that the model
// uses.
at::Tensor read_weight(const WeightsFile& file, const TensorInfo& info, const at::Tensor& parameter,
                       std::int64_t rows) {
  std::vector<std::int64_t> shape = info.shape;
  if (info.in_out && shape.size() == 2) std::swap(shape[0], shape[1]);
  std::vector<std::int64_t> wanted = parameter.sizes().vec();
  wanted[0] = rows;
  const bool positions = info.name == "wpe.weight" && shape.size() == 2 && shape[0] > wanted[0];
  if (positions) wanted[0] = shape[0];
  if (shape != wanted) {
    throw DataError(file.name() + " belongs to another model: its " + info.name + " is " + shape_text(shape) +
                    ", the model's " + shape_text(wanted));
  }
  const std::vector<float> values = file.read_f32(info);
  const at::Tensor stored = at::from_blob(const_cast<float*>(values.data()), info.shape, at::kFloat);
  return (info.in_out ? stored.t() : stored).narrow(0, 0, rows).clone();
}

}  // namespace

void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> plain;  // owns the bytes of the views
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    plain.push_back(tensor.detach().cpu().contiguous());
    const auto* const bytes = static_cast<const std::byte*>(plain.back().const_data_ptr());
    views.push_back({name,
                     type_of(tensor.scalar_type()),
                     tensor.sizes().vec(),
                     {bytes, static_cast<std::size_t>(plain.back().nbytes())}});
  }
  write_safetensors(file, views, metadata);
}

void write_model(const std::filesystem::path& file, const NamedTensors& parameters, const Recipe& recipe) {
  NamedTensors stored;
  for (const auto& [name, tensor] : parameters) {
    at::Tensor values = tensor.detach();
    if (is_linear_weight(name)) values = values.t();
    if (has_vocabulary_rows(name)) values = values.narrow(0, 0, recipe.vocab);
    stored.emplace_back(name == "lm_head.weight" ? name : "transformer." + name, values);
  }
  write_tensors(file, stored, {{"format", "pt"}, {"n_head", std::to_string(recipe.heads)}});
}

namespace {

void require_gpt2(const Recipe& recipe, const WeightsFile& file) {
  const Gpt2Shape shape = file.gpt2_shape();
  if (shape.layers != recipe.layers) {
    throw DataError(file.name() + " belongs to another model: it has " + std::to_string(shape.layers) + " layers (h." +
                    std::to_string(shape.layers - 1) + ".ln_1.weight is its last), the model has " +
                    std::to_string(recipe.layers));
  }
  if (shape.tied_head != recipe.tied_head) {
    throw DataError(file.name() + " belongs to another model: " +
                    (shape.tied_head ? "it has no lm_head.weight, and the model's head is not tied"
                                     : "it has an lm_head.weight, and the model's head is tied"));
  }
}

}  // namespace

void load_model(Gpt& model, const Recipe& recipe, const WeightsFile& file) {
  if (architecture_of(recipe).is_gpt2()) require_gpt2(recipe, file);
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // all are read before one is changed
  for (auto& [name, parameter] : named_parameters(model)) {
    const TensorInfo& info = file.tensor(name);
    const std::int64_t rows = has_vocabulary_rows(name) ? recipe.vocab : parameter.size(0);
    copies.emplace_back(parameter.detach().narrow(0, 0, rows), read_weight(file, info, parameter, rows));
  }
  const at::NoGradGuard no_grad;
  for (auto& [place, values] : copies) place.copy_(values);
}

at::Tensor read_tensor(const WeightsFile& file, const std::string& name, const at::Tensor& like) {
  const TensorInfo& info = file.tensor(name);
  std::vector<std::int64_t> wanted = like.sizes().vec();
  const bool fewer_rows = info.shape.size() == wanted.size() && !wanted.empty() && info.shape[0] < wanted[0];
  if (fewer_rows) wanted[0] = info.shape[0];
  if (info.shape != wanted || info.type != type_of(like.scalar_type())) {
    throw DataError(file.name() + " belongs to another model: its " + name + " is " +
                    std::string(to_string(info.type)) + " " + shape_text(info.shape) + ", the run's " +
                    shape_text(wanted));
  }
  at::Tensor values = at::empty(wanted, like.options().device(at::kCPU).requires_grad(false));
  file.read(info, {static_cast<std::byte*>(values.mutable_data_ptr()), static_cast<std::size_t>(values.nbytes())});
  return values;
}

}  // namespace stepladder
