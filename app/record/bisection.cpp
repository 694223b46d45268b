// Decides which commit to measure next: first both ends until they differ clearly, then the middle, then both sides of
// the change once more. Every decision is made again from all figures so far, so a restart asks the same. Quantiles are
// stricter than 95 %, since each is judged several times.
#include "app/record/bisection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "storage/analysis/means/student_t.h"

namespace stepladder {
namespace {

// Each judgement is made several times as runs arrive, so it is stricter than 95 %. That there is a change at all, and
// where, is looked at most often.
constexpr double side_quantile = 0.995;
constexpr double change_quantile = 0.9995;
constexpr double interval_quantile = 0.975;

double count(const CommitFigures& commit) {
  return static_cast<double>(commit.values.size());
}

}  // namespace

double CommitFigures::mean() const {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Bisection::Bisection(std::size_t commits, BisectionLimits limits)
    : limits_(limits), commits_(commits), high_(commits - 1) {
  if (commits < 2) throw std::invalid_argument("a bisection needs two commits");
}

void Bisection::add(std::size_t commit, double value) {
  commits_[commit].values.push_back(value);
  ++runs_;
}

void Bisection::cannot_measure(std::size_t commit) {
  commits_[commit].unusable = true;
  ++runs_;
}

// One run varies as much at each commit, so the spread is estimated from all of them.
Bisection::Spread Bisection::spread() const {
  double squares = 0, freedom = 0;
  for (const CommitFigures& commit : commits_) {
    if (commit.unusable || commit.values.size() < 2) continue;
    const double mean = commit.mean();
    for (const double value : commit.values) squares += (value - mean) * (value - mean);
    freedom += count(commit) - 1;
  }
  return {freedom > 0 ? std::sqrt(squares / freedom) : 0, freedom};
}

// True if a distance between means is beyond chance; its variance is that of one run times the factor.
bool Bisection::is_clear(double distance, double variance_factor, double quantile) const {
  const Spread noise = spread();
  if (noise.freedom < 1) return false;
  if (noise.std == 0) return distance != 0;
  return std::abs(distance) > student_t_quantile(quantile, noise.freedom) * noise.std * std::sqrt(variance_factor);
}

double Bisection::difference(std::size_t a, std::size_t b) const {
  return commits_[b].mean() - commits_[a].mean();
}

Interval Bisection::difference_ci95(std::size_t a, std::size_t b) const {
  const Spread noise = spread();
  if (noise.freedom < 1 || commits_[a].values.empty() || commits_[b].values.empty()) return {};
  const double half = student_t_quantile(interval_quantile, noise.freedom) * noise.std *
                      std::sqrt(1 / count(commits_[a]) + 1 / count(commits_[b]));
  return {difference(a, b) - half, difference(a, b) + half};
}

bool Bisection::ends_differ() const {
  const CommitFigures& good = commits_.front();
  const CommitFigures& bad = commits_.back();
  return is_clear(bad.mean() - good.mean(), 1 / count(good) + 1 / count(bad), change_quantile);
}

// The side of the middle between both ends that the commit is on.
Bisection::Side Bisection::side_of(std::size_t commit) const {
  const CommitFigures& good = commits_.front();
  const CommitFigures& bad = commits_.back();
  const double beyond = commits_[commit].mean() - (good.mean() + bad.mean()) / 2;
  if (!is_clear(beyond, 1 / count(commits_[commit]) + 1 / (4 * count(good)) + 1 / (4 * count(bad)), side_quantile))
    return Side::unclear;
  return (beyond > 0) == (bad.mean() > good.mean()) ? Side::high : Side::low;
}

bool Bisection::may_measure(std::size_t commit) const {
  return runs_ < limits_.budget && commits_[commit].values.size() < limits_.most_per_commit;
}

std::optional<std::size_t> Bisection::fewer_of(std::size_t a, std::size_t b) const {
  const std::size_t commit = commits_[b].values.size() < commits_[a].values.size() ? b : a;
  return may_measure(commit) ? std::optional(commit) : std::nullopt;
}

std::nullopt_t Bisection::give_up(std::string reason) {
  if (runs_ >= limits_.budget) reason += "; the budget of " + std::to_string(limits_.budget) + " runs is used up";
  reason_ = std::move(reason);
  return std::nullopt;
}

std::optional<std::size_t> Bisection::next() {
  low_ = 0;
  high_ = commits_.size() - 1;
  found_.reset();
  reason_.clear();
  if (commits_.front().unusable || commits_.back().unusable)
    return give_up(std::string("the command fails at the ") + (commits_.front().unusable ? "good" : "bad") + " commit");
  if (const auto end = next_of_ends()) return end;
  return reason_.empty() ? next_between() : std::nullopt;
}

std::optional<std::size_t> Bisection::next_of_ends() {
  const std::size_t last = commits_.size() - 1;
  const std::size_t measured = std::min(commits_.front().values.size(), commits_[last].values.size());
  if (measured >= limits_.first_runs && ends_differ()) return {};
  if (const auto end = fewer_of(0, last)) return end;
  return give_up("the good and the bad commit don't differ clearly");
}

// The usable commit nearest to the middle of the remaining ones.
std::optional<std::size_t> Bisection::middle() const {
  const std::size_t centre = low_ + (high_ - low_) / 2;
  for (std::size_t away = 0; away < high_ - low_; ++away) {
    if (centre + away < high_ && centre + away > low_ && !commits_[centre + away].unusable) return centre + away;
    if (centre >= low_ + 1 + away && !commits_[centre - away].unusable) return centre - away;
  }
  return {};
}

std::optional<std::size_t> Bisection::next_between() {
  while (const auto commit = middle()) {
    const Side side = commits_[*commit].values.size() < limits_.first_runs ? Side::unclear : side_of(*commit);
    if (side == Side::unclear) {
      if (may_measure(*commit)) return commit;
      return give_up("a commit is neither clearly like the good nor clearly like the bad one");
    }
    (side == Side::high ? high_ : low_) = *commit;
  }
  if (high_ - low_ > 1) return give_up("the command fails at the commits that are left");
  return confirm();
}

// Measures both neighbours of the change once more, in turns, so that a drift of the machine isn't taken for it.
std::optional<std::size_t> Bisection::confirm() {
  const CommitFigures& before = commits_[low_];
  const CommitFigures& after = commits_[high_];
  const std::size_t measured = std::min(before.values.size(), after.values.size());
  const double change = difference(low_, high_);
  const bool is_clear_now = is_clear(change, 1 / count(before) + 1 / count(after), change_quantile) &&
                            (change > 0) == (difference(0, commits_.size() - 1) > 0);
  if (measured >= 2 * limits_.first_runs && is_clear_now) {
    found_ = high_;
    return {};
  }
  if (const auto commit = fewer_of(low_, high_)) return commit;
  return give_up("the commits on both sides of the change don't differ clearly when measured again");
}

}  // namespace stepladder
