// Published tables of model FLOPs utilisation: one row for each model and machine, no training steps.
#include <filesystem>
#include <memory>
#include <string>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/text_lines.h"

namespace stepladder {
namespace {

bool is_mfu_header(std::string_view line) {
  return line.find('|') != std::string_view::npos && line.find("MFU") != std::string_view::npos &&
         line.find("HFU") != std::string_view::npos && line.find("Throughput") != std::string_view::npos;
}

bool is_mfu_table(std::string_view head, const std::filesystem::path&) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    if (is_mfu_header(head.substr(0, end))) return true;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

class MfuTable : public TextLines {
 public:
  explicit MfuTable(ImportSink& sink) : TextLines(sink), sink_(sink) {}

 private:
  void take_line(std::string_view line) override {
    const std::size_t start = line.find_first_not_of(" \t");
    const bool is_row = start != std::string_view::npos && line[start] == '|';
    if (is_mfu_header(line)) {
      in_table_ = true;
      if (first_ == 0) first_ = number();
    } else if (!is_row) {
      in_table_ = false;
    } else if (in_table_ && line.find("---") == std::string_view::npos) {
      ++rows_;
    }
  }

  void end() override {
    if (rows_ == 0) throw ImportError("is an MFU table without rows");
    sink_.note(first_,
               "a table of " + std::to_string(rows_) + " published MFU rows, no training steps: nothing was imported");
  }

  ImportSink& sink_;
  std::int64_t rows_ = 0, first_ = 0;
  bool in_table_ = false;
};

}  // namespace

Importer importers::mfu_table() {
  return {.id = "mfu-table",
          .title = "A published table of model FLOPs utilisation",
          .recognises = is_mfu_table,
          .reader = [](const auto&, const auto&, ImportSink& sink) { return std::make_unique<MfuTable>(sink); },
          .has_runs = false};
}

}  // namespace stepladder
