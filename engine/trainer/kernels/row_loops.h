// Shared by the fused kernels' loops over rows: one exponential, bf16 in memory with float32 in registers, and the
// attribute that compiles a loop once for each kind of vector unit. A file `*_rows.cpp` includes no torch, so it
// compiles in a second and contains nothing but loops.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

// The loader picks the version for the CPU that it runs on.
#if defined(__x86_64__) && defined(__linux__)
#define STEPLADDER_FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define STEPLADDER_FOR_EACH_CPU
#endif
// Functions that a version calls must be inlined into it, or they would run without vector instructions.
#define STEPLADDER_IN_LOOP inline __attribute__((always_inline))

namespace stepladder {

// The upper half of a float32, as in memory.
enum class Bf16 : std::uint16_t {};

STEPLADDER_IN_LOOP float load(float x) {
  return x;
}

STEPLADDER_IN_LOOP float load(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

STEPLADDER_IN_LOOP void store(float& to, float x) {
  to = x;
}

// Rounds to nearest, ties to even; NaN stays NaN.
STEPLADDER_IN_LOOP void store(Bf16& to, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  to = static_cast<Bf16>(x == x ? rounded : 0x7FC0U);
}

// e^x for x <= 0 within 2 ulp: x = k ln 2 + r with |r| <= ln 2 / 2, a polynomial for e^r (Cephes, expf), and k put into
// the exponent. Below -87 it is 0. No branches, so that loops around it become vector instructions.
STEPLADDER_IN_LOOP float exp_of_negative(float x) {
  const float clamped = std::max(x, -87.0F);
  const float round_by_adding = 12582912.0F;  // 1.5 x 2^23: pushes the fraction out of the mantissa
  const float k = (clamped * 1.44269504F + round_by_adding) - round_by_adding;
  const float r = (clamped - k * 0.693359375F) + k * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const float power = std::bit_cast<float>((static_cast<std::int32_t>(k) + 127) << 23);
  return x < -87.0F ? 0.0F : p * power;
}

}  // namespace stepladder
