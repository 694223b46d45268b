// A sound project in which every table has rows, for fuzz targets to change.
#pragma once

#include <cmath>
#include <limits>

#include "storage/database/database.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_details.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

inline constexpr int many_rows = 24;  // more than a sort by insertion takes

inline constexpr const char* sound_recipe =
    R"({"model":"nano","layers":2,"heads":2,"d_model":32,"data":"","batch":4,"seq":32,"steps":24,"device":"cpu"})";
inline constexpr const char* sound_environment =
    R"({"host":"node1","hosts":["node1","node2"],"git":{"commit":"0123abcd","dirty":true},"argv":["train.py","--lr","1e-3"],)"
    R"("torch":"2.11.0","machine":"here","content_hash":"12-0123456789abcdef"})";

inline StepRecord sound_step(RunId run, std::int64_t step, double loss, double dt_ms) {
  StepRecord record{.run = run, .step = step, .loss = loss, .dt_ms = dt_ms, .tokens = 1024};
  if (step % 4 == 0) record.val_loss = loss + 0.1;
  record.lr = 1e-3;
  record.grad_norm = 1.5;
  record.at = 1.7e9 + static_cast<double>(step);
  record.parts = {
      .data_ms = 1, .forward_ms = dt_ms / 4, .backward_ms = dt_ms / 2, .optimizer_ms = 2, .communication_ms = 1};
  return record;
}

inline std::vector<RunEvent> sound_events(RunId run, double dt_ms, std::int64_t steps, bool diverges) {
  std::vector<RunEvent> events;
  events.push_back(RunStarted{.run = run,
                              .at = 1.7e9,
                              .tokens_per_step = 1024,
                              .params = 124'000'000,
                              .device = "cuda",
                              .hardware = "NVIDIA H100 80GB HBM3",
                              .precision = "bf16",
                              .attention = "flash",
                              .setup_ms = 1500,
                              .sync = Sync::event,
                              .recipe = sound_recipe,
                              .torch_version = "2.11.0"});
  for (std::int64_t step = 1; step <= steps; ++step) {
    const bool is_nan = diverges && step > steps - 3;
    const double loss = is_nan ? std::numeric_limits<double>::quiet_NaN() : 10.0 / std::sqrt(static_cast<double>(step));
    events.push_back(sound_step(run, step, loss, dt_ms + static_cast<double>(step % 3)));
    events.push_back(MetricValues{
        .run = run,
        .step = step,
        .at = 1.7e9,
        .values = {{"val/acc", 0.01 * static_cast<double>(step)}, {"expert load", step == 7 ? INFINITY : 3.0}}});
    if (step % 8 == 0)
      events.push_back(SystemMetrics{
          .run = run,
          .step = step,
          .at = 1.7e9 + static_cast<double>(step),
          .cpu_load = 0.5,
          .process_cores = 2,
          .resident_bytes = 1 << 30,
          .gpu_load = 0.9,
          .gpu_clock_mhz = 1900,
          .gpu_power_w = 500,
          .gpu_temperature_c = 60,
          .gpu_memory_bytes = 1 << 30,
          .throttle_reason = "power",
          .contention = {
              .other_cores = 1, .program_cores = 0.5, .other_gpu_load = 0.1, .cores = 8, .needed_cores = 2}});
  }
  events.push_back(sound_step(run, 3, 4.5, dt_ms));  // written again
  events.push_back(sound_step(run, 4, std::numeric_limits<double>::quiet_NaN(), dt_ms));
  events.push_back(sound_step(run, 4, 4.0, dt_ms));
  events.push_back(MetricValues{.run = run, .step = 3, .at = 1.7e9, .values = {{"val/acc", 0.5}}});
  events.push_back(TextSample{.run = run, .step = 10, .at = 1.7e9, .text = "Once upon a time\n"});
  events.push_back(ConsoleText{.run = run, .at = 1.7e9, .text = "step 1 | loss 4.0\r\nstep 2 | loss 3.9\n"});
  StepProfile profile{.run = run, .at = 1.7e9, .steps = 3};
  profile.operators = {{"forward", "aten::addmm", "128x64 64x256", 12, dt_ms / 4, 4.2e6},
                       {"backward", "aten::mm", "64x128 128x256", 24, dt_ms / 2, 8.4e6},
                       {"optimizer", "aten::_foreach_add_", "", 2, 1, missing},
                       {"", "autograd", "", 1, 0.5, missing}};
  for (int i = 0; i < many_rows; ++i)
    profile.operators.push_back({"forward", "aten::op" + std::to_string(i), "", 1, 0.01 * i, missing});
  events.push_back(std::move(profile));
  return events;
}

