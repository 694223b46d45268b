#include "storage/database/example.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view columns = "rung,stage,title,precision,step,loss,dt_ms,tokens";
constexpr const char* log_name = "a100-three-rungs.txt";

struct ExampleRun {
  Run run;
  std::vector<StepRecord> steps;
};

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file) {}

  std::vector<ExampleRun> read() {
    std::ifstream input(file_);
    if (!input) throw StorageError(file_.string() + " could not be read: " + std::generic_category().message(errno));
    std::vector<ExampleRun> runs;
    bool has_header = false;
    for (std::string line; std::getline(input, line);) {
      ++line_number_;
      if (line.empty() || line.front() == '#') continue;
      if (has_header) {
        add_row(line, runs);
      } else {
        if (line != columns) refuse("does not name the columns " + std::string(columns));
        has_header = true;
      }
    }
    if (runs.empty()) throw StorageError(file_.string() + " holds no steps");
    return runs;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw StorageError(file_.string() + ", line " + std::to_string(line_number_) + ", " + why);
  }

  template <class Number>
  Number number(std::string_view text) const {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      refuse("holds '" + std::string(text) + "' where a number should be");
    return value;
  }

  void add_row(std::string_view line, std::vector<ExampleRun>& runs) const {
    std::array<std::string_view, 8> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto comma = line.find(',');
      if ((comma == std::string_view::npos) != (i + 1 == fields.size())) refuse("does not have 8 fields");
      fields[i] = line.substr(0, comma);
      if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
    }
    const auto& [rung, stage, title, precision, step, loss, dt_ms, tokens] = fields;
    if (runs.empty() || runs.back().run.stage != stage) {
      Run run;
      run.rung = number<int>(rung);
      run.stage = stage;
      run.title = title;
      run.precision = precision;
      run.tokens_per_step = number<std::int64_t>(tokens);
      runs.push_back({std::move(run), {}});
    }
    runs.back().steps.push_back({.step = number<std::int64_t>(step),
                                 .loss = number<double>(loss),
                                 .dt_ms = number<double>(dt_ms),
                                 .tokens = number<std::int64_t>(tokens)});
  }

  fs::path file_;
  int line_number_ = 0;
};

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
  run.changed = run.precision == precision_before ? "metric: throughput as well as time (the log names no other change)"
                                                  : "precision " + precision_before + " -> " + run.precision;
}

}  // namespace

void add_example(RunStore& store, const fs::path& assets_folder) {
  constexpr const char* added = "example_added";
  if (store.setting(added)) return;
  std::vector<ExampleRun> runs = Reader(assets_folder / "examples" / "a100-three-rungs.csv").read();

  store.in_one_transaction([&] {
    if (store.setting(added)) return;  // another process was faster
    store.set_setting(added, "1");
    if (!store.runs().empty()) return;  // a project with runs needs no example
    const LadderId ladder = store.create_ladder(
        {.name = "A100, three rungs",
         .source = "example",
         .source_path = log_name,
         .notes = "One A100 in a Colab notebook; B = 4, T = 1024, 50 steps a rung. The log calls rung 1 a change of "
                  "metric only, but its steps take a quarter of the time. It does not say what else changed."});
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
