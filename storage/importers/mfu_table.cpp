// Published tables of model FLOPs utilisation: one row for each model and machine, no training steps.
#include <string>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/line_reader.h"

namespace stepladder {
namespace {

bool is_mfu_header(std::string_view line) {
  return line.find('|') != std::string_view::npos && line.find("MFU") != std::string_view::npos &&
         line.find("HFU") != std::string_view::npos && line.find("Throughput") != std::string_view::npos;
}

bool is_mfu_table(ImportInput& input) {
  std::string_view head = input.head();
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    if (is_mfu_header(head.substr(0, end))) return true;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

void read_mfu_table(ImportInput& input, const ImportOptions&, ImportSink& sink) {
  LineReader reader(input, sink);
  std::string_view line;
  std::int64_t rows = 0, first = 0;
  bool in_table = false;
  while (reader.next(line)) {
    const std::size_t start = line.find_first_not_of(" \t");
    const bool is_row = start != std::string_view::npos && line[start] == '|';
    if (is_mfu_header(line)) {
      in_table = true;
      if (first == 0) first = reader.number();
    } else if (!is_row) {
      in_table = false;
    } else if (in_table && line.find("---") == std::string_view::npos) {
      ++rows;
    }
  }
  if (rows == 0) throw ImportError("is an MFU table without rows");
  sink.note(first,
            "a table of " + std::to_string(rows) + " published MFU rows, no training steps: nothing was imported");
}

}  // namespace

Importer importers::mfu_table() {
  return {.id = "mfu-table",
          .title = "A published table of model FLOPs utilisation",
          .recognises = is_mfu_table,
          .read = read_mfu_table,
          .has_runs = false};
}

}  // namespace stepladder
