// `doctor --rescue`: saves what can be read of a damaged database.
#include <iostream>

#include "app/cli/commands.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/text/format.h"
#include "engine/files/run_checkpoints.h"
#include "storage/database/rescue/rescue.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

std::string count_or_dash(std::int64_t count) {
  return count > 0 ? grouped(count) : "-";
}

std::string missing_text(const DamagedRun& run) {
  std::string text = run.missing_steps > 0 ? grouped(run.missing_steps) : "";
  if (run.more_may_be_missing) text += text.empty() ? "unknown" : " or more";
  return text.empty() ? "-" : text;
}

// Sentences about what isn't in the tables.
std::vector<std::string> sentences(const RescueReport& report, const fs::path& out, const CommonOptions& common) {
  std::vector<std::string> notes = report.notes;
  if (report.lost_transactions > 0)
    notes.push_back(common.database.string() + "-wal is damaged: its last " + grouped(report.lost_transactions) +
                    " transactions, which SQLite would drop, were read as far as they are sound");
  if (report.stale_pages > 0)
    notes.push_back("of " + grouped(report.stale_pages) + " pages only an older content was left");
  if (report.unreadable_bytes > 0)
    notes.push_back("the disk failed to read " + grouped(report.unreadable_bytes) + " bytes");
  std::error_code error;
  if (const fs::path folder = run_checkpoint_folder({.database = common.database, .run = 1}).parent_path();
      fs::is_directory(folder, error))
    notes.push_back("the checkpoints are still in " + folder.string() + "; to resume from them, move it to " +
                    run_checkpoint_folder({.database = out, .run = 1}).parent_path().string());
  return notes;
}

Json rescue_json(const RescueReport& report, const std::vector<std::string>& notes, const fs::path& out,
                 const CommonOptions& common) {
  Json tables = Json::array(), runs = Json::array();
  for (const RescuedTable& table : report.tables)
    tables.push_back({{"table", table.name},
                      {"rows", table.rows},
                      {"damaged_rows", table.damaged_rows},
                      {"damaged_pages", table.damaged_pages}});
  for (const DamagedRun& run : report.runs)
    runs.push_back({{"id", run.id},
                    {"name", run.name},
                    {"steps", run.steps},
                    {"missing_steps", run.missing_steps},
                    {"more_may_be_missing", run.more_may_be_missing},
                    {"row_is_lost", run.row_is_lost}});
  return {{"database", common.database.string()},
          {"out", out.string()},
          {"whole", report.is_whole()},
          {"runs_saved", report.runs_saved},
          {"steps_saved", report.steps_saved},
          {"lost_transactions_of_log", report.lost_transactions},
          {"tables", tables},
          {"damaged_runs", runs},
          {"notes", notes}};
}

std::string rescue_text(const RescueReport& report, const fs::path& out) {
  std::vector<std::vector<std::string>> tables = {{"table", "rows saved", "rows damaged", "pages damaged"}};
  for (const RescuedTable& it : report.tables)
    if (it.rows > 0 || it.is_damaged())
      tables.push_back({it.name, grouped(it.rows), count_or_dash(it.damaged_rows), count_or_dash(it.damaged_pages)});
  std::string text = table(tables, {false, true, true, true});
  if (!report.runs.empty()) {
    std::vector<std::vector<std::string>> runs = {{"run", "name", "steps saved", "steps missing", ""}};
    for (const DamagedRun& run : report.runs)
      runs.push_back({std::to_string(run.id), run.name, grouped(run.steps), missing_text(run),
                      run.row_is_lost ? "its name, settings and status are lost" : ""});
    text += "\n" + table(runs, {true, false, true, true, false});
  }
  return text + "\n" + out.string() + " has " + plural(report.runs_saved, "run") + " with " +
         plural(report.steps_saved, "step") +
         (report.is_whole() ? "; nothing is lost\n" : "; see above for what is lost\n");
}

}  // namespace

int rescue_database(const fs::path& out, const CommonOptions& common) {
  if (out.empty()) throw UsageError("--rescue: the file name is empty");
  const RescueReport report = rescue(common.database, out);
  const std::vector<std::string> notes = sentences(report, out, common);
  print_as(
      common, [&] { return rescue_json(report, notes, out, common); }, [&] { return rescue_text(report, out); });
  for (const std::string& note : notes)
    if (!common.json) std::cerr << "stepladder: " << note << "\n";
  return report.is_whole() ? exit_done : exit_failed;
}

}  // namespace stepladder
