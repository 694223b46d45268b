// Has Compare's lines, verdicts and targets derived on other threads. `update` runs in each frame: it asks for missing
// data, collects numbers that describe the inputs (`Basis`), and starts a derivation only if they have changed.
#include "app/desktop/models/comparison.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <utility>

#include "app/desktop/models/compared_lines.h"
#include "app/desktop/models/run_columns.h"
#include "storage/analysis/file_grouping.h"

namespace stepladder {
namespace {

// At most this many runs are read at the window's resolution when zoomed in.
constexpr std::size_t most_read_finely = 24;

// How often very many runs that have settled are looked at, which takes longer than to draw them, and how often they
// are drawn while their curves are being read.
constexpr std::chrono::milliseconds between_looks{500};
constexpr std::chrono::milliseconds between_parts{1000};

// More curves of very many runs aren't asked for at once, since each frame asks again.
constexpr std::size_t most_asked = 512;

std::int64_t number_of(const std::string& text) {
  return static_cast<std::int64_t>(std::hash<std::string>{}(text));
}

std::vector<std::int64_t> numbers_of(const ComparisonOptions& options) {
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(options.axis), static_cast<std::int64_t>(options.gap),
                                    number_of(options.group_by), std::bit_cast<std::int32_t>(options.smoothing)};
  for (const Quantity metric : options.metrics) numbers.push_back(static_cast<std::int64_t>(metric));
  return numbers;
}

bool is_on_screen(const ComparisonOptions& options, Quantity metric) {
  const std::vector<Quantity>& seen = options.on_screen;
  return seen.empty() || std::ranges::find(seen, metric) != seen.end();
}

using RungOfLadder = std::pair<LadderId, int>;

// The other runs of the compared rungs, which show the spread between repeats.
struct Siblings {
  std::vector<RunSnapshot> finished;  // with steps for the base's rung only
};

bool is_of_rung(const RunEntry& entry, const Run& run) {
  return entry.run.ladder && entry.run.ladder == run.ladder && entry.run.rung == run.rung;
}

const Run* base_of(const std::vector<const RunEntry*>& runs, RunId base) {
  const auto found = std::ranges::find_if(runs, [&](const RunEntry* entry) { return entry->run.id == base; });
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
  std::set<RungOfLadder> rungs;
  for (const RunEntry* entry : runs)
    if (entry->run.ladder) rungs.insert({*entry->run.ladder, entry->run.rung});
  for (const RunEntry& entry : workspace.runs()) {
    if (!entry.run.ladder || entry.run.status != RunStatus::finished) continue;
    if (!rungs.contains({*entry.run.ladder, entry.run.rung})) continue;
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
                                           const std::string& group_by, const HardwareTable& hardware,
                                           const JudgementOptions& how = {}) {
  std::map<RunId, RungJudgement> judged;
  const std::vector<RunsOfLine> lines = grouped_by_line(runs, group_by);
  if (lines.empty()) return judged;
  std::map<const RunSnapshot*, Summary> summaries;
  const auto measured = [&](const RunSnapshot& run) {
    const auto [summary, is_new] = summaries.try_emplace(&run);
    if (is_new) summary->second = run.summary();
    return MeasuredRun{&run.run, &summary->second, run.series.get()};
  };
  const auto is_in = [](const RunsOfLine& line, RunId id) {
    return std::ranges::any_of(line.runs, [&](const RunSnapshot* run) { return run->run.id == id; });
  };
  std::vector<Subject> subjects;
  for (const RunsOfLine& line : lines) {
    const Run& first = line.runs.front()->run;
    Subject& subject = subjects.emplace_back();
    subject.rung = first.rung;
    for (const RunSnapshot* run : line.runs) subject.runs.push_back(measured(*run));
    if (line.runs.size() > 1 && group_by.starts_with(group_by_recipe)) {
      std::vector<const Run*> members;
      for (const RunSnapshot* run : line.runs) members.push_back(&run->run);
      subject.mixes = differences_text(members);
    }
    if (!first.ladder || !group_by.empty()) continue;  // a line is the whole selection of a rung or value
    for (const RunSnapshot& other : siblings.finished)
      if (other.run.ladder == first.ladder && other.run.rung == first.rung && !is_in(line, other.run.id))
        subject.siblings.push_back(measured(other));
  }
  std::vector<RungJudgement> all = judge(subjects, place_of(lines, base), hardware, how);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    all[i].runs.clear();  // the snapshots'
    judged.emplace(lines[i].runs.front()->run.id, std::move(all[i]));
  }
  return judged;
}

using CoarsePoints = std::vector<std::pair<RunId, std::vector<RunPoints>>>;

// Snapshots of the runs with the overviews that are drawn of them, in the same order.
std::vector<RunSnapshot> snapshots_to_draw(const Workspace& workspace, const std::vector<const RunEntry*>& runs,
                                           const CoarsePoints& coarse, SnapshotCache& cache) {
  std::vector<RunSnapshot> all;
  for (const RunEntry* entry : runs) all.push_back(cache.of(*entry));
  auto points = coarse.begin();
  for (RunSnapshot& run : all) {
    if (points == coarse.end() || points->first != run.run.id) continue;
    for (const RunPoints& shown : points->second) {
      if (shown.overview) run.overviews.push_back(shown.overview);
    }
    run.step_times = workspace.overview(run.run.id, Quantity::dt_ms);
    ++points;
  }
  return all;
}

}  // namespace

