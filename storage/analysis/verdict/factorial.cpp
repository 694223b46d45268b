// Least squares on few columns: the mean, one of -1/2 and 1/2 for each part, and for a pair the product of its parts,
// one after the other as long as one stands out of the noise.
#include "storage/analysis/verdict/factorial.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "storage/analysis/means/student_t.h"

namespace stepladder {
namespace {

using Column = std::vector<double>;
constexpr double effect_error = 0.05;

std::vector<PartSet> plackett_burman(std::string_view row, std::size_t parts) {
  std::vector<PartSet> cells;
  for (std::size_t run = 0; run < row.size(); ++run) {
    PartSet cell;
    for (std::size_t part = 0; part < parts; ++part) cell.push_back(row[(part + row.size() - run) % row.size()] == '+');
    cells.push_back(cell);
  }
  cells.emplace_back(parts, false);
  return cells;
}

struct Fit {
  std::vector<double> values, variances;  // of each column; the latter in variances of a run
  double squares = 0;                     // that are left over
  double freedom = 0;
};

// By Gauss and Jordan on the normal equations; nullopt if the columns depend on each other.
std::optional<Fit> least_squares(const std::vector<Column>& columns, const std::vector<double>& y) {
  const std::size_t n = columns.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(2 * n + 1));
  const auto dot = [](const Column& a, const Column& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) rows[i][j] = dot(columns[i], columns[j]);
    rows[i][n + i] = 1;
    rows[i][2 * n] = dot(columns[i], y);
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i; j < n; ++j)
      if (std::abs(rows[j][i]) > std::abs(rows[pivot][i])) pivot = j;
    std::swap(rows[i], rows[pivot]);
    const double by = rows[i][i];
    if (std::abs(by) < 1e-9) return {};
    for (double& value : rows[i]) value /= by;
    for (std::size_t j = 0; j < n; ++j) {
      const double factor = rows[j][i];
      if (j != i)
        for (std::size_t k = 0; k < rows[j].size(); ++k) rows[j][k] -= factor * rows[i][k];
    }
  }
  Fit fit{.values = {}, .variances = {}, .squares = 0, .freedom = double(y.size()) - double(n)};
  for (std::size_t i = 0; i < n; ++i) {
    fit.values.push_back(rows[i][2 * n]);
    fit.variances.push_back(rows[i][n + i]);
  }
  for (std::size_t run = 0; run < y.size(); ++run) {
    double left = y[run];
    for (std::size_t i = 0; i < n; ++i) left -= fit.values[i] * columns[i][run];
    fit.squares += left * left;
  }
  return fit;
}

// Whether what a fit leaves over is rounding: the repeats of spread_of_repeats() have the same bound.
bool is_exact(const Fit& fit, const std::vector<double>& y) {
  double largest = 0;
  for (const double value : y) largest = std::max(largest, std::abs(value));
  const double rounding = 1e-12 * largest;
  return fit.squares <= rounding * rounding * double(y.size());
}

RunSpread spread_with(const RunSpread& noise, const Fit& fit, const std::vector<double>& y) {
  const RunSpread left{.squares = fit.squares, .freedom = fit.freedom, .from = {}};
  if (!(fit.freedom > 0) || is_exact(fit, y)) return noise;
  return !noise.known() || left.variance() > noise.variance() ? left : noise;
}

bool stands_out(const Fit& with, const Fit& without, const RunSpread& spread, double error,
                const std::vector<double>& y) {
  if (!spread.known()) return !is_exact(without, y);
  const double t = std::abs(with.values.back()) / std::sqrt(with.variances.back() * spread.variance());
  return t > student_t_quantile(1 - error / 2, spread.freedom);
}

Interval interval_of(const Fit& fit, std::size_t column, const RunSpread& spread) {
  if (!spread.known()) return {};
  const double half =
      student_t_quantile(1 - effect_error / 2, spread.freedom) * std::sqrt(fit.variances[column] * spread.variance());
  return {fit.values[column] - half, fit.values[column] + half};
}

Column product(const Column& a, const Column& b) {
  Column both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(2 * a[i] * b[i]);
  return both;
}

// The other pairs that would do in the place of the one in this column, but for the noise.
std::vector<std::pair<std::size_t, std::size_t>> others_like(const std::vector<PairEffect>& pairs,
                                                             std::vector<Column> columns, std::size_t column,
                                                             const Fit& fit, const RunSpread& spread,
                                                             const std::vector<double>& y) {
  std::vector<std::pair<std::size_t, std::size_t>> others;
  const std::size_t parts = columns.size() - 1 - pairs.size();
  const double t = spread.known() ? student_t_quantile(1 - effect_error / 2, spread.freedom) : 0;
  const double most = fit.squares + (spread.known() ? t * t * spread.variance() : 0);
  for (std::size_t a = 0; a < parts; ++a)
    for (std::size_t b = a + 1; b < parts; ++b) {
      if (std::ranges::any_of(pairs, [&](const PairEffect& it) { return it.a == a && it.b == b; })) continue;
      columns[column] = product(columns[a + 1], columns[b + 1]);
      const auto with = least_squares(columns, y);
      if (with && (with->squares <= most || is_exact(*with, y))) others.emplace_back(a, b);
    }
  return others;
}

}  // namespace

