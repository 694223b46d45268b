#include "storage/run_store.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

#include "storage/column_values.h"
#include "storage/database.h"
#include "storage/derived.h"
#include "storage/process.h"
#include "storage/schema.h"
#include "storage/step_rows.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

double or_now(double at) {
  return is_missing(at) ? unix_now() : at;
}

bool is_over(RunStatus status) {
  return status != RunStatus::queued && status != RunStatus::running;
}

constexpr const char* run_columns =
    "runs.id, runs.name, ladder_id, rung, repeat, stage, title, changed, status, reason, source, source_path, "
    "created_at, started_at, ended_at, planned_steps, tokens_per_step, runs.warmup_steps, params, "
    "model_flops_per_token, loss_floor, device, hardware, precision, sync, recipe, environment, parent_id, "
    "forked_at_step, loss_against, attention, setup_ms, peak_memory_bytes";
constexpr int run_column_count = 33;

constexpr const char* not_in_bin = "runs.id NOT IN (SELECT run_id FROM curation WHERE deleted_at IS NOT NULL)";

Run read_run(const Statement& row) {
  Run run;
  int column = 0;
  run.id = row.integer(column++);
  run.name = row.text(column++);
  if (!row.is_null(column)) run.ladder = row.integer(column);
  ++column;
  run.rung = static_cast<int>(row.integer(column++));
  run.repeat = static_cast<int>(row.integer(column++));
  run.stage = row.text(column++);
  run.title = row.text(column++);
  run.changed = row.text(column++);
  run.status = run_status_from(row.text(column++));
  run.reason = row.text(column++);
  run.source = row.text(column++);
  run.source_path = row.text(column++);
  run.created_at = row.real(column++);
  run.started_at = row.real(column++);
  run.ended_at = row.real(column++);
  run.planned_steps = row.integer(column++);
  run.tokens_per_step = row.integer(column++);
  run.warmup_steps = row.is_null(column) ? -1 : row.integer(column);
  ++column;
  run.params = row.integer(column++);
  run.model_flops_per_token = row.real(column++);
  run.loss_floor = row.real(column++);
  run.device = row.text(column++);
  run.hardware = row.text(column++);
  run.precision = row.text(column++);
  run.sync = sync_from(row.text(column++));
  run.recipe = row.text(column++);
  run.environment = row.text(column++);
  if (!row.is_null(column)) run.parent = row.integer(column);
  ++column;
  run.forked_at_step = row.integer(column++);
  run.loss_against = static_cast<int>(row.integer(column++));
  run.attention = row.text(column++);
  run.setup_ms = row.real(column++);
  run.peak_memory_bytes = row.integer(column++);
  return run;
}

}  // namespace

struct RunStore::Impl {
  explicit Impl(Database::InMemory in_memory) : database(in_memory) { prepare_schema(database); }
  Impl(const fs::path& path, Mode mode)
      : database(path, mode == Mode::read_only ? Database::Mode::read_only : Database::Mode::read_write) {
    prepare_schema(database);
  }

  RunId insert_run(const Run& run, const std::optional<ProcessIdentity>& owner);
  void insert_lane_sample(const LaneSample& sample);
  void insert_sample(const TextSample& sample);
  void insert_console(const ConsoleText& printed);
  void start(const RunStarted& started);
  void end(const RunEnded& ended);
  std::optional<Run> run(RunId id);
  std::vector<Run> read_runs(Statement& rows);
  Run checked(const Statement& row) const;

  Database database;
  Derived derived{database};
};

