// Collects operands from nested lists of sizes, types and values, which arrive one after the other in any order, and
// joins them by position in `operands`. Sizes beyond the limits make an operand unknown rather than wrong.
#include "storage/traces/operand_lists.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace stepladder {
namespace {

// The number in "True" or "0.5"; missing for texts and lists.
double number_of(std::string_view text) {
  if (text == "True") return 1;
  if (text == "False") return 0;
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  return !copy.empty() && *end == '\0' && std::isfinite(number) ? number : missing;
}

}  // namespace

void OperandLists::clear() {
  operands_.clear();
  types_.clear();
  values_.clear();
  first_type_.clear();
}

void OperandLists::list_begins(int depth) {
  if (depth == 2 && operands_.size() <= most) operands_.emplace_back();
  if (depth == 2 || depth == 3) elements_ = 1;
}

void OperandLists::list_ends(int depth) {
  if (operands_.empty()) return;
  Operand& last = operands_.back();
  if (depth == 3) {
    last.sizes.clear();
    last.elements += elements_;
  }
  if (depth == 2 && !last.sizes.empty()) last.elements = elements_;
}

void OperandLists::size(std::int64_t value) {
  if (operands_.empty()) return;
  std::vector<std::int64_t>& sizes = operands_.back().sizes;
  if (sizes.size() < most_sizes) sizes.push_back(value);
  // A negative size makes no tensor.
  elements_ = value < 0 ? 2 * most_elements : elements_ * static_cast<double>(value);
}

void OperandLists::read_sizes(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') {
      list_begins(++depth);
    } else if (text[i] == ']') {
      list_ends(depth--);
    } else if (std::int64_t number = 0; depth > 1) {
      const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), number);
      if (error != std::errc()) continue;
      size(number);
      i = static_cast<std::size_t>(end - text.data()) - 1;
    }
  }
}

void OperandLists::type(std::string_view text) {
  const double bytes = value_bytes(text);
  if (first_type_.empty() && !is_missing(bytes)) first_type_ = text;
  if (types_.size() < most) types_.push_back({bytes, text.ends_with("List")});
}

void OperandLists::value(std::string_view text) {
  if (values_.size() < most) values_.push_back(number_of(text));
}

const std::vector<Operand>& OperandLists::operands() {
  if (operands_.size() > most) operands_.resize(most);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    Operand& each = operands_[i];
    if (i < values_.size()) each.number = values_[i];
    if (i >= types_.size()) continue;
    const bool is_tensor = !is_missing(types_[i].value_bytes);
    each.value_bytes = types_[i].value_bytes;
    // A tensor of no dimension has one element.
    if (is_tensor && !types_[i].is_list && each.sizes.empty()) each.elements = 1;
    if (each.sizes.size() == most_sizes) each.sizes.clear();
    if (!(each.elements <= most_elements)) {
      each.sizes.clear();
      each.value_bytes = missing;
    }
  }
  return operands_;
}

void ProductPrecision::add_kernel(std::string_view name) {
  if (has_tf32_) return;
  for (const std::string_view word : {"tf32", "s1688gemm"}) has_tf32_ = has_tf32_ || name.find(word) != name.npos;
}

std::string ProductPrecision::precision() const {
  const auto most = std::ranges::max_element(flops_, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == flops_.end()) return "";
  if (most->first == "c10::BFloat16") return "bf16";
  if (most->first == "c10::Half") return "fp16";
  if (most->first.starts_with("c10::Float8")) return "fp8";
  return most->first != "float" ? "" : has_tf32_ ? "tf32" : "fp32";
}

}  // namespace stepladder
