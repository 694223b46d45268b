// Computes each combination's mean and range and which one is best, corrected for having been picked. The spread comes
// from repeats: with shared seeds, what is left after a seed's own luck; without repeats, what similar runs have shown.
#include "app/launch/sweep_results.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "app/text/format.h"
#include "engine/rungs.h"
#include "storage/analysis/file_grouping.h"

namespace stepladder {
namespace {

constexpr double ratio_for_log_x = 8;
constexpr double ratio_for_log_y = 20;

// A run's value of a result; missing if it has none, infinite if it never reached the target.
double value_of(const SweptRun& run, SweepResult result) {
  constexpr double Summary::*kept[] = {&Summary::loss_last,    &Summary::loss_min,     &Summary::val_loss_last,
                                       &Summary::val_loss_min, &Summary::tokens_per_s, &Summary::dt_ms_median};
  if (static_cast<std::size_t>(result) < std::size(kept)) return run.summary->*kept[static_cast<std::size_t>(result)];
  if (result == SweepResult::peak_memory_bytes)
    return run.run->peak_memory_bytes > 0 ? static_cast<double>(run.run->peak_memory_bytes) : missing;
  if (!run.target) return missing;
  if (run.target->step == 0) return INFINITY;
  if (result == SweepResult::target_steps) return static_cast<double>(run.target->step);
  return result == SweepResult::target_seconds ? run.target->seconds : run.target->tokens;
}

// True if all values are positive and the largest is at least `ratio` times the smallest.
bool spans(const std::vector<double>& values, double ratio) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return !values.empty() && *least > 0 && *most >= ratio * *least;
}

bool overlap(const SweptFigure& a, const SweptFigure& b) {
  return a.low <= b.high && b.low <= a.high;
}

// The values that the runs of a rung set; empty if it isn't a rung of a sweep.
std::vector<std::string> names_set_by(const Run& run) {
  std::vector<std::string> names;
  try {
    const PlannedRung rung = parse_rung(run.stage);
    if (!rung.name.empty() || !rung.stages.empty()) return {};
    for (const auto& [name, value] : rung.values)
      if (name != "seed") names.push_back(name);
  } catch (const RecipeError&) {  // of an import, or of another version
    return {};
  }
  return names;
}

// The spread of the finite values, in their own unit. Unknown for fewer than two, or if all are equal.
RunSpread spread_around(double mean, std::span<const double> values) {
  RunSpread spread{.from = SpreadFrom::repeats};
  for (const double value : values) {
    if (is_missing(value) || !std::isfinite(value)) continue;
    spread.squares += (value - mean) * (value - mean);
    ++spread.freedom;
  }
  --spread.freedom;
  return spread.freedom > 0 && spread.squares > 0 ? spread : RunSpread{};
}

// A loss by seed, of one combination.
using BySeed = std::map<std::string, double>;

// The spread of losses of combinations that share their seeds: the variation that is left when each combination and
// each seed are moved to the same mean, since a lucky seed helps all of them. Unknown unless all have the same seeds,
// two or more.
RunSpread spread_beside_seeds(std::span<const BySeed> combinations) {
  if (combinations.size() < 2 || combinations.front().size() < 2) return {};
  const auto rows = static_cast<double>(combinations.size()), seeds = static_cast<double>(combinations.front().size());
  BySeed of_seed;
  double all = 0;
  for (const BySeed& each : combinations) {
    if (each.size() != combinations.front().size()) return {};
    for (const auto& [seed, loss] : each) {
      if (!combinations.front().contains(seed) || !std::isfinite(loss)) return {};
      of_seed[seed] += loss / rows;
      all += loss / rows / seeds;
    }
  }
  RunSpread spread{.freedom = (rows - 1) * (seeds - 1), .from = SpreadFrom::repeats};
  for (const BySeed& each : combinations) {
    double mean = 0;
    for (const auto& [seed, loss] : each) mean += loss / seeds;
    for (const auto& [seed, loss] : each) {
      const double off = loss - mean - of_seed[seed] + all;
      spread.squares += off * off;
    }
  }
  return spread.squares > 0 ? spread : RunSpread{};
}

// The known spread of such runs' step times and losses, in the figure's own unit.
RunSpread known_spread(std::span<const SweptRun> runs, const SweepResultKind& kind,
                       std::span<const Candidate> candidates, const SpreadTable& spreads) {
  if (runs.empty()) return {};
  if (kind.is_loss) return spreads.loss(runs.front().summary->steps);
  if (kind.result != SweepResult::tokens_per_s && kind.result != SweepResult::dt_ms_median) return {};
  std::vector<double> means;
  for (const Candidate& each : candidates)
    if (each.runs > 0) means.push_back(each.mean);
  RunSpread spread = spreads.step_time(*runs.front().run, *runs.front().summary);
  const double middle = median_of(std::move(means));
  spread.squares *= middle * middle;
  return is_missing(middle) ? RunSpread{} : spread;
}

// What went wrong with a combination's runs: one diverged or failed, or all were stopped.
std::string trouble_of(const std::vector<const SweptRun*>& runs, bool are_cut) {
  const auto words = [&](std::string_view word, auto&& is_so) {
    const auto count = std::ranges::count_if(runs, is_so);
    const bool is_all = count == std::ssize(runs);
    return count == 0 ? "" : (is_all ? "" : fmt::format("{} of {} ", count, runs.size())) + std::string(word);
  };
  const auto has = [](RunStatus status) {
    return [status](const SweptRun* run) { return run->run->status == status; };
  };
  std::string text = words("NaN", [](const SweptRun* run) { return run->summary->nonfinite_steps > 0; });
  if (text.empty()) text = words("failed", has(RunStatus::failed));
  for (const RunStatus status : {RunStatus::interrupted, RunStatus::stopped})
    if (text.empty() && !(are_cut && status == RunStatus::interrupted) && std::ranges::all_of(runs, has(status)))
      text = to_string(status);
  return text;
}

void take_trust(SweptRung& rung, const SweptRun& run, const HardwareTable& hardware) {
  if (is_missing(rung.tokens) && run.run->tokens_per_step > 0)
    rung.tokens = static_cast<double>(run.run->tokens_per_step * run.summary->last_step);
  for (const Flag& flag : flags_of(*run.run, *run.summary, 1, hardware)) {
    if (flag.trust() <= rung.trust) continue;
    rung.trust = flag.trust();
    rung.doubt = kind_of(flag.id).title;
  }
}

}  // namespace