RunId RunStore::Impl::insert_run(const Run& run, const std::optional<ProcessIdentity>& owner) {
  static const std::string sql =
      "INSERT INTO runs (id, name, ladder_id, rung, repeat, stage, title, changed, status, reason, source, "
      "source_path, created_at, started_at, ended_at, planned_steps, tokens_per_step, warmup_steps, params, "
      "model_flops_per_token, loss_floor, device, hardware, precision, sync, recipe, environment, parent_id, "
      "forked_at_step, loss_against, attention, setup_ms, peak_memory_bytes, owner_pid, owner_start, owner_boot) "
      "VALUES ((SELECT max(coalesce(max(id), 0), coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE key = "
      "'highest_run'), 0)) + 1 FROM runs), "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  Statement insert(database, sql);
  insert.bind(run.name).bind(run.ladder).bind(run.rung).bind(run.repeat);
  insert.bind(known(run.stage)).bind(known(run.title)).bind(known(run.changed));
  insert.bind(to_string(run.status)).bind(known(run.reason)).bind(known(run.source)).bind(known(run.source_path));
  insert.bind(or_now(run.created_at)).bind(run.started_at).bind(run.ended_at);
  insert.bind(known(run.planned_steps)).bind(known(run.tokens_per_step)).bind(known(run.warmup_steps, -1));
  insert.bind(known(run.params)).bind(run.model_flops_per_token).bind(run.loss_floor);
  insert.bind(known(run.device)).bind(known(run.hardware)).bind(known(run.precision)).bind(to_string(run.sync));
  insert.bind(known(run.recipe)).bind(known(run.environment)).bind(run.parent).bind(known(run.forked_at_step));
  insert.bind(known(std::int64_t{run.loss_against}));
  insert.bind(known(run.attention)).bind(run.setup_ms).bind(known(run.peak_memory_bytes));
  if (owner)
    insert.bind(owner->pid).bind(known(owner->start)).bind(known(owner->boot));
  else
    insert.bind_null().bind_null().bind_null();
  insert.run();
  return database.last_insert_id();
}

