// Finds the commit that changed a noisy figure: says what to measure next, and when to stop. Pure and deterministic, so
// the same measurements lead to the same question after a restart. One thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/records.h"

namespace stepladder {

struct BisectionLimits {
  std::size_t first_runs = 3;        // of a commit before it is judged
  std::size_t budget = 100;          // runs in all
  std::size_t most_per_commit = 24;  // then it is inconclusive
};

struct CommitFigures {
  std::vector<double> values;
  bool unusable = false;  // its command fails
  double mean() const;
};

class Bisection {
 public:
  // Commits 0 (good) to last (bad). Throws std::invalid_argument for fewer than 2.
  Bisection(std::size_t commits, BisectionLimits limits);

  void add(std::size_t commit, double value);
  void cannot_measure(std::size_t commit);

  // The commit whose figure is needed next; nothing once there is an answer.
  std::optional<std::size_t> next();

  // After next() has returned nothing: the commit that changed the figure, if one was found; else the reason why not.
  std::optional<std::size_t> found() const { return found_; }
  const std::string& reason() const { return reason_; }
  // The change is after `last_good` and not after `first_bad`.
  std::size_t last_good() const { return low_; }
  std::size_t first_bad() const { return high_; }

  const CommitFigures& figures(std::size_t commit) const { return commits_[commit]; }
  std::size_t runs() const { return runs_; }
  // mean(b) - mean(a) with its 95 % interval, from the spread of all commits together.
  double difference(std::size_t a, std::size_t b) const;
  Interval difference_ci95(std::size_t a, std::size_t b) const;

 private:
  enum class Side { unclear, low, high };

  struct Spread {
    double std = 0;
    double freedom = 0;
  };
  Spread spread() const;
  bool is_clear(double distance, double variance_factor, double quantile) const;
  bool ends_differ() const;
  Side side_of(std::size_t commit) const;
  bool may_measure(std::size_t commit) const;
  std::optional<std::size_t> fewer_of(std::size_t a, std::size_t b) const;
  std::optional<std::size_t> next_of_ends();
  std::optional<std::size_t> next_between();
  std::optional<std::size_t> confirm();
  std::optional<std::size_t> middle() const;
  std::nullopt_t give_up(std::string reason);

  const BisectionLimits limits_;
  std::vector<CommitFigures> commits_;
  std::size_t runs_ = 0;
  std::size_t low_ = 0, high_;
  std::optional<std::size_t> found_;
  std::string reason_;
};

}  // namespace stepladder
