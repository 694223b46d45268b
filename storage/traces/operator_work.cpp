// The least FLOPs and bytes of operators: `rules` lists those that do work themselves, by name and kind of result. An
// operator that calls another one in the list must not be in it, or the work counts twice. Unknown stays `missing`, so
// rooflines claim nothing.
#include "storage/traces/operator_work.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace stepladder {
namespace {

// The bytes that are moved besides the operands, each of which is read or overwritten once.
enum class Result {
  none,               // a sum, or one of the operands is overwritten
  largest,            // a tensor like the largest operand
  first,              // the first operand was read, and is written
  all,                // as much as the operands
  rows,               // of the first operand only some rows are read and written: one for each number in the third
  two,                // the second operand too is written: a momentum
  moments,            // as `first`, and both of Adam's moments
  product,            // of matrices; `at` is the left one
  attention,          // like the query; `at` is the query
  attention_backward  // like query, key and value
};

struct Rule {
  std::string_view name;
  Result result;
  std::size_t at = 0;
  std::size_t causal = 0;                      // the argument that says so
  bool tokens_are_outer = false;               // of attention: (B, T, H, D) instead of (B, H, T, D)
  std::size_t window = 0;                      // the argument with the earlier tokens that each sees; negative: all
  std::size_t packed_from = 0, packed_to = 0;  // with a tensor among these, the sequences' lengths aren't known
};

constexpr std::array rules{
    Rule{"mm", Result::product},
    Rule{"bmm", Result::product},
    Rule{"addmm", Result::product, 1},
    Rule{"baddbmm", Result::product, 1},
    Rule{"_scaled_mm", Result::product},

    Rule{"_scaled_dot_product_flash_attention_for_cpu", Result::attention, 0, 4},
    Rule{"_scaled_dot_product_flash_attention_for_cpu_backward", Result::attention_backward, 1, 7},
    Rule{"_flash_attention_forward", Result::attention, 0, 8, true},
    Rule{"_flash_attention_backward", Result::attention_backward, 1, 11, true},
    Rule{"_efficient_attention_forward", Result::attention, 0, 9, true},
    Rule{"_efficient_attention_backward", Result::attention_backward, 1, 14, true},
    Rule{"_cudnn_attention_forward", Result::attention, 0, 10},
    Rule{"_cudnn_attention_backward", Result::attention_backward, 1, 14},
    Rule{"_scaled_dot_product_cudnn_attention", Result::attention, 0, 6},
    Rule{"_scaled_dot_product_cudnn_attention_backward", Result::attention_backward, 1, 14},

    Rule{"flash_attn::_flash_attn_forward", Result::attention, 0, 5, true, 6},
    Rule{"flash_attn::_flash_attn_backward", Result::attention_backward, 1, 11, true, 12},
    Rule{"flash_attn_3::fwd", Result::attention, 0, 24, true, 25, 3, 15},
    Rule{"flash_attn_3::bwd", Result::attention_backward, 1, 16, true, 17, 9, 13},

    Rule{"native_layer_norm", Result::largest},
    Rule{"native_layer_norm_backward", Result::largest},
    Rule{"_fused_rms_norm", Result::largest},
    Rule{"_fused_rms_norm_backward", Result::largest},
    Rule{"_softmax", Result::largest},
    Rule{"_softmax_backward_data", Result::largest},
    Rule{"_log_softmax", Result::largest},
    Rule{"_log_softmax_backward_data", Result::largest},
    Rule{"gelu", Result::largest},
    Rule{"gelu_backward", Result::largest},
    Rule{"relu", Result::largest},
    Rule{"silu", Result::largest},
    Rule{"silu_backward", Result::largest},
    Rule{"tanh", Result::largest},
    Rule{"tanh_backward", Result::largest},
    Rule{"threshold_backward", Result::largest},

    Rule{"add", Result::largest},
    Rule{"sub", Result::largest},
    Rule{"mul", Result::largest},
    Rule{"div", Result::largest},
    Rule{"pow", Result::largest},
    Rule{"neg", Result::largest},
    Rule{"exp", Result::largest},
    Rule{"sqrt", Result::largest},
    Rule{"rsqrt", Result::largest},
    Rule{"sin", Result::largest},
    Rule{"cos", Result::largest},
    Rule{"erf", Result::largest},
    Rule{"where", Result::largest},
    Rule{"add_", Result::first},
    Rule{"sub_", Result::first},
    Rule{"mul_", Result::first},
    Rule{"div_", Result::first},
    Rule{"lerp_", Result::first},
    Rule{"addcmul_", Result::first},
    Rule{"addcdiv_", Result::first},
    Rule{"relu_", Result::first},
    Rule{"masked_fill_", Result::first},
    Rule{"sum", Result::none},
    Rule{"mean", Result::none},
    Rule{"linalg_vector_norm", Result::none},

    Rule{"copy_", Result::none},
    Rule{"fill_", Result::none},
    Rule{"zero_", Result::none},
    Rule{"cat", Result::all},
    Rule{"index_select", Result::rows},
    Rule{"embedding_dense_backward", Result::largest},

    Rule{"_foreach_norm", Result::none},
    Rule{"_foreach_add", Result::largest},
    Rule{"_foreach_mul", Result::largest},
    Rule{"_foreach_div", Result::largest},
    Rule{"_foreach_sqrt", Result::largest},
    Rule{"_foreach_neg", Result::largest},
    Rule{"_foreach_add_", Result::first},
    Rule{"_foreach_sub_", Result::first},
    Rule{"_foreach_mul_", Result::first},
    Rule{"_foreach_div_", Result::first},
    Rule{"_foreach_sqrt_", Result::first},
    Rule{"_foreach_lerp_", Result::first},
    Rule{"_foreach_addcmul_", Result::first},
    Rule{"_foreach_addcdiv_", Result::first},
    Rule{"_fused_adam_", Result::moments},
    Rule{"_fused_adamw_", Result::moments},
    Rule{"_fused_sgd_", Result::two}};

constexpr std::string_view aten = "aten::";

const Rule* rule_of(std::string_view name) {
  if (name.starts_with(aten))
    name.remove_prefix(aten.size());
  else if (name.find("::") == std::string_view::npos)
    return nullptr;
  const auto* const found = std::ranges::find(rules, name, &Rule::name);
  return found == rules.end() ? nullptr : found;
}

double bytes_of(const Operand& operand) {
  return operand.elements > 0 ? operand.elements * operand.value_bytes : 0;
}

// The operands by number, for rules; operands that don't exist are empty.
class Arguments {
 public:
  explicit Arguments(std::span<const Operand> operands) : operands_(operands) {}