std::vector<std::string> swept_names(std::span<const Run* const> runs) {
  std::vector<std::string> names = swept_settings(runs);
  if (!names.empty()) return names;
  for (const Run* run : runs) {
    if (run->rung == 0) continue;
    if (run->source != "launched") return {};
    std::vector<std::string> own = names_set_by(*run);
    if (own.empty() || (!names.empty() && own != names)) return {};
    names = std::move(own);
  }
  return names;
}

const std::array<SweepResultKind, sweep_result_count>& sweep_result_kinds() {
  using enum SweepResult;
  static const auto kinds = std::to_array<SweepResultKind>({
      {.result = loss_last, .id = "loss_last", .title = "Loss at the end", .unit = "", .is_loss = true},
      {.result = loss_min, .id = "loss_min", .title = "Minimum loss", .unit = "", .is_loss = true},
      {.result = val_loss_last, .id = "val_loss_last", .title = "Val loss at the end", .unit = "", .is_loss = true},
      {.result = val_loss_min, .id = "val_loss_min", .title = "Minimum val loss", .unit = "", .is_loss = true},
      {.result = tokens_per_s,
       .id = "tokens_per_s",
       .title = "Throughput",
       .unit = "tokens/s",
       .higher_is_better = true},
      {.result = dt_ms_median, .id = "dt_ms_median", .title = "Step time", .unit = "ms"},
      {.result = peak_memory_bytes, .id = "peak_memory_bytes", .title = "Peak memory", .unit = "B"},
      {.result = target_steps, .id = "target_steps", .title = "Steps to target loss", .unit = "steps"},
      {.result = target_seconds, .id = "target_seconds", .title = "Time to target loss", .unit = "s"},
      {.result = target_tokens, .id = "target_tokens", .title = "Tokens to target loss", .unit = "tokens"},
  });
  return kinds;
}

