#include "storage/database/example.h"

#include <string>
#include <vector>

#include "storage/csv.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr const char* log_name = "a100-three-rungs.txt";

struct ExampleRun {
  Run run;
  std::vector<StepRecord> steps;
};

std::vector<ExampleRun> read_example(const fs::path& file) {
  CsvFile table(file, "rung,stage,title,precision,step,loss,dt_ms,tokens");
  std::vector<ExampleRun> runs;
  while (table.next()) {
    if (runs.empty() || runs.back().run.stage != table.text(1)) {
      Run run;
      run.rung = table.number<int>(0);
      run.stage = table.text(1);
      run.title = table.text(2);
      run.precision = table.text(3);
      run.tokens_per_step = table.number<std::int64_t>(7);
      runs.push_back({std::move(run), {}});
    }
    runs.back().steps.push_back({.step = table.number<std::int64_t>(4),
                                 .loss = table.number<double>(5),
                                 .dt_ms = table.number<double>(6),
                                 .tokens = table.number<std::int64_t>(7)});
  }
  if (runs.empty()) throw StorageError(file.string() + " holds no steps");
  return runs;
}

// The log's facts about a run beyond its steps. It names neither the model nor the optimiser.
void describe(Run& run, const std::string& precision_before, std::size_t steps) {
  run.name = "a100-three-rungs: " + run.title;
  run.status = RunStatus::finished;
  run.source = "example";
  run.source_path = log_name;
  run.planned_steps = static_cast<std::int64_t>(steps);
  run.device = "cuda";
  run.hardware = "NVIDIA A100";
  run.recipe = R"({"batch":4,"seq":1024,"steps":)" + std::to_string(steps) + R"(,"device":"cuda","matmul":")" +
               run.precision + "\"}";
  if (run.rung == 0) return;
  run.changed = run.precision == precision_before ? "the log names no change but a printed throughput"
                                                  : "precision " + precision_before + " -> " + run.precision;
}

}  // namespace

void add_example(RunStore& store, const fs::path& assets_folder) {
  constexpr const char* added = "example_added";
  if (store.settings().get(added)) return;
  std::vector<ExampleRun> runs = read_example(assets_folder / "examples" / "a100-three-rungs.csv");

  store.in_one_transaction([&] {
    if (store.settings().get(added)) return;  // another process was faster
    store.settings().set(added, "1");
    if (!store.runs().empty()) return;  // a project with runs needs no example
    const LadderId ladder = store.create_ladder(
        {.name = "A100, three rungs",
         .source = "example",
         .source_path = log_name,
         .notes = "One A100 in a Colab notebook; B = 4, T = 1024, 50 steps a rung. The log calls rung 1 a change of "
                  "metric only, but its steps take a quarter of the time. It names no other change."});
    std::string precision_before;
    for (auto& [run, steps] : runs) {
      run.ladder = ladder;
      describe(run, precision_before, steps.size());
      precision_before = run.precision;
      store.insert_finished(run, steps);
    }
  });
}

}  // namespace stepladder