inline StepSlices sound_slices(std::int64_t step) {
  StepSlices slices{.rank = 0, .step = step, .length_ns = 1'000'000, .left_out = 1};
  slices.names = {"aten::addmm", "ampere_gemm", "ncclKernel"};
  slices.lanes = {{"thread 77", false}, {"stream 7", true}};
  slices.rows = {{0, 0, {{-100, 5000, 0, OperatorKind::products}, {6000, 100, 2, OperatorKind::between}}},
                 {0, 1, {{100, 300, 0, OperatorKind::products}}},
                 {1, 0, {{1000, 400'000, 1, OperatorKind::products}, {500'000, 400'000, 2, OperatorKind::between}}}};
  slices.memory = {{0, {1000, 10, 0, 0, 50}}, {5000, {1000, 10, 700, 0, 50}}};
  return slices;
}

inline void add_traces(RunStore& store, RunId run) {
  for (int i = 0; i < 2; ++i) {
    StoredTrace trace{.run = run + i,
                      .name = "a trace",
                      .source_path = "/x/trace.json",
                      .format = "pytorch",
                      .hardware = "NVIDIA H100 80GB HBM3",
                      .precision = "bf16",
                      .imported_at = 1.7e9};
    trace.profile = {.on_gpu = true, .has_steps = true, .ranks = 2, .calls = 6};
    for (int rank = 0; rank < 2; ++rank)
      for (std::int64_t step = 1; step <= 2; ++step) {
        TracedStep traced{.rank = rank, .step = step, .start_ms = static_cast<double>(step), .dt_ms = 1.0 + i};
        traced.ms[0] = traced.busy_ms[0] = 0.6 + i;
        traced.ms[1] = traced.busy_ms[1] = 0.4;
        trace.profile.steps.push_back(traced);
      }
    trace.profile.operators = {
        {{"forward", "ampere_gemm", "128x64 64x256", 12, 0.6 + i, 4.2e6}, 0.6 + i, "aten::addmm", 1e6},
        {{"backward", i ? "triton_fused_gelu" : "elementwise", "", 3, 0.4, missing}, 0.4, "aten::gelu", 1e5}};
    for (int row = 0; row < many_rows; ++row)
      trace.profile.operators.push_back(
          {{"forward", "kernel" + std::to_string(row), "", 1, 0.01 * row, missing}, 0.01 * row, "aten::op", missing});
    const TraceId id = store.traces().insert(trace);
    store.traces().details().insert(id,
                                    {{StepPhase::forward, ModelPart::attention, 0, KnownBy::name, 0.5},
                                     {StepPhase::backward, ModelPart::mlp, 1, KnownBy::order, 0.3 + i},
                                     {StepPhase::idle, ModelPart::unknown, -1, KnownBy::nothing, 0.2}},
                                    {pack(sound_slices(1)), pack(sound_slices(2))});
  }
}

inline void add_passes(RunStore& store) {
  for (int i = 0; i < 2; ++i)
    store.traces().passes().insert({.name = "passes",
                                    .measured_at = 1.7e9,
                                    .host = "node1",
                                    .hardware = "Xeon",
                                    .device = "cpu",
                                    .model = "gpt2",
                                    .batch = 2,
                                    .seq = 64,
                                    .vocab = 50257,
                                    .threads = 8,
                                    .is_synced = i == 0,
                                    .rows = {{"forward", "fp32", 0, std::vector<double>(many_rows, 3.0)},
                                             {"forward", "bf16", 5, {1.0, 1.1, 1.2}},
                                             {"forward_backward", "fp32", 5, {6.0, 6.5, 7.0}}}});
}

// Rows that only other processes or machines leave.
inline constexpr const char* others_rows = R"sql(
INSERT INTO machines VALUES ('here', 1, '/tmp/x', 'stepladder', 1, 'gpu', 'me', '02:00:00', 4, 2, 8, 1.7e9,
  '{"version":"0.1.0","host":"node1","gpus":[{"name":"H100","load":0.5,"memory":1}],"disk":{"free":1}}', 1.7e9, 1.7e9, 'timed out');
INSERT INTO machines SELECT 'there', 0, folder, program, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1.6e9, NULL, NULL, NULL, NULL FROM machines;
INSERT INTO far_runs VALUES ('0123456789abcdef0123456789abcdef', 'here', 'watch', 'a far run',
  '{"name":"x","command":["python","train.py","--lr","1e-3"],"folder":"/w","env":{"A":"b"},"tree":"tree.tar.gz","slurm":{"partition":"gpu"}}',
  '{"commit":"0123","files":3}', '{"phase":"running","joined":"/x","steps":{"1":2}}', 1.7e9, 1, 0);
INSERT INTO far_runs SELECT '1123456789abcdef0123456789abcdef', 'there', 'train', name, request, NULL, NULL, asked_at, 0, 0 FROM far_runs;
INSERT INTO far_members VALUES (6, '0123456789abcdef0123456789abcdef');
INSERT INTO requests VALUES (1, 6, 'stop', NULL, 1.7e9), (2, 7, 'move', 1, 1.7e9);
INSERT INTO queue VALUES (6, 0, 1), (7, 1, 0);
INSERT INTO followed VALUES ('journal 0123456789abcdef0123456789abcdef', 3, 100, '{"run":3,"line":4,"told":"running"}'), ('text /x/run.log', 5, 10, '{"lines":1}');
INSERT OR REPLACE INTO settings VALUES ('view:mine', '{"format":1,"panels":["history","live"],"states":{"history":{"filter":"loss<3","sort":"loss"},
  "run":{"run":{"run":1}},"ladder":{"ladder":1}},"runs":[{"id":1,"uid":"","name":"a run","selected":true}]}'),
  ('checkpoints_to_remove', '1//1 2/aa/1.0'), ('example', '1'), ('a setting', 'x');
UPDATE runs SET owner_pid = 4194300, owner_start = 1, owner_boot = 'another' WHERE status IN ('queued', 'running');
UPDATE runs SET parent_id = 1, forked_at_step = 10 WHERE id = 7;
UPDATE metrics SET unit = '%', direction = 'higher', section = 'eval' WHERE name = 'val/acc';
INSERT INTO metric_overviews SELECT id, 0, 1, 24, x'00' FROM metrics LIMIT 1;
INSERT OR IGNORE INTO overviews VALUES (1, 1, 24);
INSERT INTO overview_chunks SELECT 1, 'loss', 0, 1, 24, x'00' WHERE NOT EXISTS (SELECT 1 FROM overview_chunks);
)sql";

// `long_steps`: of run 1, whose overviews the file caches if there are more than 4096; else 24.
inline void make_sound_project(const std::filesystem::path& file, std::int64_t long_steps) {
  {
    RunStore store = RunStore::open(file);
    store.create_ladder(
        {.name = "a ladder", .source = "launched", .source_path = "/x/ladder", .notes = "notes", .created_at = 1.7e9});
    const RunStatus statuses[] = {RunStatus::finished, RunStatus::finished, RunStatus::finished, RunStatus::failed,
                                  RunStatus::finished, RunStatus::running,  RunStatus::queued};
    for (int i = 0; i < 7; ++i) {
      Run run{.name = i == 3 ? "a run" : "run " + std::to_string(i),
              .repeat = i == 1,
              .stage = i < 2 ? "baseline" : "flash",
              .title = "Flash attention",
              .changed = "attention",
              .source = i == 4 ? "import" : "launched",
              .source_path = "/x/run.log",
              .created_at = 1.7e9 + i,
              .planned_steps = 24,
              .recipe = sound_recipe,
              .environment = sound_environment};
      run.model_flops_per_token = 6 * 124e6;
      if (i < 4) run.ladder = 1;
      if (i < 4) run.rung = i < 2 ? 0 : i - 1;
      if (i == 4) run.printed = {"tokens/ms printed as tokens/sec", 1e5};
      const RunId id = store.create_run(run);
      if (statuses[i] != RunStatus::queued) store.apply(sound_events(id, 20.0 - i, i == 0 ? long_steps : 24, i == 3));
      if (is_over(statuses[i]))
        store.apply(std::vector<RunEvent>{
            RunEnded{.run = id, .at = 1.7e9 + 100, .status = statuses[i], .reason = "", .peak_memory_bytes = 1 << 30}});
    }
    store.curation().set(1, {.tags = {"fast", "two words"}, .note = "a note\nprivate: for me", .pinned = true});
    store.curation().set(5, {.tags = {}, .note = "", .archived = true, .deleted_at = 1.7e9});
    add_traces(store, 1);
    add_passes(store);
    for (const auto& [run, summary] : store.runs_with_summaries()) {
      store.overview(run.id, Quantity::loss);
      store.metrics().of_run(run.id);
      store.metrics().overview(run.id, "val/acc");
    }
  }
  Database database(file, Database::Mode::read_write);
  database.execute(others_rows);
  Statement tables(database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (tables.step())
    if (database.integer("SELECT count(*) FROM " + tables.text(0)) == 0)
      throw StorageError(tables.text(0) + " is empty");
}

}  // namespace stepladder