std::vector<PartSet> fractional_design(std::size_t parts) {
  if (parts == 0 || parts > most_parts) throw std::invalid_argument("a change of 1 to 19 parts can be taken apart");
  std::vector<PartSet> cells;
  if (parts > 4) {
    cells = plackett_burman(parts > 11 ? "++--++++-+-+----++-" : "++-+++---+-", parts);
  } else {
    for (std::size_t number = 0; number < (std::size_t{1} << parts); ++number) {
      PartSet cell;
      for (std::size_t part = 0; part < parts; ++part) cell.push_back((number >> part & 1) != 0);
      cells.push_back(cell);
    }
    const std::vector<PartSet> once = cells;
    while (cells.size() < 8) cells.insert(cells.end(), once.begin(), once.end());
  }
  // In steps of a number without a common factor, from both ends.
  std::vector<PartSet> mixed;
  const std::size_t stride = cells.size() == 20 ? 7 : 5;
  for (std::size_t i = 0; i < cells.size(); ++i) mixed.push_back(cells[i * stride % cells.size()]);
  return mixed;
}

FactorialAnswer fit_factorial(std::span<const PartSet> cells, std::span<const double> values, const RunSpread& noise) {
  FactorialAnswer answer;
  const std::size_t parts = cells.empty() ? 0 : cells.front().size();
  answer.parts.resize(parts);
  std::vector<double> y;
  std::vector<Column> columns(parts + 1);
  for (std::size_t run = 0; run < cells.size(); ++run) {
    if (is_missing(values[run])) continue;
    y.push_back(values[run]);
    columns[0].push_back(1);
    for (std::size_t part = 0; part < parts; ++part) columns[part + 1].push_back(cells[run][part] ? 0.5 : -0.5);
  }
  auto fit = least_squares(columns, y);
  if (!fit) return answer;
  const double candidates = double(parts * (parts - 1)) / 2;
  while (columns.size() + 2 < y.size()) {
    std::optional<Fit> best;
    PairEffect pair;
    for (std::size_t a = 0; a < parts; ++a)
      for (std::size_t b = a + 1; b < parts; ++b) {
        std::vector<Column> more = columns;
        more.push_back(product(columns[a + 1], columns[b + 1]));
        auto with = least_squares(more, y);
        if (with && (!best || with->squares < best->squares)) best = std::move(with), pair.a = a, pair.b = b;
      }
    if (!best) break;
    if (!stands_out(*best, *fit, spread_with(noise, *best, y), effect_error / candidates, y)) break;
    columns.push_back(product(columns[pair.a + 1], columns[pair.b + 1]));
    answer.pairs.push_back(pair);
    fit = std::move(best);
  }
  const RunSpread spread = spread_with(noise, *fit, y);
  for (std::size_t part = 0; part < parts; ++part)
    answer.parts[part] = {.gain = fit->values[part + 1], .ci95 = interval_of(*fit, part + 1, spread)};
  for (std::size_t i = 0; i < answer.pairs.size(); ++i) {
    const std::size_t column = parts + 1 + i;
    // A product of -1/2 and 1/2 says half of what both have beyond the sum of each.
    const Interval half = interval_of(*fit, column, spread);
    answer.pairs[i].gain = 2 * fit->values[column];
    answer.pairs[i].ci95 = {2 * half.low, 2 * half.high};
    answer.pairs[i].others = others_like(answer.pairs, columns, column, *fit, spread, y);
  }
  return answer;
}

std::vector<std::size_t> droppable_parts(const FactorialAnswer& answer) {
  double total = 0;
  std::vector<bool> may_act(answer.parts.size());
  for (const PartEffect& part : answer.parts) total += is_missing(part.gain) ? 0 : part.gain;
  for (const PairEffect& pair : answer.pairs) {
    may_act[pair.a] = may_act[pair.b] = true;
    for (const auto& [a, b] : pair.others) may_act[a] = may_act[b] = true;
  }
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < answer.parts.size(); ++i)
    if (answer.parts[i].ci95.known() && !(answer.parts[i].ci95.low > 0) && !may_act[i]) found.push_back(i);
  const auto most = [&](std::size_t part) { return std::max(0.0, answer.parts[part].ci95.high); };
  std::ranges::stable_sort(found, [&](std::size_t a, std::size_t b) { return most(a) < most(b); });
  double lost = 0;
  const auto end = std::ranges::find_if(found, [&](std::size_t part) {
    lost += most(part);
    return lost > std::max(0.0, total / 10);
  });
  found.erase(end, found.end());
  std::ranges::sort(found);
  return found;
}

}  // namespace stepladder
