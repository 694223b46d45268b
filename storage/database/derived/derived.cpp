// Computes a run's summary and overviews in one pass over its steps and caches them if the run is over. Every write to
// the cache checks that the run hasn't changed meanwhile. A change of the figures' meaning needs a migration that
// empties the cache (migrations/runs.cpp has examples).
#include "storage/database/derived/derived.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/contention.h"
#include "storage/database/column_values.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/removal.h"

namespace stepladder {
namespace {

constexpr std::int64_t chunk_format =
    1;  // of overview_chunks, in the seal that is overviews.format; others are rebuilt
constexpr auto fewest_for_chunks = static_cast<std::int64_t>(most_in_chunk) + 1;  // steps

// Above these bits, nan_mask holds the row's seal.
enum SummaryNanBit { loss_first_bit, loss_last_bit, val_loss_last_bit, seal_bit };
static_assert(seal_bit + FigureSeal::bits <= 63);

std::int64_t nan_bits(const Summary& summary) {
  return nan_bit(summary.loss_first, loss_first_bit) | nan_bit(summary.loss_last, loss_last_bit) |
         nan_bit(summary.val_loss_last, val_loss_last_bit);
}

// All that a row of `summaries` holds. It is of a run rather than of a file, so that a copy of a run has the same row.
SealedContent content_of(const Run& run, const Summary& summary) {
  SealedContent content("summaries");
  content.add(run.uid).add(std::int64_t{run.warmup_steps}).add(run.tokens_per_step).add(nan_bits(summary));
  for (const std::int64_t count :
       {std::int64_t{summary.steps}, std::int64_t{summary.first_step}, std::int64_t{summary.last_step},
        std::int64_t{summary.warmup_steps}, std::int64_t{summary.spikes}, std::int64_t{summary.spike_period},
        std::int64_t{summary.pauses}, std::int64_t{summary.untimed_steps}, std::int64_t{summary.nonfinite_steps},
        std::int64_t{summary.first_nonfinite_step}, std::int64_t{summary.backwards_step},
        std::int64_t{summary.repeated_steps}, std::int64_t{summary.first_repeated_step},
        std::int64_t{summary.watched_steps}, std::int64_t{summary.disturbed_steps},
        std::int64_t{summary.disturbance.cores}, std::int64_t{summary.disturbance.needed_cores}})
    content.add(count);
  for (const double value :
       {summary.loss_first, summary.loss_last, summary.loss_min, summary.val_loss_last, summary.val_loss_min,
        summary.dt_ms_median, summary.dt_ms_p25, summary.dt_ms_p75, summary.tokens_per_s, summary.tokens_per_s_p25,
        summary.tokens_per_s_p75, summary.dt_ms_p5, summary.dt_ms_p95, summary.dt_grain_ms, summary.drift,
        summary.disturbance.other_cores, summary.disturbance.program_cores, summary.disturbance.other_gpu_load,
        summary.wall_ms_median})
    content.add(value);
  return content;
}

SealedContent content_of_overviews(RunId run, std::int64_t steps) {
  return SealedContent("overviews").add(run).add(chunk_format).add(steps);
}

// Checks over all rows of a run. A series holds each step once, so repeated steps and their clocks are checked here.
class RowChecks {
 public:
  void add(const StepReader::Row& row) {
    if (row.repeated && repeated_steps_++ == 0) first_repeated_step_ = row.step.step;
    if (row.step.at < at_before_ && backwards_step_ == 0) backwards_step_ = row.step.step;
    if (is_missing(row.step.at)) return;
    at_before_ = row.step.at;
    is_fine_ = is_fine_ || row.step.at != std::floor(row.step.at);
    if (rows_++ % rows_in_block != 0) return;
    const double ms = 1000 * (row.step.at - block_at_) / static_cast<double>(row.step.step - block_step_);
    if (ms > 0 && std::isfinite(ms)) wall_ms_.add(ms);
    block_at_ = row.step.at;
    block_step_ = row.step.step;
  }
  void complete(Summary& summary) const {
    summary.repeated_steps = repeated_steps_;
    summary.first_repeated_step = first_repeated_step_;
    if (summary.backwards_step == 0) summary.backwards_step = backwards_step_;
    // A clock of whole seconds is off by one in each block.
    const double ms = wall_ms_.quantile(0.5);
    if (is_fine_ || ms * rows_in_block > 8000) summary.wall_ms_median = ms;
  }

