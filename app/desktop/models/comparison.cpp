#include "app/desktop/models/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "app/curves/smooth.h"
#include "app/desktop/theme.h"

namespace stepladder {
namespace {

// At most this many runs are read at the window's resolution when zoomed in.
constexpr std::size_t most_read_finely = 24;

std::vector<std::int64_t> numbers_of(const ComparisonOptions& options) {
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(options.axis), static_cast<std::int64_t>(options.gap),
                                    options.mean, std::bit_cast<std::int32_t>(options.smoothing)};
  for (const Quantity metric : options.metrics) numbers.push_back(static_cast<std::int64_t>(metric));
  return numbers;
}

// Runs by line: each its own, or a rung's repeats together.
std::vector<std::vector<const RunSnapshot*>> grouped_by_line(const std::vector<RunSnapshot>& runs, bool mean) {
  std::vector<std::vector<const RunSnapshot*>> lines;
  std::map<std::pair<LadderId, int>, std::size_t> by_rung;
  for (const RunSnapshot& run : runs) {
    if (mean && run.run.ladder) {
      const auto [place, is_new] = by_rung.try_emplace({*run.run.ladder, run.run.rung}, lines.size());
      if (!is_new) {
        lines[place->second].push_back(&run);
        continue;
      }
    }
    lines.push_back({&run});
  }
  return lines;
}

std::size_t place_of(const std::vector<std::vector<const RunSnapshot*>>& lines, RunId base) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const RunSnapshot* run : lines[i])
      if (run->run.id == base) return i;
  }
  return 0;
}

// A rung keeps its colour; if two lines have the same, the later one gets a free colour.
void colour(std::vector<ComparedLine>& lines, const std::vector<std::vector<const RunSnapshot*>>& runs) {
  std::array<bool, rung_colour_count> taken{};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    int colour = runs[i].front()->run.rung % rung_colour_count;
    for (int tries = 0; taken[static_cast<std::size_t>(colour)] && tries < rung_colour_count; ++tries)
      colour = (colour + 1) % rung_colour_count;
    taken[static_cast<std::size_t>(colour)] = true;
    lines[i].colour = colour;
  }
}

// Removes the words with which all names begin.
void shorten_labels(std::vector<ComparedLine>& lines) {
  if (lines.size() < 2) return;
  std::string common = lines.front().label;
  for (const ComparedLine& line : lines) {
    std::size_t same = 0;
    while (same < common.size() && same < line.label.size() && common[same] == line.label[same]) ++same;
    common.resize(same);
  }
  const bool one_is_all = std::any_of(lines.begin(), lines.end(),
                                      [&](const ComparedLine& line) { return line.label.size() == common.size(); });
  if (one_is_all) return;
  const std::size_t cut = common.find_last_of(" :/");
  if (cut == std::string::npos) return;
  for (const ComparedLine& line : lines) {
    if (line.label.size() <= cut + 1) return;
  }
  for (ComparedLine& line : lines) line.label.erase(0, cut + 1);
}

// Numbers runs of the same name.
void number_equal_labels(std::vector<ComparedLine>& lines) {
  std::map<std::string, int> named;
  for (const ComparedLine& line : lines) ++named[line.label];
  for (ComparedLine& line : lines) {
    if (named[line.label] > 1) line.label += ", run " + std::to_string(line.runs.front());
  }
}

// Smoothing shows a trend in noise. A validation loss is a mean over many batches already, and is quoted by its value.
bool can_be_smoothed(Quantity quantity) {
  return quantity != Quantity::val_loss;
}

// One run's part of a line.
struct RunCurve {
  Points points;
  MeanCurve means;  // empty: the points are the values
  std::int64_t behind = 0;
};

RunCurve curve_of(const RunSnapshot& run, Quantity quantity, Axis axis, const Points& places) {
  if (!run.is_excerpt || is_metric(axis)) return {.points = points_of(run.run, *run.series, quantity, axis)};
  const OverviewCurve* coarse = run.overview(quantity);
  if (!coarse) return {};
  if (axis == Axis::step) return {coarse->points, coarse->means, coarse->behind()};
  return {placed(coarse->points, places), placed(coarse->means, places), coarse->behind()};
}

