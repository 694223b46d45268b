// SQL for imported traces: the profile's steps by rank and kind, and its operators in their order. `insert` and `find`
// must cover the same columns. Rows of a trace are removed with it by ON DELETE CASCADE.
#include "storage/database/traces/trace_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/traces/prediction_store.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

constexpr const char* columns =
    "SELECT id, run_id, name, source_path, format, imported_at, on_gpu, has_steps, ranks, slices, hardware, "
    "precision, began_at, ended_at, host, pid, recipe FROM traces ";

StoredTrace read_row(const Statement& row) {
  StoredTrace trace{.id = row.integer(0),
                    .name = bounded(row.text(2), longest_name),
                    .source_path = bounded(row.text(3), longest_line),
                    .format = bounded(row.text(4), longest_name),
                    .hardware = bounded(row.text(10), longest_name),
                    .precision = bounded(row.text(11), longest_name),
                    .recipe = bounded(row.text(16), longest_line),
                    .imported_at = row.real(5),
                    .origin = {.began_at = row.real(12),
                               .ended_at = row.real(13),
                               .host = bounded(row.text(14), longest_name),
                               .pid = row.integer(15)}};
  if (!row.is_null(1)) trace.run = row.integer(1);
  trace.profile.on_gpu = row.integer(6) != 0;
  trace.profile.has_steps = row.integer(7) != 0;
  trace.profile.ranks = static_cast<int>(row.integer(8));
  trace.profile.calls = count_of(row, 9);
  return trace;
}

void insert_steps(Database& database, TraceId id, const std::vector<TracedStep>& steps) {
  for (const TracedStep& each : steps) {
    database.insert("INTO trace_steps", "trace_id, rank, step, start_ms, dt_ms", id, each.rank, each.step,
                    each.start_ms, each.dt_ms);
    for (const OperatorKind kind : all_operator_kinds) {
      const auto place = static_cast<std::size_t>(kind);
      if (each.busy_ms[place] <= 0) continue;
      database.insert("INTO trace_kinds", "trace_id, rank, step, kind, ms, busy_ms", id, each.rank, each.step,
                      to_string(kind), each.ms[place], each.busy_ms[place]);
    }
  }
}

std::vector<TracedStep> read_steps(Database& database, TraceId id) {
  std::vector<TracedStep> steps;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> places;
  Statement rows(database, "SELECT rank, step, start_ms, dt_ms FROM trace_steps WHERE trace_id = ? ORDER BY rank, step",
                 id);
  while (rows.step()) {
    places[{rows.integer(0), rows.integer(1)}] = steps.size();
    steps.push_back({.rank = static_cast<int>(rows.integer(0)),
                     .step = rows.integer(1),
                     .start_ms = measure_of(rows, 2),
                     .dt_ms = measure_of(rows, 3)});
  }
  Statement kinds(database, "SELECT rank, step, kind, ms, busy_ms FROM trace_kinds WHERE trace_id = ?", id);
  while (kinds.step()) {
    const auto step = places.find({kinds.integer(0), kinds.integer(1)});
    const std::string name = kinds.text(2);
    const auto kind =
        std::ranges::find_if(all_operator_kinds, [&](OperatorKind each) { return to_string(each) == name; });
    if (step == places.end() || kind == all_operator_kinds.end()) continue;
    steps[step->second].ms[static_cast<std::size_t>(*kind)] = measure_of(kinds, 3);
    steps[step->second].busy_ms[static_cast<std::size_t>(*kind)] = measure_of(kinds, 4);
  }
  return steps;
}

std::vector<TracedOperator> read_operators(Database& database, TraceId id) {
  return read_all(Statement(database,
                            "SELECT part, name, shapes, launcher, calls, self_ms, busy_ms, flops, bytes, sd_ms FROM "
                            "trace_operators WHERE trace_id "
                            "= ? ORDER BY place",
                            id),
                  [](const Statement& row) {
                    return TracedOperator{.time = {.part = bounded(std::string(in_words(row.text(0))), longest_name),
                                                   .name = bounded(row.text(1), longest_kernel_name),
                                                   .shapes = bounded(row.text(2), longest_name),
                                                   .calls = measure_of(row, 4),
                                                   .self_ms = measure_of(row, 5),
                                                   .flops = row.real(7)},
                                          .busy_ms = measure_of(row, 6),
                                          .launcher = bounded(row.text(3), longest_kernel_name),
                                          .bytes = row.real(8),
                                          .sd_ms = row.real(9)};
                  });
}

}  // namespace

