// `stepladder record source` and `record diff`: the scripts that logs embed.
#include <fstream>
#include <iostream>
#include <memory>

#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "storage/errors.h"
#include "storage/speedrun/script_diff.h"

namespace stepladder {
namespace {

struct ScriptOptions {
  std::string log;
  std::string other;
  std::string out;
  bool ignore_comments = false;
  bool forces = false;
};

// The script that a log embeds, or the file itself if it is a script.
std::string script_of(const std::string& file) {
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown))
    throw NotFound(file + " does not exist", {.argument = "log", .value = file});
  if (std::filesystem::is_directory(file, unknown))
    throw NotFound(file + " is a folder, not a file", {.argument = "log", .value = file});
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
    if (common.json)
      print({{"file", nullptr}, {"script", script}});
    else
      std::cout << script;
    return exit_done;
  }
  keep_off_database(options.out, common.database);
  keep_existing(options.out, options.forces);
  std::ofstream out(options.out, std::ios::binary);
  out << script;
  out.close();
  if (!out) throw StorageError(options.out + " cannot be written");
  if (common.json) print({{"file", options.out}, {"script", nullptr}});
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

}  // namespace

void add_record_source(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<ScriptOptions>();
  CLI::App* command = add_with_json(record, common, "source", "Print the script that a log embeds");
  command->add_option("log", options->log, "Log")->required();
  command->add_option("-o,--out,--output", options->out, "File to write instead");
  add_force(*command, options->forces);
  choose_if_parsed(*command, chosen, options, common, run_source);
}

void add_record_diff(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<ScriptOptions>();
  CLI::App* command = add_with_json(record, common, "diff", "Show what changed between the scripts of two logs");
  command->add_option("before", options->log, "Log or script")->required()->type_name("FILE");
  command->add_option("after", options->other, "Log or script")->required()->type_name("FILE");
  command->add_flag("--ignore-comments", options->ignore_comments, "Leave out comments and empty lines");
  choose_if_parsed(*command, chosen, options, common, run_diff);
}

}  // namespace stepladder
