// Published tables of model FLOPs utilisation: one row for each model and machine, no training steps. The lines go to
// the view MFU as they are.
#include <filesystem>
#include <memory>
#include <string>

#include "storage/analysis/mfu.h"
#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/text_lines.h"

namespace stepladder {
namespace {

bool is_mfu_table(std::string_view head, const std::filesystem::path&) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    if (is_published_header(head.substr(0, end))) return true;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

class MfuTable : public TextLines {
 public:
  explicit MfuTable(ImportSink& sink) : TextLines(sink), sink_(sink) {}

 private:
  static constexpr std::size_t longest_tables = 1 << 20;

  void take_line(std::string_view line) override {
    const std::size_t start = line.find_first_not_of(" \t");
    const bool is_row = start != std::string_view::npos && line[start] == '|';
    if (is_published_header(line) && first_ == 0) first_ = number();
    if (first_ == 0 || !is_row || tables_.size() + line.size() > longest_tables) return;
    (tables_ += line) += '\n';
  }

  void end() override {
    const std::size_t rows = published_rows(tables_, {}).size();
    if (rows == 0) throw ImportError("is an MFU table without rows");
    sink_.published(tables_);
    sink_.note(first_,
               "a table of " + std::to_string(rows) + " published MFU rows for the view MFU, no training steps");
  }

  ImportSink& sink_;
  std::string tables_;
  std::int64_t first_ = 0;
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