 private:
  static constexpr std::int64_t rows_in_block = 8;

  double at_before_ = missing;
  bool is_fine_ = false;  // the clock has fractions of a second
  std::int64_t rows_ = 0;
  double block_at_ = missing;
  std::int64_t block_step_ = 0;
  FineHistogram wall_ms_;
  std::int64_t repeated_steps_ = 0;
  std::int64_t first_repeated_step_ = 0;
  std::int64_t backwards_step_ = 0;
};

}  // namespace

// Writes buckets into the file as they become complete.
class Derived::Chunks {
 public:
  Chunks(Database& database, RunId run) : database_(database), run_(run) {
    for (const Quantity quantity : step_quantities)
      builders_.emplace_back([this, quantity](int level, std::span<const Bucket> buckets) {
        if (!buckets.empty())
          waiting_.push_back(
              {quantity, level, buckets.front().first_step, buckets.back().last_step, to_bytes(buckets)});
      });
  }

  void add(const StepRecord& record) {
    for (const Quantity quantity : step_quantities)
      builders_[static_cast<std::size_t>(quantity)].add(record.step, value_of(record, quantity));
  }
  void finish() {
    for (OverviewBuilder& builder : builders_) builder.finish();
  }

  // Uses the open transaction, or its own if it has something to write.
  void write() {
    if (waiting_.empty()) return;
    if (!std::exchange(begun_, true)) {  // left there by an earlier attempt, or another version
      database_.run("DELETE FROM overviews WHERE run_id = ?", run_);
      if (count() > 0) delete_rows(database_, "overview_chunks", run_);
    }
    Transaction transaction(database_);
    for (const Waiting& chunk : waiting_) {
      database_.insert("OR REPLACE INTO overview_chunks", "run_id, quantity, level, first_step, last_step, buckets",
                       run_, to_string(chunk.quantity), chunk.level, chunk.first_step, chunk.last_step,
                       Blob{chunk.bytes});
    }
    transaction.commit();
    written_ += std::ssize(waiting_);
    waiting_.clear();
  }

  // Whether all chunks are in the file: another process may have begun to write them anew.
  bool are_complete() { return written_ == count(); }

 private:
  std::int64_t count() { return database_.integer("SELECT count(*) FROM overview_chunks WHERE run_id = ?", run_); }