const SweepResultKind& kind_of(SweepResult result) {
  return sweep_result_kinds()[static_cast<std::size_t>(result)];
}

std::string SweepResultKind::text(double value) const {
  if (is_missing(value)) return "-";
  if (is_loss) return loss_text(value);
  if (result == SweepResult::peak_memory_bytes) return bytes_text(value);
  if (result == SweepResult::tokens_per_s) return tokens_per_s_text(value);
  return compact(value);
}

SweptFigure figure_of(std::span<const double> values) {
  SweptFigure figure;
  double sum = 0;
  for (const double value : values) {
    if (is_missing(value)) continue;
    if (!std::isfinite(value)) {
      ++figure.left_out;
      continue;
    }
    figure.low = figure.runs == 0 ? value : std::min(figure.low, value);
    figure.high = figure.runs == 0 ? value : std::max(figure.high, value);
    sum += value;
    ++figure.runs;
  }
  if (figure.runs > 0) figure.mean = sum / figure.runs;
  return figure;
}

nlohmann::ordered_json recipe_value(const Run& run, const std::string& name) {
  const auto recipe = nlohmann::ordered_json::parse(run.recipe, nullptr, false);
  return recipe.is_object() && recipe.contains(name) ? recipe[name] : nlohmann::ordered_json();
}

SweepResults sweep_results(std::span<const SweptRun> runs, const std::vector<std::string>& names,
                           const HardwareTable& hardware) {
  SweepResults results{.names = names, .rungs = {}};
  std::map<int, std::vector<const SweptRun*>> by_rung;
  std::array<RunSpread, sweep_result_count> repeats;
  std::array<std::vector<BySeed>, sweep_result_count> by_seed;
  for (const SweptRun& run : runs) by_rung[run.run->rung].push_back(&run);
  const auto is_finished = [](const SweptRun& run) { return run.run->status == RunStatus::finished; };
  results.are_cut = std::ranges::none_of(runs, is_finished);
  const auto counts = [&](const SweptRun& run) {
    return is_finished(run) ||
           (results.are_cut && run.run->status == RunStatus::interrupted && !was_cut_short(*run.run));
  };
  for (const auto& [number, own] : by_rung) {
    SweptRung& rung = results.rungs.emplace_back();
    rung.rung = number;
    rung.runs = own.size();
    rung.trouble =
        trouble_of(own, results.are_cut && std::ranges::any_of(own, [&](const SweptRun* run) { return counts(*run); }));
    for (const std::string& name : names) rung.values.push_back(recipe_value(*own.front()->run, name));
    std::array<std::vector<double>, sweep_result_count> values;
    for (std::vector<BySeed>& each : by_seed) each.emplace_back();
    for (const SweptRun* run : own) {
      if (!counts(*run)) continue;
      rung.finished += is_finished(*run) ? 1 : 0;
      take_trust(rung, *run, hardware);
      const std::string seed = value_text(recipe_value(*run->run, "seed"));
      for (const SweepResultKind& kind : sweep_result_kinds()) {
        const auto i = static_cast<std::size_t>(kind.result);
        values[i].push_back(value_of(*run, kind.result));
        if (kind.is_loss) by_seed[i].back()[seed] = values[i].back();
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      rung.figures[i] = figure_of(values[i]);
      if (sweep_result_kinds()[i].needs_target())
        rung.figures[i].once = static_cast<int>(std::ranges::count_if(
            own, [&](const SweptRun* run) { return counts(*run) && run->target && run->target->once; }));
      repeats[i] = pooled(repeats[i], spread_around(rung.figures[i].mean, values[i]));
    }
  }
  for (const SweepResultKind& kind : sweep_result_kinds()) {
    const auto i = static_cast<std::size_t>(kind.result);
    std::vector<Candidate> candidates;
    for (std::size_t k = 0; k < results.rungs.size(); ++k) {
      const SweptFigure& figure = results.rungs[k].figures[i];
      // Losses of one seed are copies.
      const std::size_t seeds = kind.is_loss ? by_seed[i][k].size() : static_cast<std::size_t>(figure.runs);
      candidates.push_back({results.may_be_best(results.rungs[k], kind.result) ? figure.mean : missing,
                            std::min(seeds, static_cast<std::size_t>(figure.runs))});
    }
    const RunSpread of_runs = repeats[i].known() ? repeats[i] : known_spread(runs, kind, candidates, hardware.spreads);
    RunSpread spread = spread_beside_seeds(by_seed[i]);
    if (!spread.known()) spread = of_runs;
    results.picked[i] = picked_best(candidates, kind.higher_is_better, spread, of_runs);
  }
  return results;
}

bool SweepResults::has(SweepResult result) const {
  return std::ranges::any_of(
      rungs, [&](const SweptRung& rung) { return rung.of(result).runs + rung.of(result).left_out > 0; });
}

bool SweepResults::may_be_best(const SweptRung& rung, SweepResult result) const {
  return rung.trouble.empty() && !(kind_of(result).is_timed() && rung.trust == Trust::impossible);
}

std::vector<std::size_t> SweepResults::ranked(SweepResult result) const {
  std::vector<std::size_t> order(rungs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t place) {
    const double mean = rungs[place].of(result).mean;
    const bool has_none = is_missing(mean);
    return std::tuple(!may_be_best(rungs[place], result), has_none,
                      has_none                           ? 0
                      : kind_of(result).higher_is_better ? -mean
                                                         : mean);
  });
  return order;
}

