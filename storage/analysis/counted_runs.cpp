// Leaves out runs in this order: without an end, copies, disturbed ones. Each step keeps the runs if none would remain,
// so a rung always has some; their flags then say what is wrong with them.
#include "storage/analysis/counted_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace stepladder {
namespace {

// The subject without the repeats that others disturbed, unless none remains: measuring again on a quiet machine is the
// remedy.
Subject without_disturbed(Subject subject) {
  const auto is_out = [](const MeasuredRun& run) { return is_disturbed(*run.summary); };
  const bool any_quiet = !std::ranges::all_of(subject.runs, is_out);
  std::erase_if(subject.siblings, is_out);
  if (any_quiet) std::erase_if(subject.runs, is_out);
  return subject;
}

// Whether a repeat was stopped or has not ended. One whose loss became NaN or infinite counts all the same, since it
// shows that the rung can diverge.
bool is_unfinished(const MeasuredRun& run) {
  return run.run->status != RunStatus::finished && !is_cut_log(run) && run.summary->nonfinite_steps == 0;
}

// The subject without the repeats that didn't finish, if one did: they have fewer steps, or none. Without a finished
// one those that have steps count.
Subject without_unfinished(Subject subject) {
  const auto leave_out = [&](const auto& is_out) {
    if (!std::ranges::all_of(subject.runs, is_out)) std::erase_if(subject.runs, is_out);
  };
  leave_out(is_unfinished);
  leave_out([](const MeasuredRun& run) { return is_unmeasured(*run.summary); });
  return subject;
}

// Whether all steps that both have took equally long to the last digit, and not just one of few coarse times: one is
// the other, cut or edited.
bool have_equal_times(const Series& a, const Series& b) {
  constexpr std::size_t fewest = 20;
  std::size_t shared = 0;
  std::set<double> times;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a.step[i] != b.step[j]) {
      a.step[i] < b.step[j] ? ++i : ++j;
      continue;
    }
    const double time = a.dt_ms[i++], other = b.dt_ms[j++];
    if (is_missing(time) || is_missing(other)) continue;
    if (time != other) return false;
    ++shared;
    times.insert(time);
  }
  return shared >= fewest && 4 * times.size() >= shared;
}

// Whether two imported runs have the same figures to the last digit: they are one run, copied.
bool are_copies(const MeasuredRun& a, const MeasuredRun& b) {
  const auto may_be_copied = [](const Run& run) { return run.source == "import" || run.is_claimed; };
  if (!may_be_copied(*a.run) || !may_be_copied(*b.run) || a.summary->steps == 0) return false;
  const auto figures = [](const Summary& of) {
    return std::array{of.loss_first, of.loss_last, of.loss_min,  of.val_loss_last, of.dt_ms_median, of.dt_ms_p25,
                      of.dt_ms_p75,  of.dt_ms_p5,  of.dt_ms_p95, of.drift,         of.tokens_per_s, of.wall_ms_median};
  };
  const auto is_equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return have_equal_times(*a.series, *b.series) ||
         (a.summary->steps == b.summary->steps && a.summary->last_step == b.summary->last_step &&
          std::ranges::equal(figures(*a.summary), figures(*b.summary), is_equal));
}

// The subject with one run of each that was copied.
Subject without_copies(Subject subject) {
  std::vector<MeasuredRun> seen;
  const auto is_copy = [&](const MeasuredRun& run) {
    if (std::ranges::any_of(seen, [&](const MeasuredRun& other) { return are_copies(run, other); })) return true;
    seen.push_back(run);
    return false;
  };
  std::erase_if(subject.runs, is_copy);
  std::erase_if(subject.siblings, is_copy);
  return subject;
}

// Counts the finished repeats and cut logs or, if there are none, all of them.
int count_repeats(const Subject& subject) {
  const auto finished = std::ranges::count_if(subject.runs,
                                              [](const MeasuredRun& run) {
                                                return run.run->status == RunStatus::finished || is_cut_log(run);
                                              }) +
                        std::ssize(subject.siblings);
  return static_cast<int>(finished > 0 ? finished : std::ssize(subject.runs));
}

}  // namespace

bool is_unmeasured(const Summary& summary) {
  return summary.steps == 0 && is_missing(summary.tokens_per_s);
}

bool is_cut_log(const MeasuredRun& run) {
  constexpr std::int64_t fewest = 8;
  const Summary& of = *run.summary;
  return run.run->status == RunStatus::interrupted && !was_cut_short(*run.run) &&
         of.steps - of.warmup_steps - of.untimed_steps >= fewest;
}

Counted count_runs(std::span<const Subject> all_subjects) {
  Counted counted;
  const auto runs_in = [](const Subject& subject) { return static_cast<int>(subject.runs.size()); };
  const auto all_in = [](const Subject& subject) { return subject.runs.size() + subject.siblings.size(); };
  for (const Subject& subject : all_subjects) {
    const Subject with_copies = without_unfinished(subject);
    const Subject finished = without_copies(with_copies);
    counted.copies.push_back(all_in(with_copies) - all_in(finished));
    counted.repeats.push_back(count_repeats(finished));
    const Subject& quiet = counted.subjects.emplace_back(without_disturbed(finished));
    const int left_out = runs_in(subject) - runs_in(with_copies);
    const auto to_come = static_cast<int>(std::ranges::count_if(subject.runs, [&](const MeasuredRun& run) {
      return !is_over(run.run->status) &&
             std::ranges::find(with_copies.runs, run.run, &MeasuredRun::run) == with_copies.runs.end();
    }));
    counted.counts.push_back({.all = runs_in(subject),
                              .to_come = to_come,
                              .unfinished = left_out - to_come,
                              .copies = runs_in(with_copies) - runs_in(finished),
                              .disturbed = runs_in(finished) - runs_in(quiet),
                              .all_busy = is_disturbed(*quiet.runs.front().summary)});
  }
  return counted;
}

}  // namespace stepladder
