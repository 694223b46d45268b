// `stepladder record gate`: fails a build that is slower than its baseline.
#include <cstdlib>
#include <iostream>
#include <memory>

#include "app/cli/record/record_report.h"
#include "app/cli/record/subcommands.h"
#include "app/environment.h"
#include "app/exit_status.h"
#include "app/format.h"
#include "app/record/machine.h"
#include "app/record/measured_command.h"
#include "app/record/speed_gate.h"
#include "app/scratch_folder.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

struct GateOptions {
  std::vector<std::string> logs;
  std::string command;  // for the shell
  std::string baseline, write;
  std::string by;
  std::int64_t runs = 5, most_runs = 20;
  double tolerance_percent = 100 * default_noise_floor;
};

struct Stopped {};

// Runs the command once more. Throws StorageError if it fails, with the end of what it printed.
void measure(const GateOptions& options, const fs::path& folder, GateSample& sample) {
  const std::string number = std::to_string(sample.values.size() + 1);
  const MeasuredCommand run{.log = folder / (number + ".log"),
                            .state = folder / (number + ".json"),
                            .command = {"/bin/sh", "-c", options.command},
                            .folder = fs::current_path(),
                            .environment = {{"STEPLADDER_RUN", number}}};
  std::cerr << "stepladder: run " << number << "\n";
  const auto end = run_measured(run, interrupted);
  if (!end) throw Stopped();
  if (end->exit_status != 0)
    throw StorageError("the command failed with exit status " + std::to_string(end->exit_status));
  try {
    add_figure(sample, sample.by == FigureBy::wall ? LogFigure{end->wall_s, "s"} : figure_of_log(run.log, sample.by),
               run.log);
  } catch (const NoFigure& error) {
    throw StorageError("what the command prints " + std::string(error.what()) +
                       "; --by wall compares how long it takes");
  }
}

Json gate_json(const GateJudgement& judged, const GateSample& now, const GateOptions& options) {
  return {{"answer", to_string(judged.answer)},
          {"by", to_string(now.by)},
          {"unit", now.unit},
          {"n", judged.now.n},
          {"mean", number(judged.now.mean)},
          {"baseline_n", judged.baseline.n},
          {"baseline_mean", number(judged.baseline.mean)},
          {"factor", number(judged.factor)},
          {"ci95", interval_json(judged.ci95)},
          {"tolerance", options.tolerance_percent / 100},
          {"reason", judged.reason},
          {"machine", now.machine}};
}

int status_of(GateAnswer answer) {
  switch (answer) {
    case GateAnswer::passes:
      return exit_done;
    case GateAnswer::slower:
      return exit_slower;
    case GateAnswer::worse:
      return exit_loss_not_at_parity;
    case GateAnswer::cannot_tell:
      return exit_cannot_tell;
    case GateAnswer::other_machine:
      return exit_other_machine;
  }
  return exit_failed;
}

std::string current_commit() {
  const Json environment = Json::parse(environment_json());
  const Json& git = environment["git"];
  return git.is_object() ? git["commit"].get<std::string>() + (git["dirty"].get<bool>() ? "+changes" : "") : "";
}

int write_baseline(const GateOptions& options, GateSample sample, const fs::path& folder, const CommonOptions& common) {
  keep_off_database(options.write, common.database, "--write");
  while (options.logs.empty() && std::ssize(sample.values) < options.runs) measure(options, folder, sample);
  write_gate_baseline(options.write, sample, current_commit());
  const SampleFigures figures = figures_of(sample.values);
  std::cerr << "stepladder: " << options.write << " holds " << runs_text(figures.n) << ", mean "
            << figure_text(figures.mean, "%.6g") << " " << sample.unit << "\n";
  return exit_done;
}

void require_unit(const GateSample& baseline, const GateSample& now, const GateOptions& options) {
  if (now.unit != baseline.unit)
    throw StorageError(options.baseline + " gives " + baseline.unit + ", and these runs " + now.unit);
}

int judge(const GateOptions& options, GateSample now, const fs::path& folder, const CommonOptions& common) {
  const GateSample baseline = read_gate_baseline(options.baseline);
  GateJudgement judged;
  // Another machine's baseline needs no run to be refused.
  if (!machine_difference(now.machine, baseline.machine).empty() && now.by != FigureBy::loss) {
    judged = judge_gate(baseline, now, 0);
  } else if (!options.logs.empty()) {
    require_unit(baseline, now, options);
    judged = judge_gate(baseline, now, options.tolerance_percent / 100);
  } else {
    do {
      measure(options, folder, now);
      require_unit(baseline, now, options);
      judged = judge_gate(baseline, now, options.tolerance_percent / 100);
    } while (std::ssize(now.values) < options.runs ||
             (judged.answer == GateAnswer::cannot_tell && std::ssize(now.values) < options.most_runs));
  }
  if (common.json) {
    print(gate_json(judged, now, options));
  } else {
    const char* const words[] = {"Passes", "Slower", "Worse", "Inconclusive", "Other machine"};
    std::cout << words[static_cast<int>(judged.answer)] << ": " << judged.reason << "\n";
  }
  return status_of(judged.answer);
}

int run_gate(GateOptions options, const CommonOptions& common) {
  if (options.baseline.empty() == options.write.empty())
    throw UsageError("record gate needs --baseline FILE to judge, or --write FILE to make one");
  if (options.command.empty() == options.logs.empty()) throw UsageError("record gate needs either logs or --command");
  options.most_runs = std::max(options.most_runs, options.runs);
  FigureBy by = FigureBy::throughput;
  if (!options.baseline.empty()) by = read_gate_baseline(options.baseline).by;
  if (!options.by.empty()) {
    const FigureBy asked = *figure_by(options.by);
    if (!options.baseline.empty() && asked != by)
      throw UsageError(options.baseline + " was written with --by " + to_string(by));
    by = asked;
  }
  if (by == FigureBy::wall && !options.logs.empty()) throw UsageError("--by wall needs --command");
  const ScratchFolder folder("stepladder-gate");
  try {
    GateSample sample = sample_of_logs(options.logs, by);
    return options.write.empty() ? judge(options, std::move(sample), folder.path(), common)
                                 : write_baseline(options, std::move(sample), folder.path(), common);
  } catch (const Stopped&) {
    return exit_interrupted;
  }
}

}  // namespace

void add_record_gate(CLI::App& record, CommonOptions& common, Chosen& chosen) {
  const auto options = std::make_shared<GateOptions>();
  CLI::App* command = add_with_json(record, common, "gate", "Tell whether a change is slower than a baseline's file");
  command->add_option("logs", options->logs, "Folders of logs of this machine, or logs");
  command->add_option("--command", options->command, "Command that prints a log, for the shell, run instead");
  command->add_option("--baseline", options->baseline, "File to judge against");
  command->add_option("--write", options->write, "File to write the baseline to");
  command->add_option("--by", options->by, "throughput, loss or wall")
      ->check(CLI::IsMember({"throughput", "loss", "wall"}));
  command->add_option("--runs", options->runs, "Runs of the command")->transform(positive_count());
  command->add_option("--max-runs", options->most_runs, "Most runs while it is inconclusive")
      ->transform(positive_count());
  command->add_option("--tolerance", options->tolerance_percent, "Change in percent that counts as none")
      ->check(between(0, 50));
  command->callback(
      [options, &common, &chosen] { chosen = [options, &common] { return run_gate(*options, common); }; });
}

}  // namespace stepladder