TraceId TraceStore::insert(const StoredTrace& trace) {
  Transaction transaction(database_);
  const TraceProfile& profile = trace.profile;
  const bool is_free = trace.id != 0 && !database_.has("SELECT 1 FROM traces WHERE id = ?", trace.id);
  database_.insert("INTO traces",
                   "run_id, name, source_path, format, imported_at, on_gpu, has_steps, ranks, slices, hardware, "
                   "precision, began_at, ended_at, host, pid, recipe, id",
                   trace.run, bounded(trace.name, longest_name), known(bounded(trace.source_path, longest_line)),
                   trace.format, is_missing(trace.imported_at) ? unix_now() : trace.imported_at, profile.on_gpu,
                   profile.has_steps, profile.ranks, profile.calls, known(bounded(trace.hardware, longest_name)),
                   known(bounded(trace.precision, longest_name)), trace.origin.began_at, trace.origin.ended_at,
                   known(bounded(trace.origin.host, longest_name)),
                   trace.origin.pid > 0 ? std::optional(trace.origin.pid) : std::nullopt,
                   known(bounded(trace.recipe, longest_line)), is_free ? std::optional(trace.id) : std::nullopt);
  const TraceId id = database_.last_insert_id();
  insert_steps(database_, id, profile.steps);
  std::int64_t place = 0;
  for (const TracedOperator& each : profile.operators) {
    database_.insert("INTO trace_operators",
                     "trace_id, place, part, name, shapes, launcher, calls, self_ms, busy_ms, flops, bytes, sd_ms", id,
                     place++, each.time.part, each.time.name, each.time.shapes, each.launcher, each.time.calls,
                     each.time.self_ms, each.busy_ms, each.time.flops, each.bytes, each.sd_ms);
  }
  transaction.commit();
  return id;
}

std::vector<StoredTrace> TraceStore::list() {
  return read_all(
      Statement(database_, std::string(columns) +
                               "WHERE run_id IS NULL OR NOT EXISTS (SELECT 1 FROM curation WHERE curation.run_id = "
                               "traces.run_id AND deleted_at IS NOT NULL) ORDER BY id"),
      read_row);
}

double TraceStore::step_ms(TraceId id) {
  Statement row(database_, "SELECT avg(dt_ms) FROM trace_steps WHERE trace_id = ?", id);
  return row.step() ? row.real(0) : missing;
}

std::optional<StoredTrace> TraceStore::find(TraceId id) {
  Transaction one_state(database_, Transaction::Kind::read);
  Statement row(database_, std::string(columns) + "WHERE id = ?", id);
  if (!row.step()) return std::nullopt;
  StoredTrace trace = read_row(row);
  trace.profile.steps = read_steps(database_, id);
  trace.profile.operators = read_operators(database_, id);
  return trace;
}

std::optional<StoredTrace> TraceStore::find_same(const StoredTrace& trace, const TraceProfile& profile) {
  const auto in_order = [](std::vector<TracedStep> steps) {
    std::ranges::sort(steps, [](const TracedStep& a, const TracedStep& b) {
      return std::pair(a.rank, a.step) < std::pair(b.rank, b.step);
    });
    return steps;
  };
  const auto is_same = [](const TracedStep& a, const TracedStep& b) {
    return a.rank == b.rank && a.step == b.step && a.start_ms == b.start_ms && a.dt_ms == b.dt_ms;
  };
  const std::vector<TracedStep> steps = in_order(profile.steps);
  for (const StoredTrace& each : list()) {
    if ((trace.run && each.run != trace.run) || each.name != trace.name || each.profile.calls != profile.calls)
      continue;
    const std::vector<TracedStep> known = read_steps(database_, each.id);
    if (std::equal(known.begin(), known.end(), steps.begin(), steps.end(), is_same)) return find(each.id);
  }
  return std::nullopt;
}

void TraceStore::attach(TraceId id, std::optional<RunId> run) {
  database_.run("UPDATE traces SET run_id = ? WHERE id = ?", run, id);
}