void fill(ComparedLine& line, const std::vector<const RunSnapshot*>& runs, std::size_t metric,
          const ComparisonOptions& options, const std::map<RunId, Points>& places) {
  const auto curve = [&](const RunSnapshot& run) {
    const auto found = places.find(run.run.id);
    return curve_of(run, options.metrics[metric], options.axis, found == places.end() ? Points{} : found->second);
  };
  if (runs.size() == 1) {
    RunCurve only = curve(*runs.front());
    line.points[metric] = std::move(only.points);
    line.means[metric] = std::move(only.means.mean);
    line.low[metric] = std::move(only.means.low);
    line.high[metric] = std::move(only.means.high);
    line.behind[metric] = only.behind;
  } else {
    std::vector<Points> each;
    for (const RunSnapshot* run : runs) {
      RunCurve one = curve(*run);
      line.behind[metric] += one.behind;
      each.push_back(one.means.mean.empty() ? std::move(one.points) : std::move(one.means.mean));
    }
    MeanCurve mean = mean_of(each);
    line.points[metric] = std::move(mean.mean);
    line.low[metric] = std::move(mean.low);
    line.high[metric] = std::move(mean.high);
  }
  const Points& values = line.values(metric);
  line.levels[metric].follow(values.x, values.y);
  if (options.smoothing > 0 && values.is_path && can_be_smoothed(options.metrics[metric]))
    line.smoothed[metric] = smooth(values.x, values.y, options.smoothing);
}

ComparedCurves curves_of(const std::vector<RunSnapshot>& runs, RunId base, const ComparisonOptions& options) {
  ComparedCurves curves{.options = options};
  const std::vector<std::vector<const RunSnapshot*>> lines = grouped_by_line(runs, options.mean);
  curves.base = place_of(lines, base);
  for (const std::vector<const RunSnapshot*>& of_line : lines) {
    ComparedLine& line = curves.lines.emplace_back();
    for (const RunSnapshot* run : of_line) {
      line.runs.push_back(run->run.id);
      if (run->is_excerpt && options.axis != Axis::step && !is_metric(options.axis))
        curves.places[run->run.id] = run->places(options.axis);
      if (run->is_excerpt && is_metric(options.axis)) line.excerpt += std::ssize(run->series->step);
    }
    line.label = of_line.front()->run.name;
    if (of_line.size() > 1) line.label += " (mean of " + std::to_string(of_line.size()) + ")";
    for (std::size_t metric = 0; metric < options.metrics.size(); ++metric)
      fill(line, of_line, metric, options, curves.places);
  }
  if (curves.lines.empty()) return curves;
  colour(curves.lines, lines);
  shorten_labels(curves.lines);
  number_equal_labels(curves.lines);
  const Points& reference = curves.lines[curves.base].values(0);
  for (ComparedLine& line : curves.lines) {
    if (!reference.is_path) break;
    line.gap =
        options.gap == Gap::difference ? difference(line.values(0), reference) : ratio(line.values(0), reference);
    line.gap_levels.follow(line.gap.x, line.gap.y);
    if (options.smoothing > 0 && can_be_smoothed(options.metrics[0]))
      line.gap_smoothed = smooth(line.gap.x, line.gap.y, options.smoothing);
  }
  return curves;
}

using RungOfLadder = std::pair<LadderId, int>;

// The other runs of the compared rungs, which show the spread between repeats.
struct Siblings {
  std::vector<RunSnapshot> finished;    // with steps for the base's rung only
  std::map<RungOfLadder, int> repeats;  // how many runs each rung has, in any state
};

bool is_of_rung(const RunEntry& entry, const Run& run) {
  return entry.run.ladder && entry.run.ladder == run.ladder && entry.run.rung == run.rung;
}

