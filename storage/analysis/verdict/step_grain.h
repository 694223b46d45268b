// The resolution of step times that were read from a text: a printed clock in whole milliseconds, a rounded dt. Its
// error doesn't shrink with the number of steps as their scatter does.
#pragma once

#include <span>
#include <vector>

namespace stepladder {

// The way in which step times were read.
enum class ReadFrom {
  timer,  // each by itself: measured, or printed and perhaps rounded
  clock,  // as differences of a running clock, so that the sum of steps is as exact as two readings
};

struct StepGrain {
  double ms = 0;    // the distance between neighbouring values; 0: the values don't repeat, so it is too fine to matter
  double bias = 0;  // of a mean of many steps, at most, relative to it: what rounding may have added or taken away
  bool is_coarse = false;  // a median of single steps would be off by more than half a thousandth
};

// Finds the grain by the values themselves: those between the quartiles coincide at least three times on average. For
// steps that were rounded one by one, `bias` follows from the shares of steps at neighbouring values: Gaussian scatter
// of sigma leaves at most (grain / pi) exp(-2 pi^2 sigma^2 / grain^2) (the first term of the sawtooth's Fourier
// series), no scatter half a grain. `steps_ms`: positive and finite.
StepGrain grain_of(std::span<const double> steps_ms, ReadFrom from);

// The place of the last digit that any of these printed figures has: 0.01 of {3.28, 3.3}. 0: more digits than figures
// are printed with.
double last_digit_of(std::span<const double> figures);

// How far rounding to multiples of `grain` may have moved a mean of figures with this standard deviation: half a grain
// without scatter, at most the first term of the same series with it.
double rounding_error(double grain, double std);

// Means over blocks of neighbouring steps, long enough that a grain no longer matters, if enough blocks remain (eight);
// slow outliers are excluded from a block. Without a coarse grain: the steps themselves.
std::vector<double> resolved_steps(std::span<const double> steps_ms, const StepGrain& grain);

}  // namespace stepladder
