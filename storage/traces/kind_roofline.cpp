#include "storage/traces/kind_roofline.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "storage/analysis/roofline.h"

namespace stepladder {
namespace {

// batch products of m x k and k x n.
struct Product {
  double batch = 1, m = 0, k = 0, n = 0;
};

std::optional<Product> product_of(const std::string& shapes) {
  std::array<std::vector<double>, 2> sizes;
  std::size_t side = 0, number = 0;
  for (std::size_t i = 0; i <= shapes.size(); ++i) {
    if (i < shapes.size() && shapes[i] != 'x' && shapes[i] != ' ') continue;
    sizes[side].push_back(std::strtod(shapes.substr(number, i - number).c_str(), nullptr));
    number = i + 1;
    if (i < shapes.size() && shapes[i] == ' ' && ++side > 1) return std::nullopt;
  }
  const auto& [left, right] = sizes;
  if (right.size() < 2 || left.size() != right.size()) return std::nullopt;
  Product product{.m = left[left.size() - 2], .k = left.back(), .n = right.back()};
  for (std::size_t i = 0; i + 2 < left.size(); ++i) product.batch *= left[i];
  return product;
}

bool computes(OperatorKind kind) {
  return kind != OperatorKind::idle && kind != OperatorKind::between && kind != OperatorKind::data &&
         kind != OperatorKind::communication;
}

double bytes_per_value(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16 ? 2 : precision == Precision::fp8 ? 1 : 4;
}

void add(KindRoofline& sum, const TracedOperator& each, const Ceiling& ceiling) {
  sum.busy_ms += each.busy_ms;
  const double elements = product_elements(each.time.shapes);
  if (is_missing(each.time.flops) || is_missing(elements)) return;
  sum.known_ms += each.busy_ms;
  sum.flops = (is_missing(sum.flops) ? 0 : sum.flops) + each.time.flops;
  sum.bytes = (is_missing(sum.bytes) ? 0 : sum.bytes) + elements * each.time.calls * bytes_per_value(ceiling.precision);
}

void finish(KindRoofline& sum, const Ceiling& ceiling) {
  if (is_missing(sum.flops) || sum.known_ms <= 0) return;
  sum.tflops = sum.flops / sum.known_ms / 1e9;
  if (is_missing(ceiling.tflops) || is_missing(ceiling.bandwidth_gb_s) || sum.bytes <= 0) return;
  const double intensity = sum.flops / sum.bytes;
  sum.attainable = attainable_tflops(intensity, ceiling.tflops, ceiling.bandwidth_gb_s);
  sum.is_memory_bound = intensity < ridge_intensity(ceiling.tflops, ceiling.bandwidth_gb_s);
}

}  // namespace

double product_flops(const std::string& shapes) {
  const std::optional<Product> product = product_of(shapes);
  return product ? 2 * product->batch * product->m * product->k * product->n : missing;
}

double product_elements(const std::string& shapes) {
  const std::optional<Product> product = product_of(shapes);
  if (!product) return missing;
  const auto& [batch, m, k, n] = *product;
  return batch * (m * k + k * n + m * n);
}

Ceiling ceiling_of(const HardwareTable& table, std::string_view hardware, std::string_view precision) {
  Ceiling ceiling{.hardware = std::string(hardware), .precision = precision_from(precision)};
  const std::string measured = ceiling.hardware + " (measured here)";
  const Hardware* row = nullptr;
  for (const Hardware& each : table.all()) {
    if (each.name == measured) row = &each;
  }
  if (!row && !hardware.empty()) row = table.find(hardware);
  if (!row) return ceiling;
  if (ceiling.precision != Precision::unknown)
    ceiling.tflops = row->peak_tflops[static_cast<std::size_t>(ceiling.precision)];
  ceiling.bandwidth_gb_s = row->bandwidth_gb_s;
  ceiling.source = row->source;
  return ceiling;
}

std::vector<KindRoofline> rooflines(std::span<const TracedOperator> operators, const Ceiling& ceiling) {
  std::vector<KindRoofline> kinds;
  for (const TracedOperator& each : operators) {
    const OperatorKind kind = kind_of(each);
    if (!computes(kind) || each.busy_ms <= 0) continue;
    auto sum = std::find_if(kinds.begin(), kinds.end(), [&](const KindRoofline& known) { return known.kind == kind; });
    if (sum == kinds.end()) sum = kinds.insert(kinds.end(), KindRoofline{.kind = kind});
    add(*sum, each, ceiling);
  }
  for (KindRoofline& each : kinds) finish(each, ceiling);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const KindRoofline& a, const KindRoofline& b) { return a.busy_ms > b.busy_ms; });
  return kinds;
}

}  // namespace stepladder
