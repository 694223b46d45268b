// Corrects the best of several candidates, which looks better than it is because it was picked for that: how many
// others can't be distinguished from it, and what remains of its figure. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "storage/analysis/statistics.h"
#include "storage/analysis/verdict/run_spread.h"

namespace stepladder {

struct Candidate {
  double mean = missing;  // over its runs; of candidates whose mean is missing nothing is said
  std::size_t runs = 0;
};

struct PickedBest {
  std::size_t place = 0;       // among the candidates
  std::size_t of = 0;          // candidates with a mean
  std::size_t ties = 0;        // others that can't be told from it, all of them together with an error of 5 %
  double corrected = missing;  // its mean without the expected gain of the best among equal ones
  Interval ci95;               // of it
  SpreadFrom spread_from = SpreadFrom::unknown;

  bool known() const { return !is_missing(corrected); }
};

// `spread`: by how much one run's figure differs between equal candidates, in its own unit (elsewhere RunSpread is of
// logarithms). `of_runs`: the same of one candidate's runs, for the interval; larger if candidates share their seeds.
// Without the first, or with fewer than two candidates, the correction stays missing. The expected largest of n equal
// ones is that of a normal sample by Blom (1958), "Statistical Estimates and Transformed Beta-Variables".
PickedBest picked_best(std::span<const Candidate> candidates, bool higher_is_better, const RunSpread& spread,
                       const RunSpread& of_runs);

}  // namespace stepladder
