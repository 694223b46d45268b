// Distributions by continued fraction, bisection and Simpson's rule rather than by tables. The small tail is the one
// that is computed, so that small probabilities keep their digits.
#include "storage/analysis/means/student_t.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepladder {
namespace {

// The continued fraction of DLMF 8.17.22, evaluated from the front (Lentz 1976, modified by Thompson & Barnett 1986).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto not_zero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double c = 1;
  double d = 1 / not_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < 10'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d);
    c = not_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d);
    c = not_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return fraction;
}

// I_x(a, b); `y` is 1 - x, which the caller knows more exactly.
double regularised_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

// The probability above t >= 0.
double upper_tail(double t, double freedom) {
  const double sum = freedom + t * t;
  if (!std::isfinite(sum)) return 0;
  return 0.5 * regularised_beta(freedom / 2, 0.5, freedom / sum, t * t / sum);
}

// The x >= 0 at which a falling tail has this probability (at most 0.5).
template <typename Tail>
double solve_tail(double probability, Tail tail) {
  double high = 1;
  while (tail(high) > probability && high < 1e300) high *= 2;
  double low = 0;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (tail(middle) > probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double f_cdf(double f, double freedom, double freedom_below) {
  const double sum = freedom * f + freedom_below;
  if (!std::isfinite(sum)) return 1;
  return regularised_beta(freedom / 2, freedom_below / 2, freedom * f / sum, freedom_below / sum);
}

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  return -solve_tail(p, [](double z) { return normal_cdf(-z); });
}

double student_t_cdf(double t, double freedom) {
  if (std::isnan(t) || std::isnan(freedom)) return std::numeric_limits<double>::quiet_NaN();
  return t < 0 ? upper_tail(-t, freedom) : 1 - upper_tail(t, freedom);
}

double student_t_quantile(double p, double freedom) {
  if (std::isnan(p) || std::isnan(freedom)) return std::numeric_limits<double>::quiet_NaN();
  const double size = solve_tail(std::min(p, 1 - p), [&](double t) { return upper_tail(t, freedom); });
  return p < 0.5 ? -size : size;
}

double noncentral_t_above(double t, double freedom, double noncentrality) {
  // s = sqrt(V / freedom) has mean about 1 and standard deviation at most 1 / sqrt(2 freedom).
  const double reach = 12 / std::sqrt(2 * freedom);
  const double low = std::max(0.0, 1 - reach);
  const double high = 1 + reach;
  const double log_scale = std::log(2.0) + 0.5 * freedom * std::log(0.5 * freedom) - std::lgamma(0.5 * freedom);
  const auto at = [&](double s) {
    const double log_density = (freedom == 1 ? 0 : (freedom - 1) * std::log(s)) - 0.5 * freedom * s * s;
    return std::exp(log_scale + log_density) * normal_cdf(noncentrality - t * s);
  };
  constexpr int panels = 8'000;  // Simpson's rule
  const double width = (high - low) / panels;
  double sum = at(low) + at(high);
  for (int i = 1; i < panels; ++i) sum += (i % 2 ? 4 : 2) * at(low + i * width);
  return std::clamp(sum * width / 3, 0.0, 1.0);
}

}  // namespace stepladder
