// The planned step's own small loops. Uses no torch.
#pragma once

#include <cstdint>

#include "engine/trainer/kernels/row_loops.h"

namespace stepladder {

// to = from, as float32.
void copy_rows(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t to_stride);
void copy_rows(const Bf16* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width, float* to,
               std::int64_t to_stride);

// to = the transpose of from's `columns` columns, as float32.
void copy_transposed(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                     std::int64_t to_stride);
void copy_transposed(const Bf16* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                     std::int64_t to_stride);

// to = from + bias (null: zero), rows of `width`. `from` and `to` may be the
// same.
void add_bias(const float* from, const float* bias, std::int64_t rows, std::int64_t width, float* to);
void add_bias(const float* from, const float* bias, std::int64_t rows, std::int64_t width, Bf16* to);

// sums += the rows.
void add_columns(const float* rows_from, std::int64_t rows, std::int64_t width, float* sums);
void add_columns(const Bf16* rows_from, std::int64_t rows, std::int64_t width, float* sums);

// to = a + b, or to += a.
void add(const float* a, const float* b, std::int64_t elements, float* to);
void accumulate(const float* a, std::int64_t elements, float* to);

// to = from times `factor` and, unless null, the row's of `row_factors`; rows of `width`.
void write_scaled(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width,
                  const float* row_factors, float factor, float* to, std::int64_t to_stride);
void write_scaled(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width,
                  const float* row_factors, float factor, Bf16* to, std::int64_t to_stride);

// sums[row] = the dot product of a's and b's row.
void row_products(const float* a, const float* b, std::int64_t stride, std::int64_t rows, std::int64_t width,
                  float* sums);
void row_products(const Bf16* a, const Bf16* b, std::int64_t stride, std::int64_t rows, std::int64_t width,
                  float* sums);

double sum_of_squares(const float* from, std::int64_t elements);

// One AdamW update with the operations of torch.optim.AdamW(foreach=False), in
// their order.
struct AdamWNumbers {
  float gradient_factor;
  float decay_factor;     // 1 - lr x weight decay
  float gradient_share;   // of the new average: 1 - beta1
  float square_decay;     // beta2
  float square_share;     // 1 - beta2
  float correction_sqrt;  // of the squares' bias correction
  float eps;
  float step_size;  // -lr / the averages' bias correction
};
void adamw(const AdamWNumbers& numbers, const float* gradient, std::int64_t elements, float* weight, float* average,
           float* squared_average);

}  // namespace stepladder
