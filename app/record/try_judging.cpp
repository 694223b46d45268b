// Answers of `stepladder try`: from the runs of a try to a verdict in words and numbers. A gain is only kept if no
// sealed path changed, no guard gave way and its runs are physically possible.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "app/record/run_doubt.h"
#include "app/record/try_series.h"
#include "app/runs/excerpt.h"
#include "app/runs/loaded_runs.h"
#include "storage/analysis/means/mean_test.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/verdict/step_grain.h"
#include "storage/by_enum.h"
#include "storage/importers/text.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr auto verdict_names = by_enum<TryVerdict>("kept", "worse", "cannot-tell", "invalid", "guard", "failed");
constexpr double moved_fact = 0.01;  // a share that is worth saying

double mean_of(const std::vector<double>& values) {
  return figures_of(values).mean;
}

// A number that a run noted beside its metric; `where` is "figures" or "facts".
double noted(const TryRun& run, const char* where, const std::string& name) {
  const Json others = Json::parse(run.others, nullptr, false);
  if (!others.is_object() || !others.contains(where) || !others[where].contains(name)) return missing;
  const Json& value = others[where][name];
  return value.is_number() ? value.get<double>() : missing;
}

// Whether it would have been kept if nothing spoke against it.
bool has_evidence(const Try& it) {
  const Json answer = Json::parse(it.answer, nullptr, false);
  const auto figure = [&](const char* name) {
    return answer.is_object() && answer.contains(name) && answer[name].is_number() ? answer[name].get<double>()
                                                                                   : missing;
  };
  return figure("e_value") >= figure("needed_e_value");
}

std::string share_text(double share) {
  return fine_percent_text(std::abs(share)) + (share > 0 ? " more " : " less ");
}

}  // namespace

const char* to_string(TryVerdict verdict) {
  return verdict_names[verdict];
}

std::optional<TryVerdict> try_verdict_from(const std::string& text) {
  return verdict_names.find(text);
}

std::string TrySeriesRunner::unit() const {
  for (const TryRun& run : runs_) {
    const Json others = Json::parse(run.others, nullptr, false);
    if (others.is_object() && !is_missing(run.value)) return others.value("unit", "");
  }
  return {};
}

std::string TrySeriesRunner::metric() const {
  if (plan_.figure.by == FigureBy::wall) return "wall_s";
  if (plan_.figure.by == FigureBy::throughput) return unit() == "s/step" ? "dt_ms" : "tokens_per_s";
  return name_of(plan_.figure);
}

double TrySeriesRunner::shown(double value) const {
  if (plan_.figure.by != FigureBy::throughput) return value;
  return unit() == "s/step" ? 1e3 * value : 1 / value;
}

double TrySeriesRunner::utility(double value) const {
  if (takes_time(plan_.figure)) return -std::log(value);
  return plan_.figure.lower_is_better ? -value : value;
}

std::vector<double> TrySeriesRunner::values_of(std::int64_t state) const {
  std::vector<double> values;
  for (const TryRun& run : runs_)
    if (run.state == state && run.during != held_out && !is_missing(run.value)) values.push_back(shown(run.value));
  return values;
}

TryRuns TrySeriesRunner::runs_for(const Try& it) const {
  TryRuns found;
  for (const TryRun& run : runs_) {
    if (is_missing(run.value) || run.during == held_out) continue;
    const double value = utility(run.value);
    if (run.during == it.number)
      (run.state == it.number ? found.changed : found.beside).push_back(value);
    else if (run.state == it.parent)
      found.kept.push_back(value);
  }
  found.noise = noise_of([&](const TryRun& run) { return run.during != it.number && run.during != held_out; });
  found.recent = recent_runs(it);
  return found;
}

// Values of the runs before the try, as the state that it is judged against would have had them: of changes that
// showed nothing as they are, of earlier kept states with what has been gained since.
std::vector<double> TrySeriesRunner::recent_runs(const Try& it) const {
  std::map<std::int64_t, double> gains;  // of the kept changes
  for (const Try& each : tries_) {
    if (each.number == 0 || each.number > it.parent || each.verdict != to_string(TryVerdict::kept)) continue;
    std::vector<double> before, after;
    for (const TryRun& run : runs_)
      if (run.during == each.number && !is_missing(run.value))
        (run.state == each.number ? after : before).push_back(utility(run.value));
    gains[each.number] = mean_of(after) - mean_of(before);
  }
  std::vector<double> recent;
  for (const TryRun& run : runs_) {
    if (run.during < 0 || run.during >= it.number || is_missing(run.value)) continue;
    const Try& state = tries_[static_cast<std::size_t>(run.state)];
    const bool was_kept = state.number == 0 || state.verdict == to_string(TryVerdict::kept);
    if (!was_kept && (state.verdict != to_string(TryVerdict::cannot_tell) || has_evidence(state))) continue;
    double value = utility(run.value);
    for (auto gain = gains.upper_bound(was_kept ? state.number : state.parent); gain != gains.end(); ++gain)
      value += gain->second;
    recent.push_back(value);
  }
  return recent;
}