void RunStore::Impl::insert_lane_sample(const LaneSample& sample) {
  Statement insert(database,
                   "INSERT OR REPLACE INTO lanes (run_id, at, step, cpu_load, process_cores, resident_bytes, gpu_load, "
                   "gpu_clock_mhz, gpu_power_w, gpu_temperature_c, gpu_memory_bytes, throttle_reason) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(sample.run).bind(sample.at).bind(sample.step).bind(sample.cpu_load).bind(sample.process_cores);
  insert.bind(known(sample.resident_bytes)).bind(sample.gpu_load).bind(sample.gpu_clock_mhz);
  insert.bind(sample.gpu_power_w).bind(sample.gpu_temperature_c).bind(known(sample.gpu_memory_bytes));
  insert.bind(known(sample.throttle_reason)).run();
}

void RunStore::Impl::insert_sample(const TextSample& sample) {
  Statement insert(database, "INSERT OR REPLACE INTO samples (run_id, step, at, text) VALUES (?, ?, ?, ?)");
  insert.bind(sample.run).bind(sample.step).bind(sample.at).bind(sample.text).run();
}

void RunStore::Impl::insert_console(const ConsoleText& printed) {
  Statement insert(database,
                   "INSERT INTO console (run_id, part, at, text) VALUES (?1, (SELECT coalesce(max(part), 0) + 1 FROM "
                   "console WHERE run_id = ?1), ?2, ?3)");
  insert.bind(printed.run).bind(printed.at).bind_blob(printed.text).run();
}

void RunStore::Impl::start(const RunStarted& started) {
  // A resumed run starts again: it is this process's from now on, and no longer over.
  Statement update(database,
                   "UPDATE runs SET status = 'running', reason = NULL, ended_at = NULL, started_at = ?, "
                   "tokens_per_step = coalesce(?, tokens_per_step), params = coalesce(?, params), "
                   "model_flops_per_token = coalesce(?, model_flops_per_token), loss_floor = coalesce(?, loss_floor), "
                   "device = coalesce(?, device), hardware = coalesce(?, hardware), "
                   "precision = coalesce(?, precision), attention = coalesce(?, attention), "
                   "setup_ms = coalesce(?, setup_ms), sync = ?, recipe = coalesce(?, recipe), owner_pid = ?, "
                   "owner_start = ?, owner_boot = ? WHERE id = ?");
  const ProcessIdentity owner = this_process();
  update.bind(started.at).bind(known(started.tokens_per_step)).bind(known(started.params));
  update.bind(started.params > 0 ? 6.0 * static_cast<double>(started.params) : missing).bind(started.loss_floor);
  update.bind(known(started.device)).bind(known(started.hardware)).bind(known(started.precision));
  update.bind(known(started.attention)).bind(started.setup_ms);
  update.bind(to_string(started.sync)).bind(known(started.recipe));
  update.bind(owner.pid).bind(known(owner.start)).bind(known(owner.boot)).bind(started.run);
  update.run();
  if (database.changes() == 0)
    throw StorageError("run " + std::to_string(started.run) + " is not in " + database.file().string());

  if (started.torch_version.empty()) return;
  Statement environment(database,
                        "UPDATE runs SET environment = json_set(CASE WHEN json_valid(environment) THEN environment "
                        "ELSE '{}' END, '$.torch_version', ?) WHERE id = ?");
  environment.bind(started.torch_version).bind(started.run).run();
}

void RunStore::Impl::end(const RunEnded& ended) {
  Statement update(database,
                   "UPDATE runs SET status = ?, reason = ?, ended_at = ?, "
                   "peak_memory_bytes = coalesce(?, peak_memory_bytes) WHERE id = ?");
  update.bind(to_string(ended.status)).bind(known(ended.reason)).bind(ended.at);
  update.bind(known(ended.peak_memory_bytes)).bind(ended.run).run();
  if (database.changes() == 0)
    throw StorageError("run " + std::to_string(ended.run) + " is not in " + database.file().string());
  Statement(database, "DELETE FROM requests WHERE run_id = ?").bind(ended.run).run();
}

Run RunStore::Impl::checked(const Statement& row) const {
  try {
    return read_run(row);
  } catch (const std::invalid_argument& unknown) {
    throw StorageError(database.file().string() + " is damaged: " + unknown.what());
  }
}

std::vector<Run> RunStore::Impl::read_runs(Statement& rows) {
  std::vector<Run> runs;
  while (rows.step()) runs.push_back(checked(rows));
  return runs;
}

std::optional<Run> RunStore::Impl::run(RunId id) {
  Statement rows(database, std::string("SELECT ") + run_columns + " FROM runs WHERE id = ?");
  rows.bind(id);
  if (!rows.step()) return std::nullopt;
  return checked(rows);
}

RunStore::RunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore& RunStore::operator=(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

RunStore RunStore::open(const fs::path& file, Mode mode) {
  return RunStore(std::make_unique<Impl>(file, mode));
}

RunStore RunStore::in_memory() {
  return RunStore(std::make_unique<Impl>(Database::InMemory()));
}

LadderId RunStore::create_ladder(const Ladder& ladder) {
  Statement insert(impl_->database,
                   "INSERT INTO ladders (name, source, source_path, notes, created_at) VALUES (?, ?, ?, ?, ?)");
  insert.bind(ladder.name).bind(known(ladder.source)).bind(known(ladder.source_path)).bind(known(ladder.notes));
  insert.bind(or_now(ladder.created_at)).run();
  return impl_->database.last_insert_id();
}

RunId RunStore::create_run(const Run& run) {
  return impl_->insert_run(run, is_over(run.status) ? std::nullopt : std::optional(this_process()));
}

void RunStore::queue_again(RunId run, std::int64_t planned_steps) {
  const ProcessIdentity owner = this_process();
  Statement update(impl_->database,
                   "UPDATE runs SET status = 'queued', planned_steps = ?, owner_pid = ?, owner_start = ?, "
                   "owner_boot = ? WHERE id = ? AND status NOT IN ('queued', 'running')");
  update.bind(planned_steps).bind(owner.pid).bind(known(owner.start)).bind(known(owner.boot)).bind(run).run();
  if (impl_->database.changes() == 0) throw StorageError("run " + std::to_string(run) + " is not over");
}

void RunStore::apply(std::span<const RunEvent> events) {
  if (events.empty()) return;
  Transaction transaction(impl_->database);
  std::map<RunId, bool> ended;  // the runs that these events change, and whether they leave them over
  for (const RunEvent& event : events) {
    if (const auto* started = std::get_if<RunStarted>(&event)) {
      impl_->start(*started);
      ended[started->run] = false;
    } else if (const auto* step = std::get_if<StepRecord>(&event)) {
      insert_step(impl_->database, step->run, *step);
      ended.try_emplace(step->run, false);
    } else if (const auto* end = std::get_if<RunEnded>(&event)) {
      impl_->end(*end);
      ended[end->run] = true;
    } else if (const auto* sample = std::get_if<LaneSample>(&event)) {
      impl_->insert_lane_sample(*sample);
    } else if (const auto* text = std::get_if<TextSample>(&event)) {
      impl_->insert_sample(*text);
    } else if (const auto* printed = std::get_if<ConsoleText>(&event)) {
      impl_->insert_console(*printed);
    }
  }
  for (const auto& [id, over] : ended) impl_->derived.forget(id);
  transaction.commit();
  // Afterwards, since the steps of a long run take a while to read and others want to write too.
  for (const auto& [id, over] : ended)
    if (over) impl_->derived.refresh(*impl_->run(id));
}

RunId RunStore::insert_finished(Run run, std::span<const StepRecord> steps) {
  if (!is_over(run.status)) run.status = RunStatus::finished;
  Transaction transaction(impl_->database);
  run.id = impl_->insert_run(run, std::nullopt);
  for (const StepRecord& step : steps) insert_step(impl_->database, run.id, step);
  transaction.commit();
  impl_->derived.refresh(run);
  return run.id;
}

void RunStore::append_steps(RunId run, std::span<const StepRecord> steps) {
  insert_steps(impl_->database, run, steps);
  impl_->derived.forget(run);
}

void RunStore::update_run(const Run& run) {
  Statement update(impl_->database,
                   "UPDATE runs SET name = ?, ladder_id = ?, rung = ?, repeat = ?, stage = ?, title = ?, changed = ?, "
                   "status = ?, reason = ?, source = ?, source_path = ?, started_at = ?, ended_at = ?, "
                   "planned_steps = ?, tokens_per_step = ?, warmup_steps = ?, params = ?, model_flops_per_token = ?, "
                   "loss_floor = ?, device = ?, hardware = ?, precision = ?, sync = ?, recipe = ?, environment = ? "
                   "WHERE id = ?");
  update.bind(run.name).bind(run.ladder).bind(run.rung).bind(run.repeat);
  update.bind(known(run.stage)).bind(known(run.title)).bind(known(run.changed));
  update.bind(to_string(run.status)).bind(known(run.reason)).bind(known(run.source)).bind(known(run.source_path));
  update.bind(run.started_at).bind(run.ended_at);
  update.bind(known(run.planned_steps)).bind(known(run.tokens_per_step)).bind(known(run.warmup_steps, -1));
  update.bind(known(run.params)).bind(run.model_flops_per_token).bind(run.loss_floor);
  update.bind(known(run.device)).bind(known(run.hardware)).bind(known(run.precision)).bind(to_string(run.sync));
  update.bind(known(run.recipe)).bind(known(run.environment)).bind(run.id);
  update.run();
  if (impl_->database.changes() == 0)
    throw StorageError("run " + std::to_string(run.id) + " is not in " + impl_->database.file().string());
  impl_->derived.forget(run.id);
}

RunStore::Batch::Batch(RunStore& store) : transaction_(std::make_unique<Transaction>(store.impl_->database)) {}
RunStore::Batch::~Batch() = default;

void RunStore::Batch::commit() {
  transaction_->commit();
}

void RunStore::in_one_transaction(const std::function<void()>& work) {
  Transaction transaction(impl_->database);
  work();
  transaction.commit();
}

std::vector<Ladder> RunStore::ladders() {
  Statement rows(
      impl_->database,
      "SELECT id, name, source, source_path, notes, created_at FROM ladders WHERE "
      "NOT EXISTS (SELECT 1 FROM runs WHERE ladder_id = ladders.id) OR EXISTS (SELECT 1 FROM runs WHERE "
      "ladder_id = ladders.id AND runs.id NOT IN (SELECT run_id FROM curation WHERE deleted_at IS NOT NULL)) "
      "ORDER BY created_at, id");
  std::vector<Ladder> ladders;
  while (rows.step())
    ladders.push_back({.id = rows.integer(0),
                       .name = rows.text(1),
                       .source = rows.text(2),
                       .source_path = rows.text(3),
                       .notes = rows.text(4),
                       .created_at = rows.real(5)});
  return ladders;
}

std::vector<Run> RunStore::runs() {
  Statement rows(impl_->database,
                 std::string("SELECT ") + run_columns + " FROM runs WHERE " + not_in_bin + " ORDER BY created_at, id");
  return impl_->read_runs(rows);
}

std::optional<Run> RunStore::run(RunId id) {
  return impl_->run(id);
}

std::vector<Run> RunStore::runs_of(LadderId ladder) {
  Statement rows(impl_->database, std::string("SELECT ") + run_columns + " FROM runs WHERE ladder_id = ? AND " +
                                      not_in_bin + " ORDER BY rung, repeat, id");
  rows.bind(ladder);
  return impl_->read_runs(rows);
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
  } while (std::ssize(found.step) < whole.warmup_steps);
  for (; begin <= whole.last_step; begin += stride) {
    StepReader reader(impl_->database, id, {begin, begin + block - 1});
    for (std::vector<StepReader::Row> rows; reader.read(rows);)
      for (const StepReader::Row& row : rows) found.append(row.step);
  }
  return found;
}

Overview RunStore::overview(RunId id, Quantity quantity) {
  const auto run = impl_->run(id);
  return run ? impl_->derived.overview(*run, quantity) : Overview{.quantity = quantity};
}

Overview RunStore::overview(RunId id, Quantity quantity, std::int64_t first_step, std::int64_t last_step,
                            std::size_t columns) {
  const auto run = impl_->run(id);
  if (!run) return {.quantity = quantity};
  return impl_->derived.overview(*run, quantity, {first_step, last_step}, columns);
}

std::vector<StepRecord> RunStore::step_records(RunId id) {
  Statement rows(impl_->database,
                 "SELECT step, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, nan_mask, data_ms, forward_ms, "
                 "backward_ms, optimizer_ms, communication_ms FROM latest_steps WHERE run_id = ? ORDER BY step");
  rows.bind(id);
  std::vector<StepRecord> records;
  while (rows.step()) {
    const std::int64_t nan_mask = rows.integer(8);
    records.push_back({.run = id,
                       .step = rows.integer(0),
                       .loss = real_or_nan(rows, 1, nan_mask, 0),
                       .val_loss = real_or_nan(rows, 2, nan_mask, 1),
                       .dt_ms = rows.real(3),
                       .tokens = rows.integer(4),
                       .lr = rows.real(5),
                       .grad_norm = real_or_nan(rows, 6, nan_mask, 2),
                       .at = rows.real(7),
                       .parts = {rows.real(9), rows.real(10), rows.real(11), rows.real(12), rows.real(13)}});
  }
  return records;
}

Summary RunStore::summary(const Run& run) {
  if (is_over(run.status)) {
    if (const auto kept = impl_->derived.kept(run)) return *kept;
  }
  return impl_->derived.make(run);
}

std::vector<RunAndSummary> RunStore::runs_with_summaries() {
  std::vector<RunAndSummary> all;
  std::vector<std::size_t> to_make;
  {
    Statement rows(impl_->database, std::string("SELECT ") + run_columns + ", " + Derived::summary_columns +
                                        " FROM runs LEFT JOIN summaries ON run_id = runs.id AND " +
                                        Derived::counts_for_run + " WHERE " + not_in_bin +
                                        " ORDER BY created_at, runs.id");
    while (rows.step()) {
      const bool is_kept = !rows.is_null(run_column_count);
      if (!is_kept) to_make.push_back(all.size());
      all.push_back({impl_->checked(rows), is_kept ? Derived::read(rows, run_column_count) : Summary{}});
    }
  }
  for (const std::size_t i : to_make) all[i].summary = impl_->derived.make(all[i].run);
  return all;
}

int RunStore::close_dead_runs() {
  Database& database = impl_->database;
  if (database.read_only()) return 0;

  struct Dead {
    RunId id;
    ProcessIdentity owner;
  };
  std::vector<Dead> dead;
  {
    Statement rows(database,
                   "SELECT id, owner_pid, owner_start, owner_boot FROM runs WHERE status IN ('queued', 'running') "
                   "AND owner_pid IS NOT NULL");
    while (rows.step()) {
      ProcessIdentity owner{.pid = rows.integer(1), .start = rows.integer(2), .boot = rows.text(3)};
      if (!is_alive(owner)) dead.push_back({rows.integer(0), std::move(owner)});
    }
  }
  if (dead.empty()) return 0;  // the usual case takes no write lock

  std::vector<RunId> closed;
  Transaction transaction(database);
  for (const auto& [id, owner] : dead) {
    std::string reason = "the process that ran it (pid " + std::to_string(owner.pid) + ") is gone; ";
    double last_at = missing;
    {
      Statement last(database, "SELECT step, at FROM steps WHERE run_id = ? ORDER BY at DESC, step DESC LIMIT 1");
      last.bind(id);
      if (last.step()) {
        reason += "last step " + std::to_string(last.integer(0));
        last_at = last.real(1);
      } else {
        reason += "it made no step";
      }
    }
    // The owner is asked for again: since the look above, another process may have closed or resumed the run.
    Statement update(database,
                     "UPDATE runs SET status = 'interrupted', reason = ?, "
                     "ended_at = coalesce(?, started_at, created_at) WHERE id = ? "
                     "AND status IN ('queued', 'running') AND owner_pid = ? AND owner_start IS ?");
    update.bind(reason).bind(last_at).bind(id).bind(owner.pid).bind(known(owner.start)).run();
    if (database.changes() == 0) continue;
    closed.push_back(id);
    impl_->derived.forget(id);
  }
  transaction.commit();
  for (const RunId id : closed) impl_->derived.refresh(*impl_->run(id));
  return static_cast<int>(closed.size());
}

std::vector<LaneSample> RunStore::lanes(RunId id) {
  Statement rows(impl_->database,
                 "SELECT step, at, cpu_load, process_cores, resident_bytes, gpu_load, gpu_clock_mhz, gpu_power_w, "
                 "gpu_temperature_c, gpu_memory_bytes, throttle_reason FROM lanes WHERE run_id = ? ORDER BY at");
  rows.bind(id);
  std::vector<LaneSample> samples;
  while (rows.step()) {
    samples.push_back({.run = id,
                       .step = rows.integer(0),
                       .at = rows.real(1),
                       .cpu_load = rows.real(2),
                       .process_cores = rows.real(3),
                       .resident_bytes = rows.integer(4),
                       .gpu_load = rows.real(5),
                       .gpu_clock_mhz = rows.real(6),
                       .gpu_power_w = rows.real(7),
                       .gpu_temperature_c = rows.real(8),
                       .gpu_memory_bytes = rows.integer(9),
                       .throttle_reason = rows.text(10)});
  }
  return samples;
}

std::string RunStore::console(RunId id, std::size_t most) {
  Statement rows(impl_->database, "SELECT text FROM console WHERE run_id = ? ORDER BY part DESC");
  rows.bind(id);
  std::vector<std::string> parts;
  std::size_t size = 0;
  while (size < most && rows.step()) {
    parts.emplace_back(rows.blob(0));
    size += parts.back().size();
  }
  std::string text;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) text += *part;
  return text;
}

