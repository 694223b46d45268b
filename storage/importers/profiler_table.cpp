// Timings that a profiling script printed (mean, median, spread over a few repetitions): no training steps.
#include <string>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/line_reader.h"

namespace stepladder {
namespace {

bool has(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

// The header of a printed data frame, or the fields of the script that makes it.
bool is_timing_header(std::string_view line) {
  return has(line, "mean_time") && has(line, "median_time") && has(line, "std_dev");
}

bool is_profiler_table(ImportInput& input) {
  const std::string_view head = input.head();
  return has(head, "profile_steps") && has(head, "mean_time") && has(head, "median_time") && has(head, "std_dev") &&
         has(head, "computation");
}

void read_profiler_table(ImportInput& input, const ImportOptions&, ImportSink& sink) {
  LineReader reader(input, sink);
  std::string_view line;
  std::int64_t rows = 0, first = 0;
  bool in_table = false;
  while (reader.next(line)) {
    if (is_timing_header(line)) {
      in_table = true;
      if (first == 0) first = reader.number();
    } else if (in_table && line.front() >= '0' && line.front() <= '9' &&
               has(line, "forward") + has(line, "backward") > 0) {
      ++rows;
    } else {
      in_table = false;
    }
  }
  sink.note(first, "the output of a profiler, " + std::to_string(rows) +
                       " rows of timings and no training steps: nothing was imported");
}

}  // namespace

Importer importers::profiler_table() {
  return {.id = "profiler-table",
          .title = "Timings that a profiling script printed",
          .recognises = is_profiler_table,
          .read = read_profiler_table,
          .has_runs = false};
}

}  // namespace stepladder