// Each state's runs around their mean.
RunSpread TrySeriesRunner::noise_of(const std::function<bool(const TryRun&)>& counts) const {
  std::map<std::int64_t, std::vector<double>> states;
  for (const TryRun& run : runs_)
    if (!is_missing(run.value) && counts(run)) states[run.state].push_back(utility(run.value));
  RunSpread noise;
  for (const auto& [state, values] : states) {
    const RunSpread each = spread_of_repeats(values, values.front());
    noise.squares += each.squares;
    noise.freedom += each.freedom;
  }
  return noise;
}

std::optional<TryAnswer> TrySeriesRunner::refused(const Try& it) const {
  for (const TrySeal& seal : plan_.seals) {
    bool is_same = true;
    if (seal.in_tree) {
      is_same = trees_->content_of(it.tree, seal.path) == seal.content;
    } else {
      const fs::path path = fs::path(plan_.checkout) / seal.path;
      is_same = stamp_outside(path) == seal.stamp || content_outside(path) == seal.content;
    }
    if (!is_same) return TryAnswer{.verdict = TryVerdict::invalid, .reason = seal.path + " is sealed, and has changed"};
    if (const std::string shadow = shadow_of(it, seal); !shadow.empty())
      return TryAnswer{.verdict = TryVerdict::invalid,
                       .reason = shadow + " is new, and Python would import it in place of the sealed " + seal.path};
  }
  if (wrote_sealed_)
    return TryAnswer{.verdict = TryVerdict::invalid,
                     .reason = "a sealed path was written to while a run was under way"};
  return {};
}

// A package, an extension or unchecked bytecode beside a sealed module, or a module of its name where the command looks
// first.
std::string TrySeriesRunner::shadow_of(const Try& it, const TrySeal& seal) const {
  const fs::path sealed = seal.path;
  if (!seal.in_tree || sealed.extension() != ".py") return {};
  const std::string module = sealed.stem().string();
  for (const std::string& file : trees_->changed_files(tries_.front().tree, it.tree)) {
    const fs::path path = file;
    for (const fs::path& folder :
         {sealed.parent_path(), fs::path(), fs::path(plan_.folder == "." ? "" : plan_.folder)}) {
      const fs::path below = path.lexically_relative(folder.empty() ? "." : folder);
      if (below.empty() || *below.begin() == ".." || path == sealed) continue;
      const std::string first = below.begin()->string();
      const bool is_package = first == module && std::next(below.begin()) != below.end();
      const bool is_module = std::next(below.begin()) == below.end() &&
                             (first == module + ".py" || first == module + ".pyc" ||
                              (first.starts_with(module + ".") && (first.ends_with(".so") || first.ends_with(".pyd"))));
      const bool is_bytecode = first == "__pycache__" && std::next(below.begin()) != below.end() &&
                               std::next(below.begin())->string().starts_with(module + ".") &&
                               trees_->is_unchecked_bytecode(it.tree, file);
      if ((is_package || is_module || is_bytecode) && trees_->content_of(tries_.front().tree, file).empty() &&
          !trees_->content_of(it.tree, file).empty())
        return file;
    }
  }
  return {};
}

// Whether the name is that of a time, a rate or a memory, which the seed of a training needn't move.
bool is_of_the_machine(const std::string& name) {
  for (const char* const word :
       {"latency", "wall", "ms", "time", "secs", "seconds", "duration", "mem", "memory", "vram", "mfu", "tokens",
        "throughput", "flops", "tflops", "power", "energy", "rate", "speed"})
    for (std::size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1))
      if ((at == 0 || !is_alpha(name[at - 1])) &&
          (at + std::strlen(word) == name.size() || !is_alpha(name[at + std::strlen(word)])))
        return true;
  return false;
}

// The least that the seeds of a training are known to move its metric by is 0.02 % of it (nanochat, modded-nanogpt).
constexpr double least_seed_spread = 5e-5;
constexpr double most_jitter = 1e-3;  // of the metric, by which runs of one seed differ
constexpr std::size_t first_losses = 5;
constexpr double same_start_nats = 3e-4;