const Run* base_of(const std::vector<const RunEntry*>& runs, RunId base) {
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const RunEntry* entry) { return entry->run.id == base; });
  return found != runs.end() ? &(*found)->run : runs.empty() ? nullptr : &runs.front()->run;
}

// The base's finished repeats, whose losses show the spread within one recipe.
std::vector<const RunEntry*> repeats_of_base(const Workspace& workspace, const Run* base) {
  std::vector<const RunEntry*> repeats;
  if (!base || !base->ladder) return repeats;
  for (const RunEntry* entry : workspace.runs_of(*base->ladder))
    if (is_of_rung(*entry, *base) && entry->run.id != base->id && entry->run.status == RunStatus::finished)
      repeats.push_back(entry);
  return repeats;
}

Siblings siblings_of(const Workspace& workspace, const std::vector<const RunEntry*>& runs, const Run* base,
                     SnapshotCache& cache) {
  Siblings siblings;
  for (const RunEntry* entry : runs)
    if (entry->run.ladder) siblings.repeats[{*entry->run.ladder, entry->run.rung}] = 0;
  for (const RunEntry& entry : workspace.runs()) {
    if (!entry.run.ladder) continue;
    const auto rung = siblings.repeats.find({*entry.run.ladder, entry.run.rung});
    if (rung == siblings.repeats.end()) continue;
    ++rung->second;
    if (entry.run.status != RunStatus::finished) continue;
    if (base && is_of_rung(entry, *base)) {
      siblings.finished.push_back(cache.of(entry));
    } else {
      siblings.finished.push_back({.run = entry.run,
                                   .known = entry.summary,
                                   .series = std::make_shared<Series>(),
                                   .overviews = {},
                                   .step_times = {}});
    }
  }
  return siblings;
}

// The judgement of each line, by its first run.
std::map<RunId, RungJudgement> judge_lines(const std::vector<RunSnapshot>& runs, const Siblings& siblings, RunId base,
                                           bool mean, const HardwareTable& hardware) {
  std::map<RunId, RungJudgement> judged;
  const std::vector<std::vector<const RunSnapshot*>> lines = grouped_by_line(runs, mean);
  if (lines.empty()) return judged;
  std::map<const RunSnapshot*, Summary> summaries;
  const auto measured = [&](const RunSnapshot& run) {
    const auto [summary, is_new] = summaries.try_emplace(&run);
    if (is_new) summary->second = run.summary();
    return MeasuredRun{&run.run, &summary->second, run.series.get()};
  };
  const auto is_in = [](const std::vector<const RunSnapshot*>& line, RunId id) {
    return std::any_of(line.begin(), line.end(), [&](const RunSnapshot* run) { return run->run.id == id; });
  };
  std::vector<Subject> subjects;
  for (const std::vector<const RunSnapshot*>& line : lines) {
    const Run& first = line.front()->run;
    Subject& subject = subjects.emplace_back();
    subject.rung = first.rung;
    for (const RunSnapshot* run : line) subject.runs.push_back(measured(*run));
    if (!first.ladder || mean) continue;  // a line is the whole selection of a rung
    subject.repeats = siblings.repeats.at({*first.ladder, first.rung});
    for (const RunSnapshot& other : siblings.finished)
      if (other.run.ladder == first.ladder && other.run.rung == first.rung && !is_in(line, other.run.id))
        subject.siblings.push_back(measured(other));
  }
  std::vector<RungJudgement> all = judge(subjects, place_of(lines, base), hardware);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    all[i].runs.clear();  // the snapshots'
    judged.emplace(lines[i].front()->run.id, std::move(all[i]));
  }
  return judged;
}

}  // namespace

