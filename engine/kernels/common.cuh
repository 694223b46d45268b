// Definitions that all kernels share. No header is included: NVRTC compiles this text where it runs, for that card and
// those shapes. Tests compile the same text for the CPU (tests/trainer/device/cuda_shim.h), which defines CUDA_SHIM.
#ifndef STEPLADDER_KERNELS_COMMON  // not `pragma once`: the shim reads it again for each type
#define STEPLADDER_KERNELS_COMMON

#ifndef CUDA_SHIM
#define KERNEL extern "C" __global__ void
#define DYNAMIC_SHARED(type, name)                                       \
  extern __shared__ __align__(16) unsigned char dynamic_shared_memory[]; \
  type* const name = reinterpret_cast<type*>(dynamic_shared_memory)
#endif

// The type of the products' factors and of the values between them.
#ifndef HALF
#define HALF 0  // 1: bf16
#endif
// Shapes that are known when a module is compiled; 0: the kernel's argument counts.
#ifndef FIXED_WIDTH
#define FIXED_WIDTH 0
#endif
#ifndef FIXED_VOCAB
#define FIXED_VOCAB 0
#endif
#ifndef FIXED_PADDED_VOCAB
#define FIXED_PADDED_VOCAB 0
#endif

using int64 = long long;

struct bfloat16 {
  unsigned short bits;
};
#if HALF
using element = bfloat16;
#else
using element = float;
#endif

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(bfloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

// Rounds to nearest, ties to even; NaN stays NaN.
__device__ inline void round_to(float x, float& to) {
  to = x;
}
__device__ inline void round_to(float x, bfloat16& to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
  const unsigned bits = __float_as_uint(x);
  to.bits = static_cast<unsigned short>(x != x ? 0x7fffu : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

__device__ inline float minus_infinity() {
  return __uint_as_float(0xff800000u);
}

// Four neighbours in memory, read and written at once.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T of[4];
};

// Columns first .. first + 3 of a row; what is beyond its width reads as 0 and is not written. Rows whose width is a
// multiple of four begin at an address that allows Four.
template <class T>
__device__ inline Four<T> load_four(const T* row, int first, int width) {
  if (width % 4 == 0 && first < width) return *reinterpret_cast<const Four<T>*>(row + first);
  Four<T> four;
  for (int i = 0; i < 4; ++i) {
    if (first + i < width) {
      four.of[i] = row[first + i];
    } else {
      round_to(0.0f, four.of[i]);
    }
  }
  return four;
}

template <class T>
__device__ inline void store_four(T* row, int first, int width, const Four<T>& four) {
  if (width % 4 == 0 && first < width) {
    *reinterpret_cast<Four<T>*>(row + first) = four;
  } else {
    for (int i = 0; i < 4; ++i)
      if (first + i < width) row[first + i] = four.of[i];
  }
}

// The same as float32.
template <class T>
__device__ inline void read_four(const T* row, int first, int width, float (&to)[4]) {
  const Four<T> four = load_four(row, first, width);
  for (int i = 0; i < 4; ++i) to[i] = to_float(four.of[i]);
}

template <class T>
__device__ inline void write_four(T* row, int first, int width, const float (&from)[4]) {
  Four<T> four;
  for (int i = 0; i < 4; ++i) round_to(from[i], four.of[i]);
  store_four(row, first, width, four);
}

// e^x, to some 2^-21, for a card without a detour around subnormal results.
__device__ inline float exp_fast(float x) {
  constexpr float log2_of_e = 1.44269504f;
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * log2_of_e));
  return power;
#else
  return exp2f(x * log2_of_e);
#endif
}

__device__ inline float warp_sum(float value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
  return value;
}

// The sums over the block's threads, whose number is a multiple of 32; every thread gets them.
template <int N>
__device__ inline void block_sum(float (&values)[N]) {
  __shared__ float of_warps[32 * N];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int k = 0; k < N; ++k) values[k] = warp_sum(values[k]);
  __syncthreads();  // everybody has read the sums before these
  if (lane == 0) {
    for (int k = 0; k < N; ++k) of_warps[warp * N + k] = values[k];
  }
  __syncthreads();
  for (int k = 0; k < N; ++k) values[k] = warp_sum(lane < warps ? of_warps[lane * N + k] : 0.0f);
}

#endif
