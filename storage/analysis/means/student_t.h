// The normal distribution and Student's t, central and noncentral. Pure functions; any thread.
#pragma once

namespace stepladder {

double normal_cdf(double z);
// The z that a standard normal value is below with probability p (0 < p < 1).
double normal_quantile(double p);

// The probability that Student's t with `freedom` > 0 degrees of freedom is below t. Through the regularised incomplete
// beta function (DLMF 8.17.22, https://dlmf.nist.gov/8.17). Agrees with SciPy to 1e-12.
double student_t_cdf(double t, double freedom);
// The t that it is below with probability p (0 < p < 1).
double student_t_quantile(double p, double freedom);

// The probability that the ratio of two variances, estimated with so many degrees of freedom, is below f >= 0 if both
// are of one distribution (Fisher's F; DLMF 8.17.22).
double f_cdf(double f, double freedom, double freedom_below);

// The probability that (Z + noncentrality) / sqrt(V / freedom) is above t, where Z is standard normal and V chi-squared
// with `freedom` degrees of freedom: the power of a t test. Integrates over V; accurate to 1e-9.
double noncentral_t_above(double t, double freedom, double noncentrality);

}  // namespace stepladder
