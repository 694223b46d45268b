// LibTorch's operators with the signatures of the plan's kernels (plan_kernels.h, product_ways.h). The plan calls them
// from its own threads, so each builds its tensors on borrowed memory and runs under Alone: one thread, no tape, no
// autocast.
#include "engine/trainer/library_kernels.h"

#include <torch/torch.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmath>
#include <type_traits>

namespace stepladder {
namespace library {
namespace {

// While it lives, LibTorch records nothing, casts nothing, and works on this thread alone: the plan's other threads are
// at work as well.
class Alone {
 public:
  ~Alone() {
#ifdef _OPENMP
    omp_set_num_threads(threads_);
#endif
  }
  Alone() {
#ifdef _OPENMP
    omp_set_num_threads(1);
#endif
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
#ifdef _OPENMP
  const int threads_ = omp_get_max_threads();
#endif
  const at::AutoDispatchBelowADInplaceOrView no_tape_;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast_{c10::autocast_dispatch_keyset};
};

template <class T>
at::Tensor seen(const T* at, at::IntArrayRef sizes, at::IntArrayRef strides) {
  constexpr at::ScalarType type = std::is_same_v<T, float>    ? at::kFloat
                                  : std::is_same_v<T, double> ? at::kDouble
                                  : std::is_same_v<T, Bf16>   ? at::kBFloat16
                                                              : at::kLong;
  return at::from_blob(const_cast<T*>(at), sizes, strides, at::TensorOptions(type));
}

template <class T>
at::Tensor rows_of(const T* at, std::int64_t rows, std::int64_t width) {
  return seen(at, {rows, width}, {width, 1});
}

template <class T>
at::Tensor row_of(const T* at, std::int64_t width) {
  return seen(at, {width}, {1});
}

// A packed matrix is its transpose by rows: (columns, depth).
template <class From, class To>
void pack(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, To* packed) {
  const Alone alone;
  rows_of(packed, columns, depth).copy_(seen(from, {depth, columns}, {stride, 1}).t());
}

template <class From, class To>
void pack_transpose(const From* from, std::int64_t stride, std::int64_t depth, std::int64_t columns, To* packed) {
  const Alone alone;
  rows_of(packed, columns, depth).copy_(seen(from, {columns, depth}, {stride, 1}));
}

template <class T, class Packed>
void product(const Product& p, const Packed* packed) {
  const Alone alone;
  constexpr at::ScalarType type = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  const std::int64_t depth = p.panel_depth == 0 ? p.depth : p.panel_depth;
  const at::Tensor left = seen(p.left, {p.rows, p.depth}, {p.left_row, p.left_depth}).to(type);
  const at::Tensor right = seen(packed, {p.columns, p.depth}, {depth, 1}).to(type).t();
  at::Tensor out = seen(p.out, {p.rows, p.columns}, {p.out_row, 1});
  if (type != at::kFloat) {
    const at::Tensor found = at::mm(left, right);
    p.add ? out.add_(found) : out.copy_(found);
  } else if (p.add) {
    out.addmm_(left, right);
  } else {
    at::mm_out(out, left, right);
  }
}

template <class T>
void add_norm(NormShape shape, const float* stream, const T* added, const float* added_bias, const float* weight,
              const float* bias, float eps, float* sum, T* out, float* mean, float* factor) {
  const Alone alone;
  const auto [rows, width] = shape;
  at::Tensor total = rows_of(sum, rows, width);
  at::add_out(total, rows_of(stream, rows, width), rows_of(added, rows, width));
  total.add_(row_of(added_bias, width));
  const auto [y, means, factors] =
      at::native_layer_norm(total, {width}, row_of(weight, width), row_of(bias, width), eps);
  rows_of(out, rows, width).copy_(y);
  rows_of(mean, rows, 1).copy_(means);
  rows_of(factor, rows, 1).copy_(factors);
}

template <class T>
void add_norm_backward(NormShape shape, const T* d_out, const float* later, const float* sum, const float* mean,
                       const float* factor, const float* weight, float* d_sum, T* d_added, NormSums sums) {
  const Alone alone;
  const auto [rows, width] = shape;
  const at::Tensor scale = row_of(weight, width);
  const auto [d_in, d_weight, d_bias] = at::native_layer_norm_backward(
      rows_of(d_out, rows, width).to(at::kFloat), rows_of(sum, rows, width), {width}, rows_of(mean, rows, 1),
      rows_of(factor, rows, 1), scale, scale, {true, true, true});
  at::Tensor total = rows_of(d_sum, rows, width);
  if (later) {
    at::add_out(total, d_in, rows_of(later, rows, width));
  } else {
    total.copy_(d_in);
  }
  if (d_added) rows_of(d_added, rows, width).copy_(total);
  row_of(sums.d_weight, width).add_(d_weight);
  row_of(sums.d_bias, width).add_(d_bias);
  row_of(sums.d_added_bias, width).add_(total.sum(0));
}

template <class T>
at::Tensor head_of(const HeadShape& head, const T* at, std::int64_t stride) {
  return seen(at, {1, 1, head.length, head.width}, {head.length * stride, head.width, stride, 1});
}

template <class T>
void attention(const HeadShape& head, const T* q, const T* k, const T* v, T* out, float* log_sums, float*) {
  const Alone alone;
  const auto [mixed, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
      head_of(head, q, head.stride), head_of(head, k, head.stride), head_of(head, v, head.stride), 0.0, true);
  head_of(head, out, head.out_stride).copy_(mixed);
  row_of(log_sums, head.length).copy_(sums.view({head.length}));
}

template <class T>
void attention_backward(const HeadShape& head, const HeadGradients<T>& t, float*) {
  const Alone alone;
  const auto [d_q, d_k, d_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      head_of(head, t.d_out, head.out_stride), head_of(head, t.q, head.stride), head_of(head, t.k, head.stride),
      head_of(head, t.v, head.stride), head_of(head, t.out, head.out_stride),
      seen(t.log_sums, {1, 1, head.length}, {head.length, head.length, 1}), 0.0, true);
  head_of(head, t.d_q, head.stride).copy_(d_q);
  head_of(head, t.d_k, head.stride).copy_(d_k);
  head_of(head, t.d_v, head.stride).copy_(d_v);
}

template <class T>
void gelu(T* before_then_kept, const float* bias, std::int64_t rows, std::int64_t width, T* after) {
  const Alone alone;
  at::Tensor before = rows_of(before_then_kept, rows, width), out = rows_of(after, rows, width);
  before.add_(row_of(bias, width));
  at::gelu_out(out, before, "tanh");
}

template <class T>
void gelu_backward(const T* kept, std::int64_t rows, std::int64_t width, T* gradient, float* d_bias) {
  const Alone alone;
  at::Tensor d = rows_of(gradient, rows, width);
  d.copy_(at::gelu_backward(d, rows_of(kept, rows, width), "tanh"));
  row_of(d_bias, width).add_(d.sum(0, false, at::kFloat));
}

void softmax(float* logits, std::int64_t rows, std::int64_t stride, std::int64_t vocab, const std::int64_t* targets,
             float scale, double* losses) {
  const Alone alone;
  const at::Tensor all = rows_of(logits, rows, stride), wanted = row_of(targets, rows).unsqueeze(1);
  const at::Tensor likelihoods = at::log_softmax(all.narrow(1, 0, vocab), 1);
  rows_of(losses, rows, 1).copy_(-likelihoods.gather(1, wanted));
  if (scale == 0) return;
  const at::Tensor upstream = at::zeros({rows, vocab}, at::kFloat).scatter_(1, wanted, -scale);
  all.narrow(1, 0, vocab).copy_(at::_log_softmax_backward_data(upstream, likelihoods, 1, at::kFloat));
  all.narrow(1, vocab, stride - vocab).zero_();
}

// Operation by operation, as without a fused optimiser.
void adamw(const AdamWNumbers& n, const float* gradient, std::int64_t elements, float* weight, float* average,
           float* squared_average) {
  const Alone alone;
  const at::Tensor g = row_of(gradient, elements).mul(n.gradient_factor);
  const at::Tensor m = row_of(average, elements), v = row_of(squared_average, elements);
  m.lerp_(g, n.gradient_share);
  v.mul_(n.square_decay).addcmul_(g, g, n.square_share);
  row_of(weight, elements).mul_(n.decay_factor).addcdiv_(m, v.sqrt().div_(n.correction_sqrt).add_(n.eps), n.step_size);
}

}  // namespace
}  // namespace library

template <class T>
ProductWay<T> library_products() {
  return {.name = "LibTorch",
          .pack_weight = library::pack<float, T>,
          .pack_weight_transposed = library::pack_transpose<float, T>,
          .pack_rows = library::pack<T, float>,
          .multiply_weight = library::product<T, T>,
          .multiply_rows = library::product<T, float>};
}

template <class T>
PlanKernels<T> kernels_without(const std::set<std::string>& left_out) {
  PlanKernels<T> kernels;
  if (left_out.contains("products")) kernels.products = PlanProducts<T>::all_by(library_products<T>());
  if (left_out.contains("add-norm")) {
    kernels.add_norm = library::add_norm<T>;
    kernels.add_norm_backward = library::add_norm_backward<T>;
  }
  if (left_out.contains("attention")) {
    kernels.attention = library::attention<T>;
    kernels.attention_backward = library::attention_backward<T>;
  }
  if (left_out.contains("gelu")) {
    kernels.gelu = library::gelu<T>;
    kernels.gelu_backward = library::gelu_backward<T>;
  }
  if (left_out.contains("softmax")) kernels.softmax = library::softmax;
  if (left_out.contains("adamw")) kernels.adamw = library::adamw;
  return kernels;
}

template ProductWay<float> library_products();
template ProductWay<Bf16> library_products();
template PlanKernels<float> kernels_without(const std::set<std::string>& left_out);
template PlanKernels<Bf16> kernels_without(const std::set<std::string>& left_out);

}  // namespace stepladder