bool TrySeriesRunner::is_of_seeds() const {
  if (plan_.figure.by == FigureBy::throughput || plan_.figure.by == FigureBy::wall) return false;
  return plan_.figure.by != FigureBy::metric || !is_of_the_machine(plan_.figure.metric.metric);
}

std::string TrySeriesRunner::seed_doubt() const {
  if (!is_of_seeds()) return {};
  const RunSpread noise = noise_of([](const TryRun& run) { return run.during == 0; });
  const double share = std::sqrt(noise.variance()) / std::abs(mean_of(values_of(0)));
  if (noise.known() && share > 0 && share < least_seed_spread)
    return "the unchanged runs differ by " + fine_percent_text(share) +
           " of the metric, less than seeds are known to, so nobody knows what another seed does: let it vary, as "
           "$STEPLADDER_SEED does";
  const auto losses = [&](const TryRun& run) {
    std::vector<double> first;
    if (const auto row = store_->run(run.run); row && run.run > 0)
      for (const double loss : load_run(*store_, *row, most_steps_of_each(20)).series.loss)
        if (std::isfinite(loss) && first.size() < first_losses) first.push_back(loss);
    return first;
  };
  if (share > most_jitter) return {};
  std::vector<double> start;
  std::size_t runs = 0;
  for (const TryRun& run : runs_) {
    if (run.during != 0 || is_missing(run.value)) continue;
    const std::vector<double> these = losses(run);
    if (these.size() < first_losses) return {};
    if (start.empty()) start = these;
    for (std::size_t i = 0; i < first_losses; ++i)
      if (std::abs(these[i] - start[i]) > same_start_nats) return {};
    ++runs;
  }
  if (runs < 2) return {};
  return "the unchanged runs had other seeds and the same first losses, so they don't follow $STEPLADDER_SEED, and "
         "nobody knows what another seed does";
}

// A change that fixes a lucky seed scatters far less than the unchanged runs.
constexpr double least_scatter = 0.1;             // of theirs
constexpr std::size_t fewest_scattered_runs = 4;  // with fewer, one in twelve honest changes scatters as little

std::string TrySeriesRunner::scatter_doubt(const Try& it) const {
  if (!is_of_seeds()) return {};
  const RunSpread noise = noise_of([](const TryRun& run) { return run.during == 0; });
  const RunSpread changed =
      noise_of([&](const TryRun& run) { return run.during == it.number && run.state == it.number; });
  if (!noise.known() || !changed.known()) return {};
  const double share = std::sqrt(changed.variance() / noise.variance());
  if (!(share < least_scatter)) return {};
  return "the change's runs scatter by " + fine_percent_text(share) +
         " of what the unchanged ones do, so it may have fixed a seed, and nobody knows what another one does";
}

std::string TrySeriesRunner::noise_doubt(const Try& it) const {
  std::vector<double> changed, beside, all;
  for (const TryRun& run : runs_) {
    if (is_missing(run.value)) continue;
    all.push_back(run.value);
    if (run.during == it.number) (run.state == it.number ? changed : beside).push_back(run.value);
  }
  // Some equal runs are a coarse metric's: where its last digit is far below the noise, they are no measurement.
  double grain = plan_.figure.by == FigureBy::metric || plan_.figure.by == FigureBy::loss ? last_digit_of(all) : 0;
  if (plan_.figure.by == FigureBy::throughput)  // utilities are logarithms
    for (const TryRun& run : runs_)
      if (const auto row = run.during == it.number && run.run > 0 ? store_->run(run.run) : std::nullopt) {
        const Summary summary = load_run(*store_, *row, most_steps_of_each(20)).summary;
        if (summary.dt_ms_median > 0) grain = std::max(grain, summary.dt_grain_ms / summary.dt_ms_median);
      }
  const RunSpread noise = noise_of([](const TryRun& run) { return run.during == 0; });
  const bool is_coarse = noise.known() && std::sqrt(noise.variance()) < 10 * grain;
  const auto are_equal = [](const std::vector<double>& values) {
    return values.size() > 1 && std::ranges::count(values, values.front()) == std::ssize(values);
  };
  if (!is_coarse && (are_equal(changed) || are_equal(beside)))
    return std::string("all runs of the ") + (are_equal(changed) ? "change" : "kept state") +
           " are equal to the last digit, and the others aren't, so its figure isn't measured";
  return {};
}