std::vector<TextSample> RunStore::samples(RunId id) {
  Statement rows(impl_->database, "SELECT step, at, text FROM samples WHERE run_id = ? ORDER BY step");
  rows.bind(id);
  std::vector<TextSample> samples;
  while (rows.step()) {
    samples.push_back({.run = id, .step = rows.integer(0), .at = rows.real(1), .text = rows.text(2)});
  }
  return samples;
}

StepParts RunStore::mean_parts(const Run& run, std::int64_t warmup_steps) {
  {
    // A training says them of every step, a log of none: a thousand steps of one that is long tell which it is.
    Statement any(impl_->database,
                  "SELECT count(coalesce(data_ms, forward_ms, backward_ms, optimizer_ms, communication_ms)) FROM "
                  "(SELECT * FROM steps WHERE run_id = ? ORDER BY step DESC LIMIT 1000)");
    any.bind(run.id);
    if (!any.step() || any.integer(0) == 0) return {};
  }
  // By position, as warm-up is counted: a resumed run's first steps are not its lowest numbers.
  Statement rows(impl_->database,
                 "SELECT avg(data_ms), avg(forward_ms), avg(backward_ms), avg(optimizer_ms), avg(communication_ms) "
                 "FROM latest_steps WHERE run_id = ?1 AND step > coalesce((SELECT step FROM latest_steps "
                 "WHERE run_id = ?1 ORDER BY step LIMIT 1 OFFSET ?2 - 1), 0)");
  rows.bind(run.id).bind(warmup_steps);
  if (!rows.step()) return {};
  return {rows.real(0), rows.real(1), rows.real(2), rows.real(3), rows.real(4)};
}

