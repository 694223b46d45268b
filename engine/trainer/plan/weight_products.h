// The planned step's products with weights: in the plan's own order of memory, by whichever instructions and kernels
// are in use (products.h, pair_products.h, plan_kernels.h). Uses no torch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/trainer/plan/arena.h"
#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/plan/pieces.h"
#include "engine/trainer/plan/plan_kernels.h"

namespace stepladder {

// The size of one task of a weight gradient: its rows and columns, and the tokens that it adds up at a time. The packed
// block of the right factor, 256 KB, stays in a core's second-level cache.
constexpr std::int64_t gradient_rows = 128, gradient_columns = 256, gradient_depth = 256;
// The distance between the left factor's rows: a power of two would put them all into a few sets of the first-level
// cache.
constexpr std::int64_t gradient_stride = gradient_depth + panel_columns;
constexpr std::int64_t gradient_scratch = gradient_depth * gradient_columns + gradient_rows * gradient_stride;
constexpr std::int64_t packed_panels = 16;  // a task of packing: so many panels
constexpr std::int64_t small_width = 256;   // up to which rows are in blocks of 64, and weights are packed once a step
// Each block of rows packs this much of a wider model's weight at a time: a copy, since weights that stay packed would
// cost memory.
constexpr std::int64_t copied_columns = 64, copied_depth = 1024;
// The same for the plan's own float32 products, which take blocks of 256 of the depth in any case: longer pieces of W's
// rows are read.
constexpr std::int64_t own_columns = 256, own_depth = 256;
static_assert(own_columns * own_depth <= copied_columns * copied_depth);

// A weight, (out, in), as products read it: for y = x W^T, and for d_x = d_y W. Null: packed where it is needed.
template <class T>
struct PackedWeight {
  std::int64_t out = 0, in = 0;
  std::int64_t across_depth = 0, along_depth = 0;  // of the panels: `in` and `out`, for pairs filled up
  T *across = nullptr, *along = nullptr;
  const float* weight = nullptr;
  const ProductWay<T>* way = nullptr;

  std::int64_t pack_tasks() const {
    const auto tasks = [](const T* packed, std::int64_t columns) {
      return packed ? Pieces{panel_count(columns), packed_panels}.count() : 0;
    };
    return tasks(across, out) + tasks(along, in);
  }
};

// Memory of the calling thread: a left factor as float32, a result before it is rounded, and panel_scratch() floats.
struct ProductScratch {
  float *left, *out, *panels;
};

// T is the type of the products' inputs and outputs. Any thread calls any of these.
template <class T>
class WeightProducts {
 public:
  // `gradient` must outlive this.
  explicit WeightProducts(const ProductWay<T>& gradient) : gradient_(gradient) {}

  // Floats for the panels of products with up to `rows` rows.
  static std::int64_t panel_scratch(std::int64_t rows) {
    return copied_columns * copied_depth + rows * copied_depth / 2;  // and a left factor that becomes bf16
  }

  // `way` must outlive the weight.
  static void place(Arena& arena, PackedWeight<T>& packed, const ProductWay<T>& way, const float* weight,
                    std::int64_t out, std::int64_t in) {
    packed.way = &way;
    packed.out = out;
    packed.in = in;
    packed.across_depth = in_pairs(way) ? pair_depth(in) : in;
    packed.along_depth = in_pairs(way) ? pair_depth(out) : out;
    packed.weight = weight;
    if (std::min(out, in) > small_width) return;
    arena.want(packed.across, panel_elements(packed.across_depth, out));
    arena.want(packed.along, panel_elements(packed.along_depth, in));
  }

  // One of its pack_tasks().
  void pack(const PackedWeight<T>& packed, std::int64_t task) const {
    const Pieces across{panel_count(packed.out), packed_panels}, along{panel_count(packed.in), packed_panels};
    if (task < across.count()) {
      const std::int64_t first = across.begin(task) * panel_columns;
      pack_across(packed, 0, packed.in, first, std::min(packed.out - first, across.size(task) * panel_columns),
                  packed.across + first * packed.across_depth);
    } else {
      const std::int64_t first = along.begin(task - across.count()) * panel_columns;
      pack_along(packed, 0, packed.out, first,
                 std::min(packed.in - first, along.size(task - across.count()) * panel_columns),
                 packed.along + first * packed.along_depth);
    }
  }