int SweepResults::best(SweepResult result) const {
  const std::vector<std::size_t> order = ranked(result);
  if (order.empty()) return -1;
  const SweptRung& first = rungs[order.front()];
  return is_missing(first.of(result).mean) || !may_be_best(first, result) ? -1 : static_cast<int>(order.front());
}

std::string value_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  constexpr std::size_t longest = 8;
  std::string text = value.is_null() ? "-" : value.dump();
  if (!value.is_number_float() || text.size() <= longest) return text;
  text = fmt::format("{:.6g}", value.get<double>());  // 1000000000.0 is 1e9
  if (const std::size_t plus = text.find("e+0"); plus != std::string::npos) text.erase(plus + 1, 2);
  return text;
}

std::string values_text(const SweepResults& results, const SweptRung& rung, const std::string& without) {
  std::string text;
  for (std::size_t i = 0; i < results.names.size(); ++i) {
    if (results.names[i] == without) continue;
    text += (text.empty() ? "" : ", ") + results.names[i] + " " + value_text(rung.values[i]);
  }
  return text;
}

namespace {

// What picking the best costs.
std::string picked_text(const PickedBest& picked, const SweepResultKind& kind) {
  if (picked.ties == 0) return " Clear of the " + plural(static_cast<std::int64_t>(picked.of) - 1, "other") + ".";
  return " " + std::to_string(picked.ties) + " of the " + plural(static_cast<std::int64_t>(picked.of) - 1, "other") +
         " may be as good: expect about " + kind.text(picked.corrected) + " when it is trained again.";
}

std::string best_of(const SweepResults& results, SweepResult result) {
  const SweepResultKind& kind = kind_of(result);
  const int place = results.best(result);
  const auto known =
      std::ranges::count_if(results.rungs, [&](const SweptRung& rung) { return !is_missing(rung.of(result).mean); });
  if (known < 2 || place < 0) return "";
  const SweptRung& best = results.rungs[static_cast<std::size_t>(place)];
  const SweptFigure& figure = best.of(result);
  std::string text = std::string(kind.higher_is_better ? "Highest" : "Lowest") + " at " + values_text(results, best) +
                     ": " + kind.text(figure.mean);
  if (figure.runs < 2)
    text += ", in one run; add seeds to see the spread between runs.";
  else
    text += " (" + kind.text(figure.low) + " - " + kind.text(figure.high) + ", " + plural(figure.runs, "run") + ").";
  const PickedBest& picked = results.picked[static_cast<std::size_t>(result)];
  if (picked.known() && (picked.ties > 0 || figure.runs > 1)) return text + picked_text(picked, kind);
  if (figure.runs < 2) return text;
  std::vector<std::string> others;
  for (const SweptRung& rung : results.rungs)
    if (&rung != &best && !is_missing(rung.of(result).mean) && overlap(figure, rung.of(result)))
      others.push_back(values_text(results, rung));
  if (others.size() == 1) text += " The range of " + others.front() + " overlaps it.";
  if (others.size() > 1) text += " The ranges of " + std::to_string(others.size()) + " others overlap it.";
  return text;
}

// What being the best doesn't show.
std::string doubt_of_best(const SweepResults& results, const SweptRung& best, const SweepResultKind& kind) {
  std::string text;
  if (kind.is_timed() && best.trust != Trust::trusted)
    text = fmt::format(" Its times are {}: {}.", to_string(best.trust), best.doubt);
  if (best.of(kind.result).once > 0) text += " It reached the loss once: no later evaluation confirms it.";
  const auto is_other = [&](const SweptRung& rung) { return std::abs(rung.tokens / best.tokens - 1) > 0.01; };
  if (kind.is_loss && std::ranges::any_of(results.rungs, is_other))
    text += " The combinations trained on other numbers of tokens, which moves the loss too.";
  if (kind.is_loss && results.are_cut) text += " All of their logs end before the steps that they announce.";
  return text;
}

}  // namespace