std::optional<TryAnswer> TrySeriesRunner::measure(const Try& it) {
  if (const auto answer = refused(it)) return answer;
  const std::string of_seeds = seed_doubt();  // of the unchanged runs, which are over
  const auto kept_before = std::count_if(tries_.begin() + 1, tries_.end(),
                                         [](const Try& each) { return each.verdict == to_string(TryVerdict::kept); });
  const double threshold =
      needed_e_value(static_cast<std::size_t>(it.number), static_cast<std::size_t>(kept_before), plan_.false_keeps);
  while (true) {
    for (const TryRun& run : runs_)
      if (run.during == it.number && run.state == it.number && is_missing(run.value))
        return TryAnswer{.verdict = TryVerdict::failed,
                         .reason = Json::parse(run.others).value("error", "the command failed")};
    TryOpinion opinion = judge_try(runs_for(it), threshold);
    const bool has_run = std::ranges::any_of(
        runs_, [&](const TryRun& run) { return run.during == it.number && run.state == it.number; });
    const std::string doubt = has_run ? of_seeds : std::string();
    if (!doubt.empty()) opinion.step = TryStep::over;
    const std::string of_scatter = doubt.empty() && opinion.end == TryEnd::kept ? scatter_doubt(it) : std::string();
    if (!of_scatter.empty()) {
      const TryRuns runs = runs_for(it);
      if (std::min(runs.changed.size(), runs.beside.size()) < fewest_scattered_runs)
        opinion.step = runs.changed.size() <= runs.beside.size() ? TryStep::run_changed : TryStep::run_kept;
    }
    if (opinion.step == TryStep::over || is_spent()) {
      TryAnswer answer = answer_of(it, opinion, threshold);
      if (!doubt.empty()) answer.verdict = TryVerdict::cannot_tell, answer.reason = doubt;
      if (answer.verdict == TryVerdict::kept && !of_scatter.empty())
        answer.verdict = TryVerdict::cannot_tell, answer.reason = of_scatter;
      if (answer.verdict == TryVerdict::kept)
        if (const std::string why = noise_doubt(it); !why.empty())
          answer.verdict = TryVerdict::cannot_tell, answer.reason = why;
      if (answer.verdict == TryVerdict::kept && plan_.guesses_direction)
        answer.verdict = TryVerdict::cannot_tell, answer.reason = unknown_direction(metric());
      if (answer.verdict == TryVerdict::kept) check_values(it, answer);
      if (answer.verdict == TryVerdict::kept) check_guards(it.number, it.number, answer);
      if (answer.verdict == TryVerdict::kept) check_runs(it.number, it.number, answer);
      if (const auto cheat = refused(it); cheat && (answer.verdict == TryVerdict::kept || wrote_sealed_)) return cheat;
      answer.reason += changed_facts(it);
      return answer;
    }
    const bool is_change = opinion.step == TryStep::run_changed;
    report_(fmt::format("run {}, {}", runs_of_try(it.number) + 1,
                        is_change        ? "changed"
                        : it.parent == 0 ? "unchanged"
                                         : "kept state"));
    const auto run = run_state(it.number, is_change ? it.number : it.parent);
    if (!run) return {};
    if (!is_change && is_missing(run->value))
      throw StorageError("the state that was kept fails now: " +
                         Json::parse(run->others).value("error", std::string("no figure")));
  }
}