const ComparedMetric& ComparedLine::of(Quantity quantity) const {
  static const ComparedMetric none;
  const auto found = metrics.find(quantity);
  return found == metrics.end() ? none : found->second;
}

std::vector<std::string> values_to_group_by(const std::vector<const RunEntry*>& runs) {
  std::map<std::string, std::set<std::string>> values;
  for (const RunEntry* entry : runs)
    for (const auto& [name, value] : parsed_recipe(*entry)) values[name].insert(value);
  std::vector<std::string> names;
  for (const auto& [name, different] : values)
    if (different.size() > 1) names.push_back(name);
  return names;
}

// True if nothing was missing or being made in the last call, which was asked the same a moment ago.
bool ComparisonViewModel::may_rest(const Workspace& workspace, const std::vector<const RunEntry*>& runs,
                                   const std::vector<std::int64_t>& asked) const {
  return is_settled_ && std::chrono::steady_clock::now() < next_look_ && asked == last_asked_ && runs == last_runs_ &&
         workspace.version == last_version_;
}

bool ComparisonViewModel::update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
                                 const ComparisonOptions& options, const SharedX& zoom, DataRequests& requests) {
  const bool are_many = runs.size() > most_judged_together;
  std::vector<std::int64_t> asked = numbers_of(options);
  asked.insert(asked.end(), options.rows_on_screen.begin(), options.rows_on_screen.end());
  asked.insert(asked.end(), {options.judges_all, std::bit_cast<std::int64_t>(options.target_loss), base});
  if (are_many && may_rest(workspace, runs, asked)) return false;
  drawing_snapshots_.expect(runs.size(), are_many);
  judging_snapshots_.expect(runs.size());
  const bool is_coarse_path = !is_metric(options.axis);
  const bool is_zoomed = zoom.zoomed() && curves.options.axis == options.axis && runs.size() <= most_read_finely;
  Basis drawn{.asked = numbers_of(options), .data = {}};
  const Run* base_run = base_of(runs, base);
  const std::vector<const RunEntry*> base_repeats =
      options.group_by.empty() ? repeats_of_base(workspace, base_run) : std::vector<const RunEntry*>{};
  Basis judging{.asked = {base, number_of(options.group_by), static_cast<std::int64_t>(workspace.version)}, .data = {}};
  for (const RunEntry* entry : base_repeats) judging.data.push_back(fingerprint(*entry));
  CoarsePoints coarse;
  bool is_active = false;
  const bool needs_steps = !are_many || options.axis != Axis::step;  // of runs that are drawn from overviews
  const std::size_t asked_before = requests.size();
  const std::size_t curves_before = requests.curves.size();
  const std::size_t steps_before = requests.series.size() + requests.excerpts.size();
  for (const RunEntry* entry : runs) {  // curves first
    is_active = is_active || entry->is_active();
    const bool is_coarse = drawing_snapshots_.is_coarse(*entry);
    judging.asked.insert(judging.asked.end(), {entry->run.id, entry->is_active()});
    judging.data.push_back(fingerprint(*entry));
    if (needs_steps || !is_coarse) drawn.data.push_back(fingerprint(*entry));
    if (!is_coarse_path) continue;
    static const Points no_places;
    const auto places = curves.places.find(entry->run.id);
    const Points& own = places == curves.places.end() ? no_places : places->second;
    const SharedX steps = is_zoomed ? steps_in_sight(zoom, own) : SharedX();
    std::vector<RunPoints>& points = coarse.emplace_back(entry->run.id, std::vector<RunPoints>{}).second;
    for (const Quantity metric : options.metrics) {
      if (is_field(metric) && !is_coarse) continue;
      const SharedX* const part = is_zoomed && is_on_screen(options, metric) ? &steps : nullptr;
      points.push_back(run_points(workspace, *entry, metric, part, requests, Reads::overview));
      drawn.data.push_back(fingerprint(points.back()));
    }
    if (options.axis == Axis::time && is_coarse) {
      const auto times = workspace.overview(entry->run.id, Quantity::dt_ms);
      if (!times) requests.curves.push_back({entry->run.id, Quantity::dt_ms});
      drawn.data.push_back(times != nullptr);
    }
  }
  for (const RunEntry* entry : runs)
    if (needs_steps || !drawing_snapshots_.is_coarse(*entry)) drawing_snapshots_.ask(*entry, requests);
  for (const RunEntry* entry : base_repeats) judging_snapshots_.ask(*entry, requests);
  const bool is_growing = is_active || requests.size() > asked_before;
  const bool is_read = requests.series.size() + requests.excerpts.size() == steps_before;
  if (!are_many) judging.asked.push_back(is_read);  // again at once when all have their steps
  drawn.asked.insert(drawn.asked.end(), judging.asked.begin(), judging.asked.end());
  const bool lacks_curves = are_many && requests.curves.size() > curves_before;
  if (lacks_curves) requests.curves.resize(std::min(requests.curves.size(), curves_before + most_asked));
  const bool waits = lacks_curves && drawn.asked == last_drawn_ && std::chrono::steady_clock::now() < next_part_;

  bool made = drawing_.take(curves, std::chrono::milliseconds(0));
  if (!waits && drawing_.is_stale(drawn, is_growing)) {
    last_drawn_ = drawn.asked;
    next_part_ = std::chrono::steady_clock::now() + between_parts;
    std::vector<RunSnapshot> all = snapshots_to_draw(workspace, runs, coarse, drawing_snapshots_);
    drawing_.start(std::move(drawn),
                   [all = std::move(all), base, options](JobControl&) { return curves_of(all, base, options); });
    made = drawing_.take(curves, workspace.patience) || made;
  }
  if (are_many) {
    judge_some(workspace, runs, base, base_repeats, options, is_growing, requests);
  } else {
    judge_all(workspace, runs, base, options, judging, is_growing);
  }
  find_targets(workspace, runs, options, judging, is_growing, requests);
  const bool is_pending = drawing_.is_pending() || judging_.is_pending() || reaching_.is_pending();
  if (is_pending) requests.next_frame = true;
  is_settled_ = !is_pending && !made && requests.size() == asked_before;
  if (are_many) last_runs_ = runs, last_asked_ = std::move(asked), last_version_ = workspace.version;
  next_look_ = std::chrono::steady_clock::now() + between_looks;
  return made;
}

