// Timings that a profiling script printed (mean, median, spread over a few repetitions): no training steps.
#include <filesystem>
#include <memory>
#include <string>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/text_lines.h"

namespace stepladder {
namespace {

bool has(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

// The header of a printed data frame, or the fields of the script that makes it.
bool is_timing_header(std::string_view line) {
  return has(line, "mean_time") && has(line, "median_time") && has(line, "std_dev");
}

bool is_profiler_table(std::string_view head, const std::filesystem::path&) {
  return has(head, "profile_steps") && has(head, "mean_time") && has(head, "median_time") && has(head, "std_dev") &&
         has(head, "computation");
}

class ProfilerTable : public TextLines {
 public:
  explicit ProfilerTable(ImportSink& sink) : TextLines(sink), sink_(sink) {}

 private:
  void take_line(std::string_view line) override {
    if (is_timing_header(line)) {
      in_table_ = true;
      if (first_ == 0) first_ = number();
    } else if (in_table_ && line.front() >= '0' && line.front() <= '9' &&
               has(line, "forward") + has(line, "backward") > 0) {
      ++rows_;
    } else {
      in_table_ = false;
    }
  }

  void end() override {
    sink_.note(first_, "the output of a profiler, " + std::to_string(rows_) +
                           " rows of timings and no training steps: nothing was imported");
  }

  ImportSink& sink_;
  std::int64_t rows_ = 0, first_ = 0;
  bool in_table_ = false;
};

}  // namespace

Importer importers::profiler_table() {
  return {.id = "profiler-table",
          .title = "Timings that a profiling script printed",
          .recognises = is_profiler_table,
          .reader = [](const auto&, const auto&, ImportSink& sink) { return std::make_unique<ProfilerTable>(sink); },
          .has_runs = false};
}

}  // namespace stepladder