void TraceStore::remove(TraceId id) {
  database_.run("DELETE FROM traces WHERE id = ?", id);
}

TraceDetails TraceStore::details() {
  return TraceDetails(database_);
}

PredictionStore TraceStore::predictions() {
  return PredictionStore(database_);
}

PassStore TraceStore::passes() {
  return PassStore(database_);
}

void TraceStore::in_one_transaction(const std::function<void()>& work) {
  Transaction transaction(database_);
  work();
  transaction.commit();
}

StepProfile TraceStore::profile_of_run(RunId run) {
  const auto newest = database_.find("SELECT max(id) FROM traces WHERE run_id = ?", run);
  const std::optional<StoredTrace> trace = newest ? find(*newest) : std::nullopt;
  return trace ? step_profile(*trace) : StepProfile{.run = run};
}

StepProfile step_profile(const StoredTrace& trace) {
  StepProfile profile{
      .run = trace.run.value_or(0), .at = trace.imported_at, .steps = static_cast<int>(trace.profile.steps.size())};
  for (const TracedOperator& each : trace.profile.operators) profile.operators.push_back(row_of(each));
  return profile;
}

namespace {

constexpr const char* pass_columns =
    "SELECT id, name, measured_at, host, hardware, device, model, batch, seq, vocab, threads, is_synced FROM passes ";

StoredPasses read_passes(const Statement& row) {
  StoredPasses passes{.id = row.integer(0), .name = bounded(row.text(1), longest_name), .measured_at = row.real(2)};
  passes.host = bounded(row.text(3), longest_name);
  passes.hardware = bounded(row.text(4), longest_name);
  passes.device = bounded(row.text(5), longest_name);
  passes.model = bounded(row.text(6), longest_name);
  passes.batch = count_of(row, 7);
  passes.seq = count_of(row, 8);
  passes.vocab = count_of(row, 9);
  passes.threads = count_of(row, 10);
  passes.is_synced = row.integer(11) != 0;
  return passes;
}

}  // namespace

std::int64_t PassStore::insert(const StoredPasses& passes) {
  Transaction transaction(database_);
  database_.insert("INTO passes",
                   "name, measured_at, host, hardware, device, model, batch, seq, vocab, threads, is_synced",
                   bounded(passes.name, longest_name), is_missing(passes.measured_at) ? unix_now() : passes.measured_at,
                   known(passes.host), known(passes.hardware), passes.device, passes.model, passes.batch, passes.seq,
                   passes.vocab, known(passes.threads), passes.is_synced);
  const std::int64_t id = database_.last_insert_id();
  for (const StoredCalls& each : passes.rows) {
    for (std::size_t call = 0; call < each.ms.size(); ++call) {
      database_.insert("INTO pass_calls", "pass_id, computation, precision, warmup, call, ms", id, each.computation,
                       each.precision, each.warmup, static_cast<std::int64_t>(call), each.ms[call]);
    }
  }
  transaction.commit();
  return id;
}

std::vector<StoredPasses> PassStore::list() {
  return read_all(Statement(database_, std::string(pass_columns) + "ORDER BY id"), read_passes);
}

std::optional<StoredPasses> PassStore::find(std::int64_t id) {
  Transaction one_state(database_, Transaction::Kind::read);
  Statement row(database_, std::string(pass_columns) + "WHERE id = ?", id);
  if (!row.step()) return std::nullopt;
  StoredPasses passes = read_passes(row);
  Statement calls(database_,
                  "SELECT computation, precision, warmup, ms FROM pass_calls WHERE pass_id = ? ORDER BY computation, "
                  "precision, warmup, call",
                  id);
  while (calls.step()) {
    const std::string computation = bounded(calls.text(0), longest_name);
    const std::string precision = bounded(calls.text(1), longest_name);
    const auto warmup = static_cast<int>(calls.integer(2));
    if (passes.rows.empty() || passes.rows.back().computation != computation ||
        passes.rows.back().precision != precision || passes.rows.back().warmup != warmup)
      passes.rows.push_back({.computation = computation, .precision = precision, .warmup = warmup, .ms = {}});
    passes.rows.back().ms.push_back(measure_of(calls, 3));
  }
  return passes;
}

void PassStore::remove(std::int64_t id) {
  database_.run("DELETE FROM passes WHERE id = ?", id);
}

}  // namespace stepladder