  const Operand& operator[](std::size_t i) const { return i < operands_.size() ? operands_[i] : none_; }
  double bytes(std::size_t i) const { return bytes_of((*this)[i]); }
  double sum() const {
    double bytes = 0;
    for (const Operand& each : operands_) bytes += bytes_of(each);
    return bytes;
  }
  double largest() const {
    double bytes = 0;
    for (const Operand& each : operands_) bytes = std::max(bytes, bytes_of(each));
    return bytes;
  }

 private:
  const std::span<const Operand> operands_;
  const Operand none_;
};

// batch products of m x k and k x n.
struct Product {
  double batch = 1, m = 0, k = 0, n = 0;
};

std::optional<Product> product_of(const Operand& left, const Operand& right) {
  const std::size_t sides = left.sizes.size();
  if (sides < 2 || sides > 3 || right.sizes.size() != sides) return std::nullopt;
  if (left.sizes[sides - 1] != right.sizes[sides - 2] || left.sizes[0] < 0 || right.sizes[sides - 1] < 0)
    return std::nullopt;
  Product product{.m = static_cast<double>(left.sizes[sides - 2]),
                  .k = static_cast<double>(left.sizes[sides - 1]),
                  .n = static_cast<double>(right.sizes[sides - 1])};
  if (sides == 3) product.batch = static_cast<double>(left.sizes[0]);
  return product;
}

Work work_of_product(const Arguments& arguments, std::size_t at) {
  const std::optional<Product> product = product_of(arguments[at], arguments[at + 1]);
  if (!product) return {};
  const auto& [batch, m, k, n] = *product;
  double read = 0;  // a bias too, but not an argument for the result
  for (std::size_t i = 0; i <= at + 1; ++i) read += arguments.bytes(i);
  return {2 * batch * m * k * n, read + batch * m * n * arguments[at].value_bytes};
}

// The share of all pairs of tokens that a query's attention computes; missing: not known.
double share_of_pairs(const Arguments& arguments, const Rule& rule, double queries, double keys) {
  const double causal = arguments[rule.causal].number;
  const bool is_causal = queries == keys && (is_missing(causal) || causal > 0);
  const double window = rule.window > 0 ? arguments[rule.window].number : missing;
  if (is_missing(window) || window < 0 || window + 1 >= keys) return is_causal ? 0.5 : 1;
  return is_causal ? (keys * (window + 1) - window * (window + 1) / 2) / (keys * keys) : missing;
}

Work work_of_attention(const Arguments& arguments, const Rule& rule) {
  const Operand &query = arguments[rule.at], &key = arguments[rule.at + 1], &value = arguments[rule.at + 2];
  if (query.sizes.size() != 4 || key.sizes.size() != 4) return {};
  const std::size_t tokens = rule.tokens_are_outer ? 1 : 2;
  const auto queries = static_cast<double>(query.sizes[tokens]), keys = static_cast<double>(key.sizes[tokens]);
  for (std::size_t i = rule.packed_from; i < rule.packed_to; ++i) {
    if (arguments[i].elements > 0) return {};
  }
  const double share = share_of_pairs(arguments, rule, queries, keys);
  const double per_pair = rule.result == Result::attention ? 4 : 10;
  const double written =
      rule.result == Result::attention ? bytes_of(query) : bytes_of(query) + bytes_of(key) + bytes_of(value);
  return {per_pair * query.elements * keys * share, arguments.sum() + written};
}

double bytes_of_rows(const Arguments& arguments) {
  const Operand &table = arguments[0], &chosen = arguments[2];
  if (table.sizes.empty() || table.sizes.front() <= 0) return missing;
  const double row = bytes_of(table) / static_cast<double>(table.sizes.front());
  return 2 * chosen.elements * row + bytes_of(chosen);
}

Work by_rule(const Rule& rule, const Arguments& arguments) {
  const bool overwrites = rule.result == Result::first || rule.result == Result::two || rule.result == Result::moments;
  if (overwrites && arguments.bytes(0) == 0) return {};  // a list whose tensors the trace doesn't describe
  switch (rule.result) {
    case Result::product:
      return work_of_product(arguments, rule.at);
    case Result::attention:
    case Result::attention_backward:
      return work_of_attention(arguments, rule);
    case Result::rows:
      return {missing, bytes_of_rows(arguments)};
    case Result::none:
      return {missing, arguments.sum()};
    case Result::largest:
      return {missing, arguments.sum() + arguments.largest()};
    case Result::first:
      return {missing, arguments.sum() + arguments.bytes(0)};
    case Result::all:
      return {missing, 2 * arguments.sum()};
    case Result::two:
      return {missing, arguments.sum() + arguments.bytes(0) + arguments.bytes(2)};
    case Result::moments:
      return {missing, arguments.sum() + arguments.bytes(0) + arguments.bytes(2) + arguments.bytes(3)};
  }
  return {};
}

// Replaces 0 by `missing`: an operator without operands, or one whose operands don't determine its work. Also more than
// any device does in a day.
Work known(Work work) {
  constexpr double most = 1e24;
  if (!(work.flops > 0 && work.flops < most)) work.flops = missing;
  if (!(work.bytes > 0 && work.bytes < most)) work.bytes = missing;
  return work;
}

}  // namespace

