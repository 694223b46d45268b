// The few functions and numbers of cuBLASLt that lt_products.cpp uses, so that it builds without CUDA's headers and its
// tests run without a GPU. engine/trainer/cuda/lt_library.cpp compares the numbers with NVIDIA's header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace stepladder::lt {

using Handle = void*;
using Descriptor = void*;  // of a product, a matrix's layout or a preference
using Status = int;        // 0: done

enum Type : int { float32 = 0, bfloat16 = 14 };               // cudaDataType
enum Compute : int { in_float32 = 68, in_tf32 = 77 };         // cublasComputeType_t
enum Transpose : std::int32_t { as_is = 0, transposed = 1 };  // cublasOperation_t
enum Attribute : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias_pointer = 8,
  aux_pointer = 11,
  aux_ld = 12,
  bias_type = 26
};
enum Preference : int { workspace_bytes = 1, reduction_schemes = 3 };
// How partial sums of a product that is cut along k are added up.
enum ReductionSchemes : std::uint32_t { in_compute_type = 2, any_scheme = 7 };
enum Epilogue : std::uint32_t {
  plain = 1,
  bias = 4,
  gelu_aux_bias = 32 | 128 | 4,
  dgelu_bias_gradient = 64 | 128 | 16,
  bias_gradient_b = 512,
};

struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

// Named as in cublasLt.h, without "cublasLt".
struct Api {
  Status (*MatmulDescCreate)(Descriptor*, int compute, int scale_type);
  Status (*MatmulDescSetAttribute)(Descriptor, int attribute, const void* value, std::size_t bytes);
  Status (*MatmulDescDestroy)(Descriptor);
  Status (*MatrixLayoutCreate)(Descriptor*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld);
  Status (*MatrixLayoutDestroy)(Descriptor);
  Status (*MatmulPreferenceCreate)(Descriptor*);
  Status (*MatmulPreferenceSetAttribute)(Descriptor, int attribute, const void* value, std::size_t bytes);
  Status (*MatmulPreferenceDestroy)(Descriptor);
  Status (*MatmulAlgoGetHeuristic)(Handle, Descriptor, Descriptor a, Descriptor b, Descriptor c, Descriptor d,
                                   Descriptor preference, int requested, Heuristic* results, int* returned);
  // Writes only the workspace of the result.
  Status (*MatmulAlgoCheck)(Handle, Descriptor, Descriptor a, Descriptor b, Descriptor c, Descriptor d,
                            const Algorithm*, Heuristic* result);
  Status (*Matmul)(Handle, Descriptor, const void* alpha, const void* a, Descriptor, const void* b, Descriptor,
                   const void* beta, const void* c, Descriptor, void* d, Descriptor, const Algorithm*, void* workspace,
                   std::size_t workspace_bytes, void* stream);
};

// The library and the device on which it runs.
struct Library {
  Api api{};
  std::string machine;  // what timings and algorithms depend on: the card, and the versions of library and driver
  std::function<Handle()> handle;
  std::function<void*()> stream;    // the calling thread's current one
  std::function<bool()> capturing;  // whether that stream is being captured, so that nothing may wait
  // The milliseconds that the device takes for what `work` queues; waits for it.
  std::function<double(const std::function<void()>& work)> time_ms;
};

}  // namespace stepladder::lt