std::map<RunId, Curation> RunStore::curations() {
  Statement rows(impl_->database, "SELECT run_id, tags, note, pinned, archived, deleted_at FROM curation");
  std::map<RunId, Curation> curations;
  while (rows.step()) {
    curations[rows.integer(0)] = {.tags = tags_from(rows.text(1)),
                                  .note = rows.text(2),
                                  .pinned = rows.integer(3) != 0,
                                  .archived = rows.integer(4) != 0,
                                  .deleted_at = rows.real(5)};
  }
  return curations;
}

void RunStore::curate(RunId run, const Curation& curation) {
  Statement write(impl_->database,
                  "INSERT INTO curation (run_id, tags, note, pinned, archived, deleted_at) VALUES (?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (run_id) DO UPDATE SET tags = excluded.tags, note = excluded.note, "
                  "pinned = excluded.pinned, archived = excluded.archived, deleted_at = excluded.deleted_at");
  write.bind(run).bind(known(tags_text(curation.tags))).bind(known(curation.note));
  write.bind(curation.pinned ? 1 : 0).bind(curation.archived ? 1 : 0).bind(curation.deleted_at).run();
}

void RunStore::rename_run(RunId run, const std::string& name) {
  Statement(impl_->database, "UPDATE runs SET name = ? WHERE id = ?").bind(name).bind(run).run();
}

