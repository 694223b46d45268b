// Computes a run's summary and overviews in one pass over its steps and caches them if the run is over. Every write to
// the cache checks that the run hasn't changed meanwhile. A change of the figures' meaning needs a migration that
// empties the cache (migrations/runs.cpp has examples).
#include "storage/database/derived/derived.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/analysis/wall_clock.h"
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

struct SummaryCount {
  const char* column;
  std::int64_t Summary::*value;
};
constexpr SummaryCount summary_counts[] = {{"steps", &Summary::steps},
                                           {"first_step", &Summary::first_step},
                                           {"last_step", &Summary::last_step},
                                           {"warmup_steps", &Summary::warmup_steps},
                                           {"spikes", &Summary::spikes},
                                           {"spike_period", &Summary::spike_period},
                                           {"pauses", &Summary::pauses},
                                           {"untimed_steps", &Summary::untimed_steps},
                                           {"nonfinite_steps", &Summary::nonfinite_steps},
                                           {"first_nonfinite_step", &Summary::first_nonfinite_step},
                                           {"backwards_step", &Summary::backwards_step},
                                           {"repeated_steps", &Summary::repeated_steps},
                                           {"first_repeated_step", &Summary::first_repeated_step},
                                           {"watched_steps", &Summary::watched_steps},
                                           {"disturbed_steps", &Summary::disturbed_steps}};

struct SummaryValue {
  const char* column;
  double Summary::*value;
  int nan_bit = -1;  // in nan_mask, if it may be NaN
};
constexpr SummaryValue summary_values[] = {{"loss_first", &Summary::loss_first, loss_first_bit},
                                           {"loss_last", &Summary::loss_last, loss_last_bit},
                                           {"loss_min", &Summary::loss_min},
                                           {"val_loss_last", &Summary::val_loss_last, val_loss_last_bit},
                                           {"val_loss_min", &Summary::val_loss_min},
                                           {"dt_ms_median", &Summary::dt_ms_median},
                                           {"dt_ms_p25", &Summary::dt_ms_p25},
                                           {"dt_ms_p75", &Summary::dt_ms_p75},
                                           {"tokens_per_s", &Summary::tokens_per_s},
                                           {"tokens_per_s_p25", &Summary::tokens_per_s_p25},
                                           {"tokens_per_s_p75", &Summary::tokens_per_s_p75},
                                           {"dt_ms_p5", &Summary::dt_ms_p5},
                                           {"dt_ms_p95", &Summary::dt_ms_p95},
                                           {"dt_grain_ms", &Summary::dt_grain_ms},
                                           {"drift", &Summary::drift},
                                           {"wall_ms_median", &Summary::wall_ms_median}};

// ", steps, first_step", each behind `before`: counts, values, then the use that others made of the machine.
std::string figure_columns(const std::string& before) {
  std::string columns;
  const auto add = [&](const char* name) { columns += ", " + before + name; };
  for (const SummaryCount& count : summary_counts) add(count.column);
  for (const SummaryValue& value : summary_values) add(value.column);
  for_each_field(contention_fields, [&](const auto& field) { add(field.name); });
  return columns;
}

std::int64_t nan_bits(const Summary& summary) {
  std::int64_t bits = 0;
  for (const auto& [column, value, bit] : summary_values)
    if (bit >= 0) bits |= nan_bit(summary.*value, bit);
  return bits;
}

// All that a row of `summaries` holds. It is of a run rather than of a file, so that a copy of a run has the same row.
SealedContent content_of(const Run& run, const Summary& summary) {
  SealedContent content("summaries");
  content.add(run.uid).add(std::int64_t{run.warmup_steps}).add(run.tokens_per_step).add(nan_bits(summary));
  const Contention& others = summary.disturbance;
  for (const SummaryCount& count : summary_counts) content.add(summary.*count.value);
  content.add(std::int64_t{others.cores}).add(std::int64_t{others.needed_cores});
  for (const SummaryValue& value : summary_values) content.add(summary.*value.value);
  return content.add(others.other_cores).add(others.program_cores).add(others.other_gpu_load);
}

SealedContent content_of_overviews(RunId run, std::int64_t steps) {
  return SealedContent("overviews").add(run).add(chunk_format).add(steps);
}

// A series holds each step once, so repeated ones are counted here.
class RepeatedSteps {
 public:
  void add(const StepReader::Row& row) {
    if (row.repeated && count_++ == 0) first_ = row.step.step;
  }
  void complete(Summary& summary) const {
    summary.repeated_steps = count_;
    summary.first_repeated_step = first_;
  }

 private:
  std::int64_t count_ = 0;
  std::int64_t first_ = 0;
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

const std::string Derived::summary_columns = "summaries.nan_mask" + figure_columns("summaries.");

const std::string Derived::counts_for_run =
    "status NOT IN ('queued', 'running') AND asked_warmup = coalesce(runs.warmup_steps, -1) "
    "AND asked_tokens_per_step = coalesce(tokens_per_step, 0)";

std::optional<Summary> Derived::read(const Run& run, const Statement& row, int column) {
  Summary summary;
  const std::int64_t nan_mask = row.integer(column++);
  for (const SummaryCount& count : summary_counts) summary.*count.value = count_of(row, column++);
  for (const auto& [name, value, bit] : summary_values)
    summary.*value = bit < 0 ? row.real(column++) : real_or_nan(row, column++, nan_mask, bit);
  for_each_field(contention_fields, [&]<class Value>(const ContentionMember<Value>& field) {
    read_value(row, column++, summary.disturbance.*field.member, Unknown<Value>{});
  });
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
  static const std::string columns = figure_columns("");
  static const std::string sql =
      "INSERT OR REPLACE INTO summaries (run_id, asked_warmup, asked_tokens_per_step, nan_mask" + columns +
      ") SELECT ?1, ?2, ?3, ?5" + places_of(columns) +
      " FROM runs WHERE id = ?1 AND status NOT IN ('queued', 'running') AND coalesce(runs.warmup_steps, -1) = ?2 AND "
      "coalesce(tokens_per_step, 0) = ?3 AND ended_at IS ?4";
  Statement insert(database_, sql, run.id, run.warmup_steps, run.tokens_per_step, run.ended_at,
                   nan_bits(summary) | seal_.of(content_of(run, summary)) << seal_bit);
  for (const SummaryCount& count : summary_counts) insert.bind(summary.*count.value);
  for (const SummaryValue& value : summary_values) insert.bind(summary.*value.value);
  for_each_field(contention_fields, [&]<class Value>(const ContentionMember<Value>& field) {
    bind_value(insert, summary.disturbance.*field.member, Unknown<Value>{});
  });
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
  WallClock wall_clock;
  RepeatedSteps repeated;
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
      wall_clock.add(row.step);
      repeated.add(row);
      if (keeping) chunks.add(row.step);
    }
    try_to([&] { chunks.write(); });
  }
  Summary summary = builder.finish();
  wall_clock.complete(summary);
  repeated.complete(summary);
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