void ComparisonViewModel::judge_all(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
                                    const ComparisonOptions& options, const Basis& basis, bool is_growing) {
  if (!apart_.of.empty()) apart_ = {}, ++round_;
  unjudged = 0;
  const auto take = [&](std::chrono::milliseconds patience) {
    if (judging_.take(made_, patience) && pending_round_ == round_) judged.swap(made_);
  };
  take(std::chrono::milliseconds(0));
  Basis now = basis;
  now.asked.push_back(round_);
  if (!judging_.is_stale(now, is_growing)) return;
  std::vector<RunSnapshot> all;
  for (const RunEntry* entry : runs) all.push_back(judging_snapshots_.of(*entry));
  pending_round_ = round_;
  judging_.start(std::move(now), [all = std::move(all),
                                  siblings = siblings_of(workspace, runs, base_of(runs, base), judging_snapshots_),
                                  base, group_by = options.group_by, hardware = workspace.hardware](JobControl&) {
    return judge_lines(all, siblings, base, group_by, hardware);
  });
  take(workspace.patience);
}

// The lines of `wanted` whose steps have been read and that haven't been judged as they are now, with a number that
// changes with their steps. Asks for steps that are missing.
std::map<RunId, std::int64_t> ComparisonViewModel::lines_to_judge(const Workspace& workspace,
                                                                  const ComparisonOptions& options,
                                                                  DataRequests& requests) {
  std::map<RunId, std::int64_t> lines;
  const std::set<RunId> rows(options.rows_on_screen.begin(), options.rows_on_screen.end());
  for (const ComparedLine& line : curves.lines) {
    const bool is_base = &line == &curves.lines[curves.base];
    if (!is_base && !options.judges_all && !rows.contains(line.id())) continue;
    const std::size_t asked_before = requests.size();
    std::int64_t from = 0;
    for (const RunId id : line.runs) {
      const RunEntry* entry = workspace.find(id);
      if (!entry) return {};  // the lines are of earlier runs
      judging_snapshots_.ask(*entry, requests);
      from = 31 * from + 2 * fingerprint(*entry) + (entry->is_active() ? 1 : 0);
    }
    const bool is_read = requests.size() == asked_before;
    if (is_base && !is_read) return {};
    const auto known = apart_.from.find(line.id());
    if (is_read && (known == apart_.from.end() || known->second != from)) lines.emplace(line.id(), from);
  }
  return lines;
}

