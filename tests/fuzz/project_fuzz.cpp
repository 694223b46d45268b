// libFuzzer: a project file in which bytes were changed must be refused with a StorageError, or answer every question
// with values or a StorageError. The input is a list of changes to a sound file. The project is made at the start, so
// its schema is always the present one.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "storage/database/run_store.h"
#include "storage/errors.h"
#include "tests/fuzz/changes.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

RunId add_run(RunStore& store, LadderId ladder, int rung, std::int64_t steps) {
  Run run;
  run.name = "a run";
  run.ladder = ladder;
  run.rung = rung;
  run.tokens_per_step = 1024;
  run.recipe = R"({"model":"nano"})";
  std::vector<StepRecord> records;
  for (std::int64_t step = 1; step <= steps; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = 3.0 + 1.0 / static_cast<double>(step);
    record.dt_ms = 10.0;
    record.tokens = 1024;
    record.lr = 1e-3;
    record.at = 1.7e9 + 0.01 * static_cast<double>(step);
    records.push_back(record);
  }
  return store.insert_finished(run, records);
}

std::string sound_file(const TemporaryFolder& folder) {
  const auto file = folder / "sound.db";
  {
    RunStore store = RunStore::open(file);
    const LadderId ladder = store.create_ladder({.name = "a ladder"});
    const RunId first = add_run(store, ladder, 0, 6000);  // long enough for overviews
    add_run(store, ladder, 1, 20);
    store.curation().set(first, {.tags = {"fast"}, .note = "a note"});
    for (const auto& [run, summary] : store.runs_with_summaries()) store.overview(run.id, Quantity::loss);
  }
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void ask_everything(RunStore& store) {
  store.ladders();
  store.curation().all();
  for (const auto& [run, summary] : store.runs_with_summaries()) {
    if (run.id < 0 || run.id > 1000) continue;
    store.series(run.id);
    store.series(run.id, 10, 30);
    store.excerpt(run.id, 1000);
    store.overview(run.id, Quantity::loss);
    store.overview(run.id, Quantity::dt_ms, 100, 5000, 800);
    store.recordings().mean_parts(run, 1);
    store.recordings().samples(run.id);
    store.recordings().system_metrics(run.id);
    store.recordings().console(run.id);
    store.recordings().profile(run.id);
  }
  store.upkeep().integrity_check();
}

template <class Work>
void expect_answer(Work work) {
  try {
    work();
  } catch (const StorageError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
}

}  // namespace
}  // namespace stepladder

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  static const TemporaryFolder folder;
  static const std::string sound = sound_file(folder);
  const std::string file = changed(sound, {reinterpret_cast<const char*>(data), size});
  const auto path = folder / "changed.db";
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(file.data(), static_cast<std::streamsize>(file.size()));
  expect_answer([&] {
    RunStore store = RunStore::open(path, RunStore::Mode::read_only);
    expect_answer([&] { ask_everything(store); });
  });
  expect_answer([&] {
    RunStore store = RunStore::open(path);
    expect_answer([&] { store.processes().close_dead_runs(); });
    expect_answer([&] { ask_everything(store); });
    expect_answer([&] { add_run(store, 1, 2, 10); });
    expect_answer([&] { store.bin().empty(2e9); });
  });
  for (const char* beside : {"changed.db-wal", "changed.db-shm"}) std::filesystem::remove(folder / beside);
  return 0;
}