void RunStore::rename_ladder(LadderId ladder, const std::string& name) {
  Statement(impl_->database, "UPDATE ladders SET name = ? WHERE id = ?").bind(name).bind(ladder).run();
}

std::vector<RunId> RunStore::empty_bin(double deleted_before) {
  Transaction transaction(impl_->database);
  std::vector<RunId> gone;
  {
    Statement rows(impl_->database,
                   "SELECT run_id FROM curation JOIN runs ON runs.id = run_id WHERE deleted_at < ? AND status NOT IN "
                   "('queued', 'running') AND run_id NOT IN (SELECT parent_id FROM runs WHERE status = 'queued' AND "
                   "parent_id IS NOT NULL) ORDER BY run_id");
    rows.bind(deleted_before);
    while (rows.step()) gone.push_back(rows.integer(0));
  }
  if (gone.empty()) return gone;
  const std::int64_t newest = impl_->database.integer("SELECT max(id) FROM runs");
  for (const RunId id : gone) {
    // A fork outlives the run that it came from, and tells no more which that was.
    Statement(impl_->database, "UPDATE runs SET parent_id = NULL WHERE parent_id = ?").bind(id).run();
    Statement(impl_->database, "DELETE FROM runs WHERE id = ?").bind(id).run();
  }
  // SQLite would give its number to the next run (see insert_run).
  if (gone.back() == newest) set_setting("highest_run", std::to_string(newest));
  transaction.commit();
  return gone;
}