std::string best_text(const SweepResults& results, SweepResult result) {
  const std::string text = best_of(results, result);
  if (text.empty()) return "";
  const SweptRung& best = results.rungs[static_cast<std::size_t>(results.best(result))];
  return text + doubt_of_best(results, best, kind_of(result));
}

SweepLines sweep_lines(const SweepResults& results, SweepResult result, const std::string& against) {
  SweepLines lines;
  const auto named = std::ranges::find(results.names, against);
  if (named == results.names.end()) return lines;
  const auto column = static_cast<std::size_t>(named - results.names.begin());
  const bool are_numbers =
      std::ranges::all_of(results.rungs, [&](const SweptRung& rung) { return rung.values[column].is_number(); });
  const auto x_of = [&](const SweptRung& rung) {
    const std::string word = value_text(rung.values[column]);
    if (are_numbers) return lines.ticks.emplace(rung.values[column].get<double>(), word).first->first;
    const auto known = std::ranges::find_if(lines.ticks, [&](const auto& tick) { return tick.second == word; });
    if (known != lines.ticks.end()) return known->first;
    return lines.ticks.emplace(static_cast<double>(lines.ticks.size()), word).first->first;
  };
  std::vector<double> all_x, all_y;
  std::vector<std::pair<std::string, std::map<double, const SweptFigure*>>> groups;  // in the order of the rungs
  std::vector<int> first_rungs;
  for (const SweptRung& rung : results.rungs) {
    if (is_missing(rung.of(result).mean)) continue;
    const double x = x_of(rung);
    const std::string label = values_text(results, rung, against);
    auto group = std::ranges::find_if(groups, [&](const auto& each) { return each.first == label; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {label, {}});
      first_rungs.push_back(rung.rung);
    }
    const SweptFigure& figure = rung.of(result);
    all_x.push_back(x);
    group->second[x] = &figure;
    all_y.insert(all_y.end(), {figure.low, figure.high});
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SweepLine& line = lines.lines.emplace_back();
    line.label = groups[i].first;
    line.rung = first_rungs[i];
    for (const auto& [x, figure] : groups[i].second) {
      line.x.push_back(x);
      line.y.push_back(figure->mean);
      line.low.push_back(figure->low);
      line.high.push_back(figure->high);
      line.runs.push_back(figure->runs);
    }
  }
  lines.log_x = are_numbers && spans(all_x, ratio_for_log_x);
  lines.log_y = spans(all_y, ratio_for_log_y);
  return lines;
}

}  // namespace stepladder