TryAnswer TrySeriesRunner::answer_of(const Try& it, const TryOpinion& opinion, double threshold) const {
  TryAnswer answer{.e_value = opinion.e_value, .needed_e_value = threshold, .needed_runs = opinion.needed_runs};
  const double base = mean_of(values_of(it.number == 0 || is_missing(threshold) ? 0 : it.parent));
  if (takes_time(plan_.figure)) {
    answer.factor = std::exp(opinion.gain);
    answer.difference = metric() == "tokens_per_s" ? base * (answer.factor - 1) : base * (1 / answer.factor - 1);
    if (opinion.ci95.known()) answer.ci95 = {std::exp(opinion.ci95.low), std::exp(opinion.ci95.high)};
  } else {
    const double sign = plan_.figure.lower_is_better ? -1 : 1;
    answer.difference = sign * opinion.gain;
    answer.ci95 = {std::min(sign * opinion.ci95.low, sign * opinion.ci95.high),
                   std::max(sign * opinion.ci95.low, sign * opinion.ci95.high)};
    if (!opinion.ci95.known()) answer.ci95 = {};
    if (base > 0 && base + answer.difference > 0) answer.factor = (base + answer.difference) / base;
  }
  const std::string more = opinion.needed_runs > 0 ? "; about " + plural(opinion.needed_runs, "more run", "more runs") +
                                                         " of each would settle a gain of this size"
                                                   : "";
  switch (opinion.end) {
    case TryEnd::none:
      answer.reason = "the budget is spent";
      break;
    case TryEnd::kept:
      answer.verdict = TryVerdict::kept;
      answer.reason = fmt::format("better, with an e-value of {} where {} was needed", compact(opinion.e_value),
                                  compact(threshold));
      break;
    case TryEnd::worse:
      answer.verdict = TryVerdict::worse;
      answer.reason = "worse than what is kept";
      break;
    case TryEnd::no_sign:
      answer.reason = "its first run shows no sign of a gain" + more;
      break;
    case TryEnd::futile:
      answer.reason = "its runs show no gain that a few more could confirm" + more;
      break;
    case TryEnd::rounds_over:
      answer.reason = "still inconclusive after " + plural(std::int64_t(most_try_rounds), "turn") + more;
      break;
    case TryEnd::equal_repeats:
      answer.reason =
          "all runs so far are equal to the last digit, so nobody knows the noise: let the seed vary, as "
          "$STEPLADDER_SEED does";
      break;
  }
  return answer;
}

void TrySeriesRunner::check_values(const Try& it, TryAnswer& answer) const {
  if (plan_.figure.by != FigureBy::metric) return;
  const std::string& name = plan_.figure.metric.metric;
  double before = missing, most_before = 0, most = 0;  // values that a run prints
  for (const TryRun& run : runs_) {
    if (run.during != it.number || is_missing(run.value)) continue;
    const double printed = noted(run, "facts", "values of " + metric());
    if (run.state != it.number)
      before = run.value, most_before = std::max(most_before, printed);
    else
      most = std::max(most, printed);
  }
  for (const TryRun& run : runs_)
    if (run.during == it.number && run.state == it.number)
      if (std::string why = impossible_value(name, before, run.value); !why.empty())
        answer.verdict = TryVerdict::invalid, answer.reason = std::move(why);
  if (answer.verdict != TryVerdict::kept) return;
  const bool is_best_of_more = is_extreme(plan_.figure.metric) && most_before > 0 && most > 1.1 * most_before;
  if (is_best_of_more || (most_before == 1 && most > 1))
    answer.verdict = TryVerdict::cannot_tell,
    answer.reason = fmt::format("a run of the change prints {} values called {}, and the kept state prints {}, so {}",
                                most, name, most_before == 1 ? "one" : metric_text(most_before),
                                is_best_of_more ? "the best of them is better by luck" : "nobody knows which counts");
}

void TrySeriesRunner::check_guards(std::int64_t during, std::int64_t state, TryAnswer& answer) const {
  for (const TryGuard& guard : plan_.guards) {
    const std::string name = name_of(guard.figure);
    std::vector<double> before, after, first;
    for (const TryRun& run : runs_)
      if (run.during == during)
        (run.state == state ? after : before).push_back(noted(run, "figures", name));
      else if (run.during == 0 && during > 0)
        first.push_back(noted(run, "figures", name));
    const double now = mean_of(after), was = mean_of(before);
    // An amount that is gone wasn't measured.
    if (guard.better == Direction::lower && was > 0 && now <= 0) {
      answer.verdict = TryVerdict::guard;
      answer.reason = fmt::format("{} is {} after {}, so nobody measured it", name, metric_text(now), metric_text(was));
      return;
    }
    const auto gave_way = [&](double base, const char* since) {
      const double rise = now - base;
      const double loss = guard.better == Direction::lower    ? rise
                          : guard.better == Direction::higher ? -rise
                                                              : std::abs(rise);
      const double tolerance = guard.is_share ? guard.tolerance * std::abs(base) : guard.tolerance;
      if (loss <= tolerance) return false;
      answer.verdict = TryVerdict::guard;
      answer.reason = std::isfinite(loss) ? fmt::format("{} goes{} from {} to {}, and {} was allowed", name, since,
                                                        metric_text(base), metric_text(now), metric_text(tolerance))
                                          : name + " isn't printed by each run";
      return true;
    };
    if (gave_way(was, "")) return;
    // A tolerance is spent once: several small steps are one large one.
    if (!first.empty() && gave_way(mean_of(first), ", since the series began,")) return;
  }
}