Work& Work::operator+=(const Work& more) {
  if (!is_missing(more.flops)) flops = (is_missing(flops) ? 0 : flops) + more.flops;
  if (!is_missing(more.bytes)) bytes = (is_missing(bytes) ? 0 : bytes) + more.bytes;
  return *this;
}

Work Work::operator*(double factor) const {
  return {is_missing(flops) ? missing : flops * factor, is_missing(bytes) ? missing : bytes * factor};
}

Work work_of(std::string_view name, std::span<const Operand> operands) {
  const Arguments arguments(operands);
  if (name.starts_with("plan::") || name.starts_with("stepladder::"))
    return known({arguments[0].number, arguments[1].number});
  if (name.starts_with("triton_")) return known({missing, arguments.sum()});
  const Rule* const rule = rule_of(name);
  return rule ? known(by_rule(*rule, arguments)) : Work{};
}

std::string product_shapes(std::string_view name, std::span<const Operand> operands) {
  const Rule* const rule = rule_of(name);
  const Arguments arguments(operands);
  if (!rule || rule->result != Result::product || !product_of(arguments[rule->at], arguments[rule->at + 1])) return "";
  std::string text;
  for (const std::size_t i : {rule->at, rule->at + 1}) {
    if (!text.empty()) text += ' ';
    for (std::size_t side = 0; side < arguments[i].sizes.size(); ++side)
      text += (side > 0 ? "x" : "") + std::to_string(arguments[i].sizes[side]);
  }
  return text;
}

double value_bytes(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, double>, 20> types{{{"float", 4},
                                                                       {"double", 8},
                                                                       {"c10::BFloat16", 2},
                                                                       {"c10::Half", 2},
                                                                       {"TensorList", 4},
                                                                       {"long int", 8},
                                                                       {"long", 8},
                                                                       {"int", 4},
                                                                       {"short int", 2},
                                                                       {"short", 2},
                                                                       {"signed char", 1},
                                                                       {"unsigned char", 1},
                                                                       {"bool", 1},
                                                                       {"c10::complex<float>", 8},
                                                                       {"c10::Float8_e4m3fn", 1},
                                                                       {"c10::Float8_e5m2", 1},
                                                                       {"c10::Float8_e4m3fnuz", 1},
                                                                       {"c10::Float8_e5m2fnuz", 1},
                                                                       {"GenericList", 4},
                                                                       {"long long", 8}}};
  const auto* const found = std::ranges::find_if(types, [&](const auto& each) { return each.first == type; });
  return found == types.end() ? missing : found->second;
}

}  // namespace stepladder