void ComparisonViewModel::judge_some(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
                                     const std::vector<const RunEntry*>& base_repeats, const ComparisonOptions& options,
                                     bool is_growing, DataRequests& requests) {
  std::vector<std::int64_t> now{base, number_of(options.group_by), static_cast<std::int64_t>(workspace.version)};
  for (const RunEntry* entry : runs) now.push_back(entry->run.id);
  for (const RunEntry* entry : base_repeats) now.push_back(fingerprint(*entry));
  if (apart_.of != now) apart_ = {.of = std::move(now), .lines = {}, .from = {}}, ++round_;
  const auto count_unjudged = [&] {
    unjudged = curves.lines.size() - std::min(curves.lines.size(), apart_.lines.size());
  };
  count_unjudged();
  const auto take = [&](std::chrono::milliseconds patience) {
    if (!judging_.take(made_, patience) || pending_round_ != round_) return;
    for (auto& [line, rung] : made_) apart_.lines.insert_or_assign(line, std::move(rung));
    for (const auto& [line, from] : pending_from_) apart_.from.insert_or_assign(line, from);
    judged = apart_.lines;
    count_unjudged();
    std::vector<RungJudgement*> all;
    for (auto& [line, rung] : judged) all.push_back(&rung);
    hold_together(all, unjudged);
  };
  take(std::chrono::milliseconds(0));
  if (drawing_.is_pending() || judging_.is_pending() || curves.lines.empty()) return;
  const std::map<RunId, std::int64_t> lines = lines_to_judge(workspace, options, requests);
  if (lines.empty()) return;
  Basis basis{.asked = apart_.of, .data = {}};
  basis.asked.push_back(round_);
  std::set<RunId> wanted;
  const ComparedLine& base_line = curves.lines[curves.base];
  for (const ComparedLine& line : curves.lines) {
    const auto found = lines.find(line.id());
    if (found == lines.end() && &line != &base_line) continue;
    wanted.insert(line.runs.begin(), line.runs.end());
    basis.asked.push_back(line.id());
    if (found != lines.end()) basis.data.push_back(found->second);
  }
  if (!judging_.is_stale(basis, is_growing)) return;
  std::vector<const RunEntry*> of;
  for (const RunEntry* entry : runs)
    if (wanted.contains(entry->run.id)) of.push_back(entry);
  std::vector<RunSnapshot> all;
  for (const RunEntry* entry : of) all.push_back(judging_snapshots_.of(*entry));
  pending_round_ = round_;
  pending_from_ = lines;
  judging_.start(std::move(basis),
                 [all = std::move(all), siblings = siblings_of(workspace, of, base_of(runs, base), judging_snapshots_),
                  base, group_by = options.group_by, hardware = workspace.hardware](JobControl&) {
                   return judge_lines(all, siblings, base, group_by, hardware, {.apart = true});
                 });
  take(workspace.patience);
}

void ComparisonViewModel::find_targets(const Workspace& workspace, const std::vector<const RunEntry*>& runs,
                                       const ComparisonOptions& options, const Basis& data, bool is_growing,
                                       DataRequests& requests) {
  reaching_.take(targets, std::chrono::milliseconds(0));
  if (is_missing(options.target_loss)) {
    if (!reaching_.is_pending()) targets = {};
    return;
  }
  reaching_snapshots_.expect(runs.size());
  Basis basis = data;
  basis.asked.push_back(std::bit_cast<std::int64_t>(options.target_loss));
  for (const RunEntry* entry : runs) {
    if (runs.size() > most_judged_together) reaching_snapshots_.ask(*entry, requests);  // else they are judged by them
    if (!reaching_snapshots_.is_coarse(*entry)) continue;
    const bool has_times = workspace.overview(entry->run.id, Quantity::dt_ms) != nullptr;
    if (!has_times) requests.curves.push_back({entry->run.id, Quantity::dt_ms});
    basis.data.push_back(has_times);
  }
  if (!reaching_.is_stale(basis, is_growing)) return;
  std::vector<RunSnapshot> all;
  for (const RunEntry* entry : runs) {
    all.push_back(reaching_snapshots_.of(*entry));
    all.back().step_times = workspace.overview(entry->run.id, Quantity::dt_ms);
  }
  reaching_.start(std::move(basis), [all = std::move(all), options](JobControl&) { return targets_of(all, options); });
  reaching_.take(targets, workspace.patience);
}

}  // namespace stepladder