bool ComparisonViewModel::update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
                                 const ComparisonOptions& options, const SharedX& zoom, Commands& commands) {
  drawing_snapshots_.expect(runs.size());
  judging_snapshots_.expect(runs.size());
  const bool is_coarse_path = !is_metric(options.axis);
  const bool is_zoomed = zoom.zoomed() && curves.options.axis == options.axis && runs.size() <= most_read_finely;
  Basis drawn{.asked = numbers_of(options), .data = {}};
  const Run* base_run = base_of(runs, base);
  const std::vector<const RunEntry*> base_repeats =
      options.mean ? std::vector<const RunEntry*>{} : repeats_of_base(workspace, base_run);
  Basis judging{.asked = {base, options.mean, static_cast<std::int64_t>(workspace.version)}, .data = {}};
  for (const RunEntry* entry : base_repeats) judging.data.push_back(fingerprint(*entry));
  std::vector<std::pair<RunId, std::array<RunPoints, 3>>> coarse;
  bool goes_on = false;
  const std::size_t asked_before = commands.size();
  for (const RunEntry* entry : runs) {  // curves first
    goes_on = goes_on || entry->goes_on();
    judging.asked.insert(judging.asked.end(), {entry->run.id, entry->goes_on()});
    judging.data.push_back(fingerprint(*entry));
    if (!is_coarse_path || !drawing_snapshots_.is_coarse(*entry)) continue;
    SharedX steps;  // in the zoomed range; without places x is the step
    if (is_zoomed) {
      const auto places = curves.places.find(entry->run.id);
      const bool has_places = places != curves.places.end() && !places->second.empty();
      steps.low = has_places ? step_at(places->second, zoom.low) : zoom.low;
      steps.high = has_places ? step_at(places->second, zoom.high) : zoom.high;
    }
    auto& points = coarse.emplace_back(entry->run.id, std::array<RunPoints, 3>{}).second;
    for (std::size_t m = 0; m < points.size(); ++m) {
      points[m] =
          run_points(workspace, *entry, options.metrics[m], is_zoomed ? &steps : nullptr, commands, Reads::overview);
      drawn.data.push_back(fingerprint(points[m]));
    }
    if (options.axis == Axis::time) {
      const auto times = workspace.overview(entry->run.id, Quantity::dt_ms);
      if (!times) commands.push_back(LoadOverview{entry->run.id, Quantity::dt_ms});
      drawn.data.push_back(times != nullptr);
    }
  }
  for (const RunEntry* entry : runs) drawing_snapshots_.ask(*entry, commands);
  for (const RunEntry* entry : base_repeats) judging_snapshots_.ask(*entry, commands);
  const bool is_growing = goes_on || commands.size() > asked_before;
  drawn.asked.insert(drawn.asked.end(), judging.asked.begin(), judging.asked.end());
  drawn.data.insert(drawn.data.end(), judging.data.begin(), judging.data.end());

  const auto snapshots = [&](SnapshotCache& cache) {
    std::vector<RunSnapshot> all;
    for (const RunEntry* entry : runs) all.push_back(cache.of(*entry));
    return all;
  };
  bool made = drawing_.take(curves, std::chrono::milliseconds(0));
  if (drawing_.is_stale(drawn, is_growing)) {
    std::vector<RunSnapshot> all = snapshots(drawing_snapshots_);
    auto points = coarse.begin();
    for (RunSnapshot& run : all) {
      if (points == coarse.end() || points->first != run.run.id) continue;
      for (const RunPoints& shown : points->second) {
        if (shown.overview) run.overviews.push_back(shown.overview);
      }
      run.step_times = workspace.overview(run.run.id, Quantity::dt_ms);
      ++points;
    }
    drawing_.start(std::move(drawn), [all = std::move(all), base, options] { return curves_of(all, base, options); });
    made = drawing_.take(curves, workspace.patience) || made;
  }
  judging_.take(judged, std::chrono::milliseconds(0));
  if (judging_.is_stale(judging, is_growing)) {
    judging_.start(std::move(judging),
                   [all = snapshots(judging_snapshots_),
                    siblings = siblings_of(workspace, runs, base_run, judging_snapshots_), base, mean = options.mean,
                    hardware = workspace.hardware] { return judge_lines(all, siblings, base, mean, hardware); });
    judging_.take(judged, workspace.patience);
  }
  if (drawing_.is_pending() || judging_.is_pending()) commands.push_back(KeepDrawing{});
  return made;
}

}  // namespace stepladder
