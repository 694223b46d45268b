#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/find_run.h"
#include "app/cli/record/record_report.h"
#include "app/cli/record/run_pool.h"
#include "app/environment.h"
#include "app/exit_status.h"
#include "app/open_store.h"
#include "storage/errors.h"
#include "storage/speedrun/script_diff.h"

namespace stepladder {
namespace {

struct RecordOptions {
  std::vector<std::string> pool;
  std::vector<std::string> baseline;
  std::string rule;
  ClaimOptions claim;
};

struct ScriptOptions {
  std::string log;
  std::string other;
  std::string out;
  bool ignore_comments = false;
};

// Folders and logs, or runs of the database, which is opened for the first of them.
RecordPool read_pool(const std::vector<std::string>& names, const LogQuestion& question, const CommonOptions& common) {
  RecordPool pool;
  std::optional<RunStore> store;
  for (const std::string& name : names) {
    std::error_code error;
    const bool path = std::filesystem::exists(name, error) || name.find('/') != std::string::npos;
    if (path) {
      add_logs(pool, name, question);
      continue;
    }
    if (!store) store = open_to_read(common.database);
    if (!store) throw UsageError(name + " is neither a folder nor a log, and there is no database with runs");
    pool.add(speedrun_log_of(*store, find_run(*store, name)));
  }
  return pool;
}

int exit_status_of(RecordVerdict verdict) {
  switch (verdict) {
    case RecordVerdict::record:
      return exit_done;
    case RecordVerdict::misses:
      return exit_loss_not_at_parity;
    case RecordVerdict::cannot_tell:
      return exit_cannot_tell;
    case RecordVerdict::flagged:
      return exit_implausible;
  }
  return exit_failed;
}

int run_record(const RecordOptions& options, const CommonOptions& common) {
  if (options.pool.empty()) throw UsageError("record needs a folder of logs, logs, or runs");
  std::optional<RecordRule> rule;
  try {
    if (!options.rule.empty()) rule = find_record_rule(options.rule, assets_folder());
  } catch (const UnknownRule& error) {
    throw UsageError(std::string("--rule: ") + error.what());
  }
  LogQuestion question;
  if (rule) question = {rule->metric, rule->final_line, !is_missing(rule->time_limit_s)};
  const RecordPool pool = read_pool(options.pool, question, common);
  std::optional<RecordPool> baseline;
  if (!options.baseline.empty()) baseline = read_pool(options.baseline, question, common);
  const RecordClaim claim = judge_record(pool, baseline ? &*baseline : nullptr, rule, options.claim);
  if (common.json)
    print(record_json(claim, rule));
  else
    std::cout << record_text(claim, rule, options.claim.power);
  return exit_status_of(claim.verdict);
}

// The script that a log embeds, or the file itself if it is a script.
std::string script_of(const std::string& file) {
  SpeedrunLog log = load_speedrun_log(file, {});
  if (log.problem == "cannot be read" || log.problem.starts_with("cannot be read:") ||
      log.problem.starts_with("is larger"))
    throw StorageError(file + " " + log.problem);
  if (!log.script.empty()) return std::move(log.script);
  if (!file.ends_with(".py")) throw StorageError(file + " embeds no script");
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int run_source(const ScriptOptions& options, const CommonOptions& common) {
  const std::string script = script_of(options.log);
  if (options.out.empty()) {
    std::cout << script;
    return exit_done;
  }
  keep_off_database(options.out, common.database);
  std::ofstream out(options.out, std::ios::binary);
  out << script;
  out.close();
  if (!out) throw StorageError(options.out + " cannot be written");
  return exit_done;
}

int run_diff(const ScriptOptions& options, const CommonOptions& common) {
  std::string before = script_of(options.log);
  std::string after = script_of(options.other);
  if (options.ignore_comments) {
    before = without_comments(before);
    after = without_comments(after);
  }
  const std::vector<DiffLine> diff = script_diff(before, after);
  Json lines = Json::array();
  for (const DiffLine& line : diff) {
    const bool added = line.kind == DiffLine::Kind::added;
    if (common.json)
      lines.push_back({{"kind", added ? "added" : "removed"}, {"line", line.line}, {"text", line.text}});
    else
      std::cout << (added ? "+ " : "- ") << line.line << ": " << line.text << "\n";
  }
  if (common.json) print(lines);
  if (diff.empty() && !common.json) std::cout << "The scripts are the same\n";
  return exit_done;
}

void add_source(CLI::App& record, CommonOptions& common, std::function<int()>& chosen) {
  const auto options = std::make_shared<ScriptOptions>();
  CLI::App* command = record.add_subcommand("source", "Print the script that a log embeds");
  command->add_option("log", options->log, "Log")->required();
  command->add_option("--out", options->out, "File to write instead");
  command->callback(
      [options, &common, &chosen] { chosen = [options, &common] { return run_source(*options, common); }; });
}

void add_diff(CLI::App& record, CommonOptions& common, std::function<int()>& chosen) {
  const auto options = std::make_shared<ScriptOptions>();
  CLI::App* command = add_with_json(record, common, "diff", "Show what changed between the scripts of two logs");
  command->add_option("before", options->log, "Log or script")->required();
  command->add_option("after", options->other, "Log or script")->required();
  command->add_flag("--ignore-comments", options->ignore_comments, "Leave out comments and empty lines");
  command->callback(
      [options, &common, &chosen] { chosen = [options, &common] { return run_diff(*options, common); }; });
}

}  // namespace

Subcommand record_command(CLI::App& app, CommonOptions& common) {
  const auto options = std::make_shared<RecordOptions>();
  const auto chosen = std::make_shared<std::function<int()>>();
  CLI::App* command = add_with_json(app, common, "record", "Tell whether a pool of runs is a record, and why not");
  command->add_option("pool", options->pool, "Folder of logs, logs, or runs");
  command->add_option("--baseline", options->baseline, "The same of the record so far");
  command->add_option("--rule", options->rule, "Rule, such as modded-nanogpt-1");
  command->add_option("--plan", options->claim.plan, "Number of runs that was fixed beforehand")
      ->transform(positive_count());
  command->add_option("--power", options->claim.power, "Probability of passing that the needed number is for")
      ->check(between(0.01, 0.999));
  command->add_flag("--systems-only", options->claim.systems_only, "The change leaves the maths alone");
  add_source(*command, common, *chosen);
  add_diff(*command, common, *chosen);
  return {command, [options, chosen, &common] { return *chosen ? (*chosen)() : run_record(*options, common); }};
}

}  // namespace stepladder