  struct Waiting {
    Quantity quantity;
    int level;
    std::int64_t first_step;
    std::int64_t last_step;
    std::string bytes;
  };
  Database& database_;
  const RunId run_;
  std::vector<OverviewBuilder> builders_;
  std::vector<Waiting> waiting_;
  std::int64_t written_ = 0;
  bool begun_ = false;
};

const std::string Derived::summary_columns =
    "summaries.nan_mask, summaries.steps, first_step, last_step, summaries.warmup_steps, loss_first, loss_last, "
    "loss_min, val_loss_last, val_loss_min, dt_ms_median, dt_ms_p25, dt_ms_p75, tokens_per_s, tokens_per_s_p25, "
    "tokens_per_s_p75, dt_ms_p5, dt_ms_p95, dt_grain_ms, drift, spikes, spike_period, pauses, untimed_steps, "
    "nonfinite_steps, first_nonfinite_step, backwards_step, repeated_steps, first_repeated_step, watched_steps, "
    "disturbed_steps, "
    "summaries.other_cores, summaries.program_cores, summaries.other_gpu_load, summaries.cores, "
    "summaries.needed_cores, "
    "wall_ms_median";

const std::string Derived::counts_for_run =
    "status NOT IN ('queued', 'running') AND asked_warmup = coalesce(runs.warmup_steps, -1) "
    "AND asked_tokens_per_step = coalesce(tokens_per_step, 0)";

std::optional<Summary> Derived::read(const Run& run, const Statement& row, int column) {
  Summary summary;
  const std::int64_t nan_mask = row.integer(column++);
  summary.steps = count_of(row, column++);
  summary.first_step = count_of(row, column++);
  summary.last_step = count_of(row, column++);
  summary.warmup_steps = count_of(row, column++);
  summary.loss_first = real_or_nan(row, column++, nan_mask, loss_first_bit);
  summary.loss_last = real_or_nan(row, column++, nan_mask, loss_last_bit);
  summary.loss_min = row.real(column++);
  summary.val_loss_last = real_or_nan(row, column++, nan_mask, val_loss_last_bit);
  summary.val_loss_min = row.real(column++);
  summary.dt_ms_median = row.real(column++);
  summary.dt_ms_p25 = row.real(column++);
  summary.dt_ms_p75 = row.real(column++);
  summary.tokens_per_s = row.real(column++);
  summary.tokens_per_s_p25 = row.real(column++);
  summary.tokens_per_s_p75 = row.real(column++);
  summary.dt_ms_p5 = row.real(column++);
  summary.dt_ms_p95 = row.real(column++);
  summary.dt_grain_ms = row.real(column++);
  summary.drift = row.real(column++);
  summary.spikes = count_of(row, column++);
  summary.spike_period = count_of(row, column++);
  summary.pauses = count_of(row, column++);
  summary.untimed_steps = count_of(row, column++);
  summary.nonfinite_steps = count_of(row, column++);
  summary.first_nonfinite_step = count_of(row, column++);
  summary.backwards_step = count_of(row, column++);
  summary.repeated_steps = count_of(row, column++);
  summary.first_repeated_step = count_of(row, column++);
  summary.watched_steps = count_of(row, column++);
  summary.disturbed_steps = count_of(row, column++);
  summary.disturbance.other_cores = row.real(column++);
  summary.disturbance.program_cores = row.real(column++);
  summary.disturbance.other_gpu_load = row.real(column++);
  summary.disturbance.cores = static_cast<int>(row.integer(column++));
  summary.disturbance.needed_cores = static_cast<int>(row.integer(column++));
  summary.wall_ms_median = row.real(column++);
  if (nan_mask >> seal_bit != seal_.of(content_of(run, summary))) return std::nullopt;
  return summary;
}

std::optional<Summary> Derived::kept(const Run& run) {
  Statement rows(database_,
                 "SELECT " + summary_columns +
                     " FROM summaries WHERE run_id = ? AND asked_warmup = ? AND asked_tokens_per_step = ?",
                 run.id, run.warmup_steps, run.tokens_per_step);
  if (!rows.step()) return std::nullopt;
  return read(run, rows, 0);
}

void Derived::keep(const Run& run, const Summary& summary) {
  // Inserts only if the run in the file has not changed since: another process may have resumed it.
  Statement insert(
      database_,
      "INSERT OR REPLACE INTO summaries (run_id, asked_warmup, asked_tokens_per_step, nan_mask, steps, "
      "first_step, last_step, warmup_steps, loss_first, loss_last, loss_min, val_loss_last, val_loss_min, "
      "dt_ms_median, dt_ms_p25, dt_ms_p75, tokens_per_s, tokens_per_s_p25, tokens_per_s_p75, "
      "dt_ms_p5, dt_ms_p95, dt_grain_ms, drift, spikes, spike_period, pauses, untimed_steps, nonfinite_steps, "
      "first_nonfinite_step, backwards_step, repeated_steps, first_repeated_step, watched_steps, "
      "disturbed_steps, other_cores, program_cores, other_gpu_load, cores, needed_cores, wall_ms_median) "
      "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, "
      "?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41 "
      "FROM runs WHERE id = ?1 AND status NOT IN ('queued', 'running') "
      "AND coalesce(runs.warmup_steps, -1) = ?2 AND coalesce(tokens_per_step, 0) = ?3 "
      "AND ended_at IS ?33",
      run.id, run.warmup_steps, run.tokens_per_step, nan_bits(summary) | seal_.of(content_of(run, summary)) << seal_bit,
      summary.steps, summary.first_step, summary.last_step, summary.warmup_steps, summary.loss_first, summary.loss_last,
      summary.loss_min, summary.val_loss_last, summary.val_loss_min, summary.dt_ms_median, summary.dt_ms_p25,
      summary.dt_ms_p75, summary.tokens_per_s, summary.tokens_per_s_p25, summary.tokens_per_s_p75, summary.dt_ms_p5,
      summary.dt_ms_p95, summary.dt_grain_ms, summary.drift, summary.spikes, summary.spike_period, summary.pauses,
      summary.untimed_steps, summary.nonfinite_steps, summary.first_nonfinite_step, summary.backwards_step,
      summary.repeated_steps, summary.first_repeated_step, run.ended_at, summary.watched_steps, summary.disturbed_steps,
      summary.disturbance.other_cores, summary.disturbance.program_cores, summary.disturbance.other_gpu_load,
      known(summary.disturbance.cores), known(summary.disturbance.needed_cores), summary.wall_ms_median);
  insert.run();
}

void Derived::note_complete_chunks(const Run& run, std::int64_t steps) {
  database_.run(
      "INSERT OR REPLACE INTO overviews (run_id, format, steps) SELECT id, ?, ? FROM runs "
      "WHERE id = ? AND status NOT IN ('queued', 'running') AND ended_at IS ?",
      seal_.here(content_of_overviews(run.id, steps)), steps, run.id, run.ended_at);
}

Summary Derived::make(const Run& run) {
  return make(run, nullptr);
}

std::vector<Summary> Derived::make(std::span<const Run* const> runs) {
  constexpr std::size_t at_once = 500;
  std::vector<Summary> summaries;
  std::vector<Made> later;
  for (const Run* const run : runs) {
    summaries.push_back(make(*run, &later));
    if (later.size() == at_once) keep(std::exchange(later, {}));
  }
  keep(later);
  return summaries;
}

// Of short runs, which have no chunks. A locked or full file prevents nothing: they are made again next time.
void Derived::keep(std::span<const Made> made) {
  if (made.empty()) return;
  try {
    Transaction transaction(database_);
    for (const Made& each : made) {
      keep(each.run, each.summary);
      note_complete_chunks(each.run, each.summary.steps);
    }
    transaction.commit();
  } catch (const StorageError&) {
  }
}

// `later` receives a summary that the caller is to keep; null: it is kept here.
Summary Derived::make(const Run& run, std::vector<Made>* later) {
  bool keeping = is_over(run.status) && !database_.read_only();
  SummaryBuilder builder(run.warmup_steps, run.tokens_per_step, SummaryBuilder::most_exact_steps, read_from(run));
  RowChecks checks;
  Chunks chunks(database_, run.id);
  const auto try_to = [&](auto&& write) {
    if (!keeping) return;
    try {
      write();
    } catch (const StorageError&) {
      keeping = false;  // it is rebuilt next time
    }
  };
  SystemMetricsReader samples(database_, run.id);
  ContentionOfSteps contention([&](SystemMetrics& sample) { return samples.next(sample); });
  StepReader reader(database_, run.id);
  for (std::vector<StepReader::Row> rows; reader.read(rows);) {
    for (const StepReader::Row& row : rows) {
      builder.add(row.step, contention.during(row.step.at, row.step.dt_ms));
      checks.add(row);
      if (keeping) chunks.add(row.step);
    }
    try_to([&] { chunks.write(); });
  }
  Summary summary = builder.finish();
  checks.complete(summary);
  if (is_missing(summary.tokens_per_s)) summary.tokens_per_s = run.printed.tokens_per_s;  // the log's own figure
  if (later && keeping && summary.steps < fewest_for_chunks) {
    later->push_back({run, summary});
    return summary;
  }
  try_to([&] {
    Transaction transaction(database_);
    if (summary.steps >= fewest_for_chunks) {
      chunks.finish();
      chunks.write();
    }
    keep(run, summary);
    if (summary.steps < fewest_for_chunks || chunks.are_complete()) note_complete_chunks(run, summary.steps);
    transaction.commit();
  });
  return summary;
}

void Derived::refresh(const Run& run) {
  try {
    make(run);
  } catch (const StorageError&) {
  }
}

void Derived::forget(RunId run) {
  // Without its row in `overviews`, a run's chunks don't count; they may be many, and are removed when new ones are
  // made.
  for (const char* sql : {"DELETE FROM summaries WHERE run_id = ?", "DELETE FROM overviews WHERE run_id = ?"})
    database_.run(sql, run);
}

std::optional<std::int64_t> Derived::steps_of_overviews(RunId run) {
  Statement row(database_, "SELECT steps, format FROM overviews WHERE run_id = ?", run);
  if (!row.step() || row.integer(1) != seal_.here(content_of_overviews(run, row.integer(0)))) return std::nullopt;
  return row.integer(0);
}

// Returns whether the run has chunks; short runs don't, since reading their steps is as fast.
bool Derived::ensure_overviews(const Run& run) {
  if (!is_over(run.status)) return false;
  if (const auto steps = steps_of_overviews(run.id)) return *steps >= fewest_for_chunks;
  if (database_.integer("SELECT count(*) FROM (SELECT 1 FROM steps WHERE run_id = ? LIMIT ?)", run.id,
                        fewest_for_chunks) < fewest_for_chunks)
    return false;
  if (database_.read_only()) return false;
  make(run);
  return true;
}

// Nullopt if chunks are incomplete or damaged. Level -1: the highest.
std::optional<Overview> Derived::kept_overview(RunId run, Quantity quantity, int level, StepRange range) {
  // Reads one state of the file: another process may be rewriting them.
  Transaction one_state(database_, Transaction::Kind::read);
  if (!steps_of_overviews(run)) return std::nullopt;
  Statement rows(
      database_,
      "SELECT level, first_step, buckets FROM overview_chunks WHERE run_id = ?1 AND quantity = ?2 AND level = "
      "CASE WHEN ?3 >= 0 THEN ?3 ELSE (SELECT max(level) FROM overview_chunks WHERE run_id = ?1 AND "
      "quantity = ?2) END AND last_step >= ?4 ORDER BY last_step",
      run, to_string(quantity), level, range.first);
  return overview_of_chunks(rows, range);
}

OverviewSource Derived::source(const Run& run, Quantity quantity) {
  OverviewSource source;
  if (ensure_overviews(run)) {
    source.chunks = [this, run, quantity](int level, StepRange range) {
      auto kept = kept_overview(run.id, quantity, level, range);
      if (kept || level >= 0 || database_.read_only()) return kept;
      make(run);
      return kept_overview(run.id, quantity, level, range);
    };
  }
  source.values = [this, id = run.id, quantity](StepRange range, const OverviewSource::Use& use) {
    StepReader reader(database_, id, range);
    for (std::vector<StepReader::Row> rows; reader.read(rows);)
      for (const StepReader::Row& row : rows) use(row.step.step, value_of(row.step, quantity));
  };
  return source;
}

Overview Derived::overview(const Run& run, Quantity quantity) {
  Overview overview = read_overview(source(run, quantity));
  overview.quantity = quantity;
  return overview;
}

Overview Derived::overview(const Run& run, Quantity quantity, StepRange range, std::size_t columns) {
  Overview overview = read_overview(source(run, quantity), range, columns);
  overview.quantity = quantity;
  return overview;
}

namespace {

std::int64_t values_between(const Overview& overview, StepRange range) {
  double sum = 0;
  for (const Bucket& bucket : overview.buckets) {
    const std::int64_t first = std::max(bucket.first_step, range.first);
    const std::int64_t last = std::min(bucket.last_step, range.last);
    if (first > last) continue;
    const auto steps = [](std::int64_t from, std::int64_t to) {
      return static_cast<double>(to) - static_cast<double>(from) + 1;
    };
    const double share = steps(first, last) / steps(bucket.first_step, bucket.last_step);
    sum += share * (static_cast<double>(bucket.count) + bucket.not_finite);
  }
  return static_cast<std::int64_t>(sum);
}

// Removes buckets that are wholly outside.
void cut(Overview& overview, StepRange range) {
  std::erase_if(overview.buckets,
                [&](const Bucket& bucket) { return bucket.last_step < range.first || bucket.first_step > range.last; });
}

// Values that are merged as they are read, so that twice as many as asked for at most are in memory.
Overview merged_values(const OverviewSource& source, StepRange range, std::size_t columns) {
  const std::size_t most = 16 * columns;
  Overview points;
  Bucket open;
  std::int64_t parts = 0;
  source.values(range, [&](std::int64_t step, double value) {
    if (is_missing(value)) return;
    if (parts++ == 0)
      open = bucket_of(step, value);
    else
      merge(open, bucket_of(step, value));
    if (parts < points.width) return;
    parts = 0;
    points.buckets.push_back(open);
    if (points.buckets.size() == 2 * most) points = coarser(std::move(points), most);
  });
  if (parts > 0) points.buckets.push_back(open);
  return points;
}

}  // namespace

std::optional<Overview> overview_of_chunks(Statement& rows, StepRange range) {
  Overview overview;
  while (rows.step() && rows.integer(1) <= range.last) {
    overview.width = width_of_level(static_cast<int>(rows.integer(0)));
    auto buckets = buckets_from(rows.blob(2));
    if (!buckets) return std::nullopt;
    if (overview.buckets.empty()) {
      overview.buckets = std::move(*buckets);
    } else {
      overview.buckets.insert(overview.buckets.end(), buckets->begin(), buckets->end());
    }
  }
  cut(overview, range);
  return overview;
}

Overview read_overview(const OverviewSource& source) {
  if (source.chunks) {
    if (auto kept = source.chunks(-1, {})) return *std::move(kept);
  }
  OverviewBuilder builder;
  source.values({}, [&](std::int64_t step, double value) { builder.add(step, value); });
  return builder.top(Quantity::loss);  // the caller knows which quantity it is
}

Overview read_overview(const OverviewSource& source, StepRange range, std::size_t columns) {
  columns = std::max<std::size_t>(columns, 1);
  if (source.chunks) {
    Overview top = read_overview(source);
    int level = level_for(values_between(top, range), columns);
    // Few values may be far apart (validation), so that reading them from the steps would read all steps between.
    const std::int64_t first = std::max(range.first, top.buckets.empty() ? 0 : top.buckets.front().first_step);
    const std::int64_t last = std::min(range.last, top.buckets.empty() ? -1 : top.buckets.back().last_step);
    if (last - first >= static_cast<std::int64_t>(16 * columns)) level = std::max(level, 1);
    if (width_of_level(level) >= top.width) {
      cut(top, range);
      return top;
    }
    if (level > 0) {
      if (auto kept = source.chunks(level, range)) return *std::move(kept);
    }
  }
  return merged_values(source, range, columns);  // few by now, if there are chunks
}

}  // namespace stepladder