void TrySeriesRunner::check_runs(std::int64_t during, std::int64_t state, TryAnswer& answer) const {
  const auto load = [&](auto&& is_asked) {
    std::vector<LoadedRun> loaded;
    for (const TryRun& run : runs_) {
      if (!is_asked(run) || run.run == 0 || is_missing(run.value)) continue;
      if (const auto row = store_->run(run.run)) loaded.push_back(load_run(*store_, *row, most_steps_of_each(20)));
    }
    return loaded;
  };
  const auto before = load([&](const TryRun& run) { return run.during == during && run.state != state; });
  const auto after = load([&](const TryRun& run) { return run.during == during && run.state == state; });
  if (before.empty() || after.empty()) return;
  const HardwareTable hardware = load_run_context(store_).hardware;
  DoubtedGain found = doubt_of(measured(before), measured(after), hardware, takes_time(plan_.figure));
  // Losses that gave way a little with each keep.
  if (found.doubt == RunDoubt::none && during > 0) {
    if (first_runs_.empty()) first_runs_ = load([](const TryRun& run) { return run.during == 0; });
    if (DoubtedGain since = doubt_of(measured(first_runs_), measured(after), hardware, takes_time(plan_.figure));
        !first_runs_.empty() && since.doubt == RunDoubt::guard) {
      since.reason = "against the state that the series began with, " + since.reason;
      found = std::move(since);
    }
  }
  if (found.doubt == RunDoubt::none) {
    if (!found.note.empty()) answer.reason += "; " + found.note;
    return;
  }
  answer.verdict = found.doubt == RunDoubt::invalid ? TryVerdict::invalid
                   : found.doubt == RunDoubt::guard ? TryVerdict::guard
                                                    : TryVerdict::cannot_tell;
  answer.reason = found.reason;
}

std::string TrySeriesRunner::changed_facts(const Try& it) const {
  const TryRun* before = nullptr;
  const TryRun* after = nullptr;
  for (const TryRun& run : runs_) {
    if (is_missing(run.value)) continue;
    if (run.state == it.parent) before = &run;
    if (run.state == it.number) after = &run;
  }
  if (!before || !after) return {};
  std::string text;
  const Json others = Json::parse(after->others, nullptr, false);
  if (!others.is_object() || !others.contains("facts") || !others["facts"].is_object()) return {};
  for (const auto& [name, value] : others["facts"].items()) {
    const double base = noted(*before, "facts", name), now = noted(*after, "facts", name);
    const double share = now / base - 1;
    if (!std::isfinite(share) || std::abs(share) < moved_fact) continue;
    text += (text.empty() ? "; with " : ", ") + share_text(share) + name;
  }
  return text;
}

Json begin_json(const TrySeriesRunner& series) {
  const SampleFigures figures = figures_of(series.values_of(0));
  const bool is_equal = figures.n >= 2 && !(figures.std > 0);
  return {{"series", series.series().ladder},
          {"checkout", series.plan().checkout},
          {"machine", text_or_null(series.plan().machine)},
          {"metric", series.metric()},
          {"better", takes_time(series.plan().figure) && series.metric() == "tokens_per_s" ? "higher"
                     : series.plan().figure.lower_is_better                                ? "lower"
                                                                                           : "higher"},
          {"runs", figures.n},
          {"runs_left", series.runs_left() ? Json(*series.runs_left()) : Json()},
          {"mean", number(figures.mean)},
          {"noise_sd", number(figures.std)},
          {"linked", series.plan().links},
          {"dirty", series.is_dirty(series.tries().front())},
          {"flags", is_equal                       ? Json{"equal-repeats"}
                    : !series.seed_doubt().empty() ? Json{"seed-not-followed"}
                                                   : Json::array()}};
}

Json try_json(const TrySeriesRunner& series, const Try& it, const TryAnswer& answer) {
  const auto left = series.runs_left();
  return {{"try", it.number},
          {"verdict", to_string(answer.verdict)},
          {"metric", series.metric()},
          {"difference", number(answer.difference)},
          {"factor", number(answer.factor)},
          {"ci95", interval_json(answer.ci95)},
          {"e_value", number(answer.e_value)},
          {"needed_e_value", number(answer.needed_e_value)},
          {"runs", series.runs_of_try(it.number)},
          {"runs_left", left ? Json(*left) : Json()},
          {"needed_runs", count_or_null(answer.needed_runs)},
          {"reason", answer.reason},
          {"commit", text_or_null(it.commit)},
          {"dirty", series.is_dirty(it)}};
}

}  // namespace stepladder
