// Events and steps are written, and recorded steps and what is derived from them are read here.
#include <algorithm>

#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store_impl.h"
#include "storage/database/step_rows.h"

namespace stepladder {
namespace {

Overview of_quantity(Overview overview, Quantity quantity) {
  overview.quantity = quantity;
  return overview;
}

}  // namespace

RecordedSteps RunStore::recorded_steps(RunId id) {
  RecordedSteps recorded;
  for (const char* table : {"steps", "superseded_steps"}) {
    Statement rows(impl_->database,
                   "SELECT count(*), coalesce(max(step), 0) FROM " + std::string(table) + " WHERE run_id = ?", id);
    rows.step();
    recorded.records += rows.integer(0);
    recorded.last_step = std::max(recorded.last_step, count_of(rows, 1));
  }
  return recorded;
}

MissingSteps RunStore::missing_steps(RunId id, std::int64_t first, std::int64_t last) {
  return stepladder::missing_steps(impl_->database, id, first, last);
}

Series RunStore::series(RunId id) {
  return read_series(impl_->database, id);
}

Series RunStore::series(RunId id, std::int64_t first_step, std::int64_t last_step) {
  return read_series(impl_->database, id, {first_step, last_step});
}

Series RunStore::excerpt(RunId id, std::int64_t most) {
  const auto of = run(id);
  if (!of) return {};
  const Summary whole = summary(*of);
  if (whole.steps <= most) return series(id);
  std::int64_t block = 256;
  while (block * whole.steps < 256 * (whole.last_step - whole.first_step)) block *= 2;  // a log of every tenth step
  std::int64_t stride = block;
  while (stride * most < block * whole.steps) stride *= 2;
  std::int64_t begin = whole.first_step / stride * stride;
  Series found;
  do {
    begin += stride;
    found = series(id, whole.first_step, begin - stride + block - 1);
  } while (std::ssize(found.step) < whole.warmup_steps && begin <= whole.last_step);
  for (; begin <= whole.last_step; begin += stride) {
    StepReader reader(impl_->database, id, {begin, begin + block - 1});
    for (std::vector<StepReader::Row> rows; reader.read(rows);)
      for (const StepReader::Row& row : rows) found.append(row.step);
  }
  return found;
}

void RunStore::for_steps(RunId id, const UseSteps& use) {
  StepReader reader(impl_->database, id, {}, StepReader::Parts::read);
  std::vector<StepRecord> steps;
  for (std::vector<StepReader::Row> rows; reader.read(rows);) {
    steps.clear();
    for (const StepReader::Row& row : rows) steps.push_back(row.step);
    use(steps);
  }
}

Overview RunStore::overview(RunId id, Quantity quantity) {
  if (!is_field(quantity)) return of_quantity(parts_->metrics.overview(id, to_string(quantity)), quantity);
  const auto run = read_run(impl_->database, id);
  return run ? impl_->derived.overview(*run, quantity) : Overview{.quantity = quantity};
}

Overview RunStore::overview(RunId id, Quantity quantity, std::int64_t first_step, std::int64_t last_step,
                            std::size_t columns) {
  if (!is_field(quantity))
    return of_quantity(parts_->metrics.overview(id, to_string(quantity), first_step, last_step, columns), quantity);
  const auto run = read_run(impl_->database, id);
  if (!run) return {.quantity = quantity};
  return impl_->derived.overview(*run, quantity, {first_step, last_step}, columns);
}

std::vector<Summary> RunStore::summaries(std::span<const Run> runs) {
  std::vector<Summary> all(runs.size());
  std::vector<const Run*> without;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::optional<Summary> kept;
    if (is_over(runs[i].status)) kept = impl_->derived.kept(runs[i]);
    if (kept) {
      all[i] = *std::move(kept);
    } else {
      without.push_back(&runs[i]);
      places.push_back(i);
    }
  }
  std::vector<Summary> made = impl_->derived.make(without);
  for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(made[i]);
  return all;
}

Summary RunStore::summary(const Run& run) {
  if (is_over(run.status)) {
    if (const auto kept = impl_->derived.kept(run)) return *kept;
  }
  return impl_->derived.make(run);
}

namespace {

// `without` gets the places of those that have no kept summary.
std::vector<RunAndSummary> read_with_kept_summaries(Database& database, Derived& derived,
                                                    std::vector<std::size_t>& without) {
  std::vector<RunAndSummary> all;
  Statement rows(database, "SELECT " + run_columns + ", " + Derived::summary_columns +
                               " FROM runs LEFT JOIN summaries ON run_id = runs.id AND " + Derived::counts_for_run +
                               " WHERE " + is_listed + " ORDER BY created_at, runs.id");
  while (rows.step()) {
    Run run = read_run(database, rows);
    std::optional<Summary> kept;
    if (!rows.is_null(run_column_count)) kept = derived.read(run, rows, run_column_count);
    if (!kept) without.push_back(all.size());
    all.push_back({std::move(run), kept.value_or(Summary{})});
  }
  return all;
}

}  // namespace

std::vector<RunAndSummary> RunStore::runs_with_kept_summaries() {
  std::vector<std::size_t> without;
  std::vector<RunAndSummary> all = read_with_kept_summaries(impl_->database, impl_->derived, without);
  for (RunAndSummary& each : all) each.run = marked(std::move(each.run));
  return all;
}

std::vector<RunAndSummary> RunStore::runs_with_summaries() {
  std::vector<std::size_t> without;
  std::vector<RunAndSummary> all = read_with_kept_summaries(impl_->database, impl_->derived, without);
  for (RunAndSummary& each : all) each.run = marked(std::move(each.run));
  std::vector<const Run*> runs;
  for (const std::size_t i : without) runs.push_back(&all[i].run);
  std::vector<Summary> made = impl_->derived.make(runs);
  for (std::size_t i = 0; i < without.size(); ++i) all[without[i]].summary = std::move(made[i]);
  return all;
}

std::vector<RunId> RunStore::apply(std::span<const RunEvent> events) {
  if (events.empty()) return {};
  const auto counted = count_steps_of_finished(impl_->database, events);
  Transaction transaction(impl_->database);
  const WrittenEvents written = write_events(impl_->database, events, std::nullopt, counted);
  for (const RunId id : written.outdated) impl_->derived.forget(id);
  transaction.commit();
  // After the commit, since reading the steps of a long run takes a while and others want to write too.
  for (const RunId id : written.ended) parts_->metrics.refresh(id);
  return written.missing;
}

RunId RunStore::insert_finished(Run run, std::span<const StepRecord> steps) {
  if (!is_over(run.status)) run.status = RunStatus::finished;
  Transaction transaction(impl_->database);
  run.id = insert_run(impl_->database, run, std::nullopt);
  insert_steps(impl_->database, run.id, steps);
  transaction.commit();
  impl_->derived.refresh(existing_run(run.id));  // which has a uid now
  return run.id;
}

void RunStore::append_steps(RunId run, std::span<const StepRecord> steps) {
  insert_steps(impl_->database, run, steps);
  impl_->derived.forget(run);
}

void RunStore::in_slices(const std::function<bool()>& piece) {
  stepladder::in_slices(impl_->database, piece);
}

void RunStore::in_one_transaction(const std::function<void()>& work) {
  Transaction transaction(impl_->database);
  work();
  transaction.commit();
}

}  // namespace stepladder