void RunStore::request(RunId run, RunRequest verb) {
  Statement insert(impl_->database, "INSERT INTO requests (run_id, verb, at) VALUES (?, ?, ?)");
  insert.bind(run).bind(to_string(verb)).bind(unix_now()).run();
}

std::vector<std::pair<RunId, RunRequest>> RunStore::take_requests() {
  Database& database = impl_->database;
  if (database.integer("SELECT count(*) FROM requests") == 0) return {};  // the usual case takes no write lock
  std::vector<std::pair<RunId, RunRequest>> taken;
  Transaction transaction(database);
  const ProcessIdentity own = this_process();
  {
    Statement rows(database,
                   "SELECT run_id, verb FROM requests JOIN runs ON runs.id = run_id "
                   "WHERE owner_pid = ? AND owner_start IS ? ORDER BY requests.id");
    rows.bind(own.pid).bind(known(own.start));
    while (rows.step()) taken.emplace_back(rows.integer(0), run_request_from(rows.text(1)));
  }
  Statement done(database,
                 "DELETE FROM requests WHERE run_id IN (SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ?)");
  done.bind(own.pid).bind(known(own.start)).run();
  transaction.commit();
  return taken;
}

std::optional<std::string> RunStore::setting(const std::string& key) {
  Statement rows(impl_->database, "SELECT value FROM settings WHERE key = ?");
  rows.bind(key);
  if (!rows.step()) return std::nullopt;
  return rows.text(0);
}

void RunStore::set_setting(const std::string& key, const std::string& value) {
  Statement(impl_->database, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)").bind(key).bind(value).run();
}

std::string RunStore::integrity_check() {
  Statement rows(impl_->database, "PRAGMA integrity_check");
  std::string found;
  while (rows.step()) found += (found.empty() ? "" : "; ") + rows.text(0);
  return found;
}

const fs::path& RunStore::file() const {
  return impl_->database.file();
}

bool RunStore::read_only() const {
  return impl_->database.read_only();
}

fs::path default_database_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path file = variable("STEPLADDER_DB"); !file.empty()) return file;
  fs::path data = variable("XDG_DATA_HOME");
  if (!data.is_absolute()) {  // relative ones are to be ignored, says the XDG specification
    fs::path home = variable("HOME");
    if (home.empty())
      if (const passwd* user = getpwuid(getuid())) home = user->pw_dir;
    data = home / ".local" / "share";
  }
  return data / "stepladder" / "stepladder.db";
}

}  // namespace stepladder