  // y = x W^T (+ bias) of `count` rows, and d_x = d_y W.
  void rows_across(const T* x, const PackedWeight<T>& weight, std::int64_t count, const float* bias, T* y,
                   const ProductScratch& scratch) const {
    const Product product{.rows = count, .columns = weight.out, .depth = weight.in, .out_row = weight.out};
    rounded(product, bias, y, scratch, [&](const Product& p) { across(x, weight.in, p, weight, 0, scratch); });
  }
  void rows_along(const T* d_y, const PackedWeight<T>& weight, std::int64_t count, T* d_x,
                  const ProductScratch& scratch) const {
    const Product product{.rows = count, .columns = weight.in, .depth = weight.out, .out_row = weight.in};
    rounded(product, nullptr, d_x, scratch, [&](const Product& p) {
      if constexpr (std::is_same_v<T, Bf16>) {
        if (in_pairs(*weight.way)) return along_pieces(pairs_of(p, d_y, weight.out), weight, 0, 0, scratch.panels);
      }
      along_pieces(with_left(p, d_y, weight.out, scratch), weight, 0, 0, scratch.panels);
    });
  }

  // Columns of y = x W^T in float32, the first of which is `column`: `product` without its left factor.
  void across(const T* x, std::int64_t x_row, const Product& product, const PackedWeight<T>& weight,
              std::int64_t column, const ProductScratch& scratch) const {
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs(*weight.way)) return across_pieces(pairs_of(product, x, x_row), weight, column, scratch.panels);
    }
    across_pieces(with_left(product, x, x_row, scratch), weight, column, scratch.panels);
  }

  // Columns of d_x = d_y W, the first of which is `column`, with a d_y in float32.
  void along(const Product& product, const PackedWeight<T>& weight, std::int64_t column, float* panels) const {
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs(*weight.way)) {
        // d_y becomes bf16 a piece of the depth at a time.
        auto* const left = reinterpret_cast<Bf16*>(panels + copied_columns * copied_depth);
        const Pieces depths{product.depth, copied_depth};
        for (std::int64_t i = 0; i < depths.count(); ++i) {
          for (std::int64_t row = 0; row < product.rows; ++row)
            add_bias(product.left + row * product.left_row + depths.begin(i), nullptr, 1, depths.size(i),
                     left + row * copied_depth);
          PairProduct piece = pairs_of(product, left, copied_depth);
          piece.depth = depths.size(i);
          piece.add = i > 0;
          along_pieces(piece, weight, depths.begin(i), column, panels);
        }
        return;
      }
    }
    along_pieces(product, weight, 0, column, panels);
  }

  // A block of a weight's gradient, product.rows x product.columns, over product.depth tokens, at most gradient_rows x
  // gradient_columns and gradient_depth: `d_out` transposed times `in`.
  template <class Left>
  void gradient(const Left* d_out, std::int64_t d_out_stride, const T* in, std::int64_t in_stride,
                const Product& product, float* scratch) const {
    float* const left = scratch + gradient_depth * gradient_columns;
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs(gradient_)) {
        auto* const panels = reinterpret_cast<Bf16*>(scratch);
        auto* const turned = reinterpret_cast<Bf16*>(left);
        pack_pairs(in, in_stride, product.depth, product.columns, panels);
        transpose_to_half(d_out, d_out_stride, product.depth, product.rows, turned, gradient_depth);
        return multiply(pairs_of(product, turned, gradient_depth), panels, gradient_.pairs);
      }
    }
    gradient_.pack_rows(in, in_stride, product.depth, product.columns, scratch);
    copy_transposed(d_out, d_out_stride, product.depth, product.rows, left, gradient_stride);
    Product turned = product;
    turned.left = left;
    turned.left_row = gradient_stride;
    gradient_.multiply_rows(turned, scratch);
  }

 private:
  static PairProduct pairs_of(const Product& p, const Bf16* left, std::int64_t left_row) {
    return {.rows = p.rows,
            .columns = p.columns,
            .depth = p.depth,
            .left = left,
            .left_row = left_row,
            .out = p.out,
            .out_row = p.out_row,
            .add = p.add};
  }

  static Product with_left(Product product, const T* left, std::int64_t left_row, const ProductScratch& scratch) {
    if constexpr (std::is_same_v<T, float>) {
      product.left = left;
      product.left_row = left_row;
    } else {
      copy_rows(left, left_row, product.rows, product.depth, scratch.left, product.depth);
      product.left = scratch.left;
      product.left_row = product.depth;
    }
    return product;
  }

  // Multiplies into y if that is float32, else into scratch memory, and adds the bias (null: zero).
  template <class Multiply>
  static void rounded(Product product, const float* bias, T* y, const ProductScratch& scratch,
                      const Multiply& multiply_with) {
    if constexpr (std::is_same_v<T, float>) {
      product.out = y;
      multiply_with(product);
      if (bias) add_bias(y, bias, product.rows, product.columns, y);
    } else {
      product.out = scratch.out;
      multiply_with(product);
      add_bias(scratch.out, bias, product.rows, product.columns, y);
    }
  }

  // W^T's and W's rows [k, k + depth) and columns [first, first + columns).
  void pack_across(const PackedWeight<T>& weight, std::int64_t k, std::int64_t depth, std::int64_t first,
                   std::int64_t columns, T* to) const {
    const float* const from = weight.weight + first * weight.in + k;
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs(*weight.way)) return pack_pairs_transposed(from, weight.in, depth, columns, to);
    }
    weight.way->pack_weight_transposed(from, weight.in, depth, columns, to);
  }
  void pack_along(const PackedWeight<T>& weight, std::int64_t k, std::int64_t depth, std::int64_t first,
                  std::int64_t columns, T* to) const {
    const float* const from = weight.weight + k * weight.in + first;
    if constexpr (std::is_same_v<T, Bf16>) {
      if (in_pairs(*weight.way)) return pack_pairs(from, weight.in, depth, columns, to);
    }
    weight.way->pack_weight(from, weight.in, depth, columns, to);
  }

  static void multiply_packed(const Product& product, const T* packed, const ProductWay<T>& way) {
    way.multiply_weight(product, packed);
  }
  static void multiply_packed(const PairProduct& product, const Bf16* packed, const ProductWay<T>& way) {
    multiply(product, packed, way.pairs);
  }

  template <class AnyProduct>
  void across_pieces(const AnyProduct& product, const PackedWeight<T>& weight, std::int64_t column,
                     float* panels) const {
    if (weight.across) return multiply_packed(product, weight.across + column * weight.across_depth, *weight.way);
    in_pieces(product, *weight.way, panels,
              [&](std::int64_t k, std::int64_t depth, std::int64_t first, std::int64_t columns, T* to) {
                pack_across(weight, k, depth, column + first, columns, to);
              });
  }

  // `first`: of the depth.
  template <class AnyProduct>
  void along_pieces(const AnyProduct& product, const PackedWeight<T>& weight, std::int64_t first, std::int64_t column,
                    float* panels) const {
    if (weight.along) {
      AnyProduct whole = product;
      whole.panel_depth = weight.out;
      return multiply_packed(whole, weight.along + column * weight.along_depth + first * panel_columns, *weight.way);
    }
    in_pieces(product, *weight.way, panels,
              [&](std::int64_t k, std::int64_t depth, std::int64_t i, std::int64_t columns, T* to) {
                pack_along(weight, first + k, depth, column + i, columns, to);
              });
  }

  // The product in pieces, for each of which pack(first of the depth, depth, first column, columns, to) packs the right
  // factor.
  template <class AnyProduct, class Pack>
  void in_pieces(const AnyProduct& product, const ProductWay<T>& way, float* panels, const Pack& pack) const {
    T* const packed = reinterpret_cast<T*>(panels);
    const bool own = !in_pairs(way) && way.multiply_weight == ProductWay<T>{}.multiply_weight;
    const Pieces columns{product.columns, own ? own_columns : copied_columns},
        depths{product.depth, own ? own_depth : copied_depth};
    for (std::int64_t i = 0; i < columns.count(); ++i) {
      for (std::int64_t k = 0; k < depths.count(); ++k) {
        pack(depths.begin(k), depths.size(k), columns.begin(i), columns.size(i), packed);
        AnyProduct piece = product;
        piece.columns = columns.size(i);
        piece.depth = depths.size(k);
        piece.left += depths.begin(k);
        piece.out += columns.begin(i);
        piece.add = product.add || k > 0;
        multiply_packed(piece, packed, way);
      }
    }
  }

  static bool in_pairs(const ProductWay<T>& way) { return std::is_same_v<T, Bf16> && way.pairs != PairUnit::none; }

  const ProductWay<T>& gradient_;
};

}  // namespace stepladder
