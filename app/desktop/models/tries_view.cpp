// Derives what the Tries view shows from the rows of its series: the verdicts are the stored ones, the words those of
// the command line (app/runs/try_history.h).
#include "app/desktop/models/tries_view.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "storage/database/run_store.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

std::size_t file_stamp(const std::filesystem::path& database) {
  std::size_t stamp = 1;
  for (const char* ending : {"", "-wal"}) {
    const std::filesystem::path file = database.string() + ending;
    std::error_code error;
    stamp = stamp * 1'000'003 + static_cast<std::size_t>(std::filesystem::file_size(file, error));
    stamp = stamp * 1'000'003 +
            static_cast<std::size_t>(std::filesystem::last_write_time(file, error).time_since_epoch().count());
  }
  return stamp;
}

// A kept value's interval: the answer's, which is of the difference or of the factor, over the state kept before.
Interval value_interval(const TriesView& view, const Json& answer, double before) {
  const auto found = answer.find("ci95");
  if (found == answer.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number() ||
      !(*found)[1].is_number() || is_missing(before))
    return {};
  const double low = (*found)[0], high = (*found)[1];
  if (!is_time_metric(view.metric)) return {before + low, before + high};
  if (!view.lower_is_better) return {before * low, before * high};
  return low > 0 ? Interval{before / high, before / low} : Interval{};
}

TryFigures figures_of_try(const TriesView& view, const Try& it) {
  const Json answer = try_answer(it.answer);
  TryFigures figures{.value = try_value(view.shown, it.number),
                     .change = it.number == 0 ? "" : change_text(answer),
                     .verdict = it.number == 0 ? "first" : try_verdict(view.shown, it)};
  std::int64_t turns = 0;
  for (const TryRun& run : view.shown.runs) {
    if (run.during != it.number) continue;
    ++figures.runs;
    turns += run.state == it.parent && it.number > 0 && !is_missing(run.value) ? 1 : 0;
    if (!is_missing(run.wall_s)) figures.wall_s += run.wall_s;
  }
  if (!figures.change.empty())
    figures.beside = turns > 0 ? "over " + plural(turns, "turn") + " with the state kept before"
                               : "against what the runs before it foretold";
  if (it.verdict == "kept" && it.number > 0)
    figures.ci95 = value_interval(view, answer, try_value(view.shown, it.parent));
  return figures;
}

// Of the runs of what was kept then, and of changes that showed nothing: how far they are from the kept value.
double half_band(const TryHistory& history, double noise_sd) {
  constexpr double share = 0.95, deviations = 1.96;
  constexpr std::size_t fewest = 20;
  std::vector<double> distances;
  double kept = missing;
  for (const Try& it : history.tries) {
    if (it.number == 0) kept = try_value(history, 0);
    for (const TryRun& run : history.runs) {
      if (run.during != it.number || is_missing(run.value)) continue;
      if (run.state == it.number && it.number > 0 && it.verdict != "cannot-tell") continue;
      const double distance = std::abs(shown_value(history, run.value) - kept);
      if (std::isfinite(distance)) distances.push_back(distance);
    }
    if (it.verdict == "kept") kept = try_value(history, it.number);
  }
  if (distances.size() < fewest) return deviations * noise_sd;
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(distances.size()))) - 1;
  std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(at), distances.end());
  return distances[at];
}

}  // namespace

TriesView tries_view(RunStore& store, LadderId asked) {
  TriesView view{.asked = asked, .all = store.tries().all()};
  const TrySeries* series = view.all.empty() ? nullptr : &view.all.back();
  const auto newest = series ? store.tries().latest_of(series->checkout) : std::nullopt;  // that has begun well
  for (const TrySeries& each : view.all)
    if (each.ladder == (asked != 0 || !newest ? asked : newest->ladder)) series = &each;
  if (!series) return view;
  view.shown = history_of(store, *series);
  if (view.shown.tries.empty()) return view;
  const Json begun = try_answer(view.shown.tries.front().answer), plan = try_answer(series->plan);
  view.metric = try_metric(view.shown);
  view.lower_is_better = try_text(begun, "better") != "higher";
  view.half_band = half_band(view.shown, try_number(begun, "noise_sd"));
  view.strict = plan.contains("strict") && plan["strict"].is_boolean() && plan["strict"].get<bool>();
  view.status = status_json(view.shown);
  for (const Try& it : view.shown.tries) {
    view.figures.push_back(figures_of_try(view, it));
    if (it.number == 0 || it.verdict != "kept") continue;
    ++view.kept;
    view.last_kept = it.number;
  }
  return view;
}

void TriesReader::update(std::shared_ptr<const TriesView>& into, RunStore& store, std::optional<LadderId> asked,
                         std::chrono::milliseconds patience) {
  constexpr std::chrono::seconds between_checks(1);
  const bool is_in_memory = store.file().empty();  // the other thread uses this store
  const bool is_new = asked && (!into || into->asked != *asked);
  if (asked && !is_pending() && (is_new || is_due())) {
    background_.start({},
                      [file = store.file(), in_memory = is_in_memory ? &store : nullptr, asked = *asked, is_new,
                       before = into](const JobControl&) -> std::shared_ptr<const TriesView> {
                        const std::size_t stamp =
                            file_stamp(file);  // before reading: what is written meanwhile is read again
                        // A program that was killed writes nothing; its lock tells.
                        const bool was_at_work = before && before->shown.is_at_work;
                        if (!is_new && !in_memory && before->stamp == stamp && !was_at_work) return before;
                        auto read = std::make_shared<TriesView>();
                        try {
                          std::optional<RunStore> own;
                          if (!in_memory) own.emplace(RunStore::open(file, RunStore::Mode::read_only));
                          *read = tries_view(in_memory ? *in_memory : *own, asked);
                        } catch (const StorageError& error) {
                          *read = {.asked = asked, .problem = error.what()};
                        }
                        read->stamp = stamp;
                        return read;
                      });
  }
  if (background_.take(into, is_in_memory ? std::chrono::hours(1) : patience))
    next_check_ = Clock::now() + between_checks;
}

}  // namespace stepladder
