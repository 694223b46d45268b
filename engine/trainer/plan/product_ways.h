// The ways in which a plan can compute its products with weights, and which of them each product takes. Uses no torch.
#pragma once

#include <string>
#include <type_traits>

#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/products.h"

namespace stepladder {

// T is the type of the products' inputs and outputs: float or Bf16. The right factor is packed first, into
// panel_elements(); ways to pack and to multiply belong together. Any thread calls any of the functions.
template <class T>
struct ProductWay {
  std::string name = "own";
  PairUnit pairs = PairUnit::none;  // with another one, the functions below are not called (pair_products.h)
  void (*pack_weight)(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                      T* packed) = pack_panels;
  void (*pack_weight_transposed)(const float* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                                 T* packed) = pack_transposed;
  void (*pack_rows)(const T* from, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                    float* packed) = pack_panels;
  void (*multiply_weight)(const Product& product, const T* packed) = multiply;
  void (*multiply_rows)(const Product& product, const float* packed) = multiply;
};

// The plan's own way that is expected to be the fastest on this CPU.
template <class T>
ProductWay<T> own_way() {
  ProductWay<T> way;
  if constexpr (std::is_same_v<T, Bf16>) {
    way.pairs = pair_unit();
    way.name = name_of(way.pairs);
  }
  return way;
}

// The products with each weight, forwards and backwards, and those that give the weights' gradients.
template <class T>
struct PlanProducts {
  ProductWay<T> attention, attention_out, fc, fc_out, head, gradient;

  static PlanProducts all_by(const ProductWay<T>& way) { return {way, way, way, way, way, way}; }
};

}  // namespace stepladder
