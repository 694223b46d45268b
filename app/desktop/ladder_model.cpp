#include "app/desktop/ladder_model.h"

#include <algorithm>
#include <cmath>

namespace stepladder {
namespace {

constexpr std::size_t ecdf_points = 400;

Ecdf ecdf_of(const RunEntry& entry, const Summary& summary) {
  std::vector<double> values;
  for (std::size_t i = static_cast<std::size_t>(summary.warmup_steps); i < entry.series.size(); ++i) {
    if (std::isfinite(entry.series.dt_ms[i])) values.push_back(entry.series.dt_ms[i]);
  }
  std::sort(values.begin(), values.end());
  Ecdf ecdf;
  const std::size_t points = std::min(values.size(), ecdf_points);
  for (std::size_t k = 0; k < points; ++k) {
    const std::size_t i = points == 1 ? 0 : k * (values.size() - 1) / (points - 1);
    ecdf.dt_ms.push_back(values[i]);
    ecdf.share.push_back(static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  return ecdf;
}

Points loss_points(const RunEntry& entry, const Energy& energy, Lens lens) {
  constexpr std::array axes{Axis::step, Axis::tokens, Axis::time, Axis::flops, Axis::time};
  Points points = points_of(entry.run, entry.series, Metric::loss, axes[static_cast<std::size_t>(lens)]);
  if (lens == Lens::energy) {
    if (is_missing(energy.mean_power_w)) return {};
    for (double& x : points.x) x *= energy.mean_power_w;  // seconds to joules
  }
  return points;
}

}  // namespace

std::string_view title_of(Lens lens) {
  constexpr std::array titles{"equal steps", "equal tokens", "equal time", "equal FLOPs", "equal energy"};
  return titles[static_cast<std::size_t>(lens)];
}

std::string_view axis_title_of(Lens lens) {
  constexpr std::array titles{"step", "tokens", "training time, s", "FLOPs (6N)", "energy, J"};
  return titles[static_cast<std::size_t>(lens)];
}

const LadderRung* LadderModel::rung(int number) const {
  const auto found =
      std::find_if(rungs.begin(), rungs.end(), [&](const LadderRung& r) { return r.sum.rung == number; });
  return found == rungs.end() ? nullptr : &*found;
}

int LadderModel::fastest() const {
  const LadderRung* best = nullptr;
  for (const LadderRung& rung : rungs) {
    if (is_missing(rung.sum.tokens_per_s)) continue;
    const bool better =
        !best || (rung.trusted() != best->trusted() ? rung.trusted() : rung.sum.tokens_per_s > best->sum.tokens_per_s);
    if (better) best = &rung;
  }
  return best ? best->sum.rung : rungs.empty() ? 0 : rungs.front().sum.rung;
}

bool LadderModel::update(const Workspace& workspace, LadderId ladder, int baseline, Lens lens) {
  const std::vector<const RunEntry*> runs = workspace.runs_of(ladder);
  std::string wanted = std::to_string(ladder) + "/" + std::to_string(baseline) + "/" +
                       std::to_string(static_cast<int>(lens)) + "/" + std::to_string(workspace.version);
  bool over = true;
  std::size_t steps = 0;
  for (const RunEntry* entry : runs) {
    const RunDetail* detail = workspace.detail(entry->run.id);
    wanted += "," + std::to_string(entry->run.id) + (entry->loaded ? "l" : "") + (detail ? "d" : "");
    steps += entry->series.size();
    over = over && entry->run.status != RunStatus::queued && entry->run.status != RunStatus::running;
  }
  if (wanted == made_for_ && (steps == made_of_ || (!over && !pace_.is_due()))) return false;
  const Pace::Work work(pace_);
  made_for_ = std::move(wanted);
  made_of_ = steps;
  is_over = over;
  rungs.clear();
  losses.clear();
  ecdf.clear();
  impossible = 0;
  if (runs.empty()) return true;
  loss_floor = runs.front()->run.loss_floor;

  std::vector<Summary> summaries;
  summaries.reserve(runs.size());
  std::vector<MeasuredRun> measured;
  for (const RunEntry* entry : runs) {
    // A run that goes on has no summary yet; one whose steps were not read has nothing else.
    const bool live = entry->run.status == RunStatus::running || entry->run.status == RunStatus::queued;
    summaries.push_back(live ? summarise(entry->series, entry->run.warmup_steps, entry->run.tokens_per_step)
                             : entry->summary);
    measured.push_back({&entry->run, &summaries.back(), &entry->series});
    ecdf[entry->run.id] = ecdf_of(*entry, summaries.back());
  }
  const std::vector<RungSummary> sums = summarise_rungs(measured, over ? Intervals::yes : Intervals::no, baseline);

  std::map<RunId, Energy> energies;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunDetail* detail = workspace.detail(runs[i]->run.id);
    if (!detail || detail->lanes.empty()) continue;
    const auto warm = static_cast<std::size_t>(summaries[i].warmup_steps);
    const std::int64_t last_warm = warm > 0 && warm <= runs[i]->series.size() ? runs[i]->series.step[warm - 1] : 0;
    energies[runs[i]->run.id] = energy_of(detail->lanes, last_warm, summaries[i].tokens_per_s);
  }
  const LadderRung* base = nullptr;
  rungs.reserve(sums.size());
  for (const RungSummary& sum : sums) {
    LadderRung& rung = rungs.emplace_back();
    rung.sum = sum;
    rung.first = *sum.runs.front();
    rung.sum.runs.clear();  // entries move; what is needed of them is copied
    const auto place = static_cast<std::size_t>(
        std::find_if(runs.begin(), runs.end(), [&](const RunEntry* e) { return e->run.id == rung.first.id; }) -
        runs.begin());
    rung.summary = summaries[place];
    rung.flags = flags_of(rung.first, rung.summary, static_cast<int>(sum.runs.size()), workspace.hardware);
    rung.impossible = is_impossible(rung.flags);
    rung.doubtful = std::any_of(rung.flags.begin(), rung.flags.end(), [](const Flag& flag) {
      return flag.id == FlagId::suspicious_throughput || flag.id == FlagId::no_sync ||
             flag.id == FlagId::dt_throughput_mismatch || flag.id == FlagId::clock_backwards;
    });
    impossible += rung.impossible ? 1 : 0;
    rung.limit = limit_of(rung.first, rung.summary, workspace.hardware);
    if (const auto energy = energies.find(rung.first.id); energy != energies.end()) rung.energy = energy->second;
    if (rungs.size() > 1) {
      const LadderRung& before = rungs[rungs.size() - 2];
      rung.setup_pays_back_after =
          break_even_steps(rung.first.setup_ms, before.summary.dt_ms_median, rung.summary.dt_ms_median);
    }
    if (sum.rung == baseline || (!base && rungs.size() == 1)) base = &rung;
  }

  std::vector<const Series*> repeats;
  for (const RunEntry* entry : runs) {
    LossCurve curve{.run = entry->run.id,
                    .rung = entry->run.rung,
                    .repeat = entry->run.repeat,
                    .title = entry->run.title.empty() ? entry->run.stage : entry->run.title,
                    .points = loss_points(*entry, energies[entry->run.id], lens),
                    .gap = {},
                    .levels = {},
                    .gap_levels = {}};
    curve.levels.follow(curve.points.x, curve.points.y);
    losses.push_back(std::move(curve));
    if (base && entry->run.rung == base->sum.rung) repeats.push_back(&entry->series);
  }
  band = loss_band(repeats);
  const auto reference = std::find_if(losses.begin(), losses.end(), [&](const LossCurve& curve) {
    return base && curve.rung == base->sum.rung && !curve.points.empty();
  });
  if (reference != losses.end()) {
    const Points against = reference->points;
    for (LossCurve& curve : losses) {
      if (curve.run == reference->run) continue;
      curve.gap = difference(curve.points, against);
      curve.gap_levels.follow(curve.gap.x, curve.gap.y);
    }
  }
  return true;
}

}  // namespace stepladder
