// `stepladder record gate`: fails a build that is slower than its baseline.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/host/git.h"
#include "app/host/scratch_folder.h"
#include "app/record/machine.h"
#include "app/record/measured_command.h"
#include "app/record/speed_gate.h"
#include "app/text/format.h"
#include "storage/by_enum.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

struct GateOptions {
  std::vector<std::string> logs;  // with `against`: the words of the command
  std::string command;            // for the shell
  std::string baseline, write, against;
  bool forces = false;
  FigureOptions figure;
  std::int64_t runs = 5;
  std::optional<std::int64_t> most_runs;
  double tolerance_percent = 100 * default_noise_floor;
};

struct Stopped {};

std::vector<std::string> for_shell(const std::string& command) {
  return {"/bin/sh", "-c", command};
}

// A command to measure, and the folder and environment that it runs in.
struct GateSide {
  std::string name;  // of its logs and on the screen; empty: the only one
  std::vector<std::string> command;
  fs::path folder = fs::current_path();
  std::vector<std::pair<std::string, std::string>> environment;
};

// Runs the command once more, and prints its figure. Throws StorageError if it fails, with the end of what it printed.
void measure(const GateSide& side, const fs::path& folder, GateSample& sample) {
  const std::string number = std::to_string(sample.values.size() + 1);
  MeasuredCommand run{.log = folder / (side.name + number + ".log"),
                      .state = folder / (side.name + number + ".json"),
                      .command = side.command,
                      .folder = side.folder,
                      .environment = side.environment};
  run.environment.emplace_back("STEPLADDER_RUN", number);
  if (number == "1") std::cerr << "stepladder: running the " << (side.name == "base" ? "base" : "command") << "\n";
  const auto end = run_measured(run, interrupted);
  if (!end) throw Stopped();
  if (end->exit_status != 0)
    throw StorageError(std::string("the command") + (side.name == "base" ? " of base" : "") +
                       " failed with exit status " + std::to_string(end->exit_status));
  try {
    LoggedRun logged = read_logged_run(run.log);
    logged.run.started_at = end->started_at;
    logged.run.ended_at = end->started_at + end->wall_s;
    add_run(sample, figure_of_command(sample.question, logged, *end), logged);
    std::cerr << "stepladder: run " << number << (side.name.empty() ? "" : ", " + side.name) << ": "
              << significant(sample.values.back(), 4) << (sample.unit.empty() ? "" : " " + sample.unit) << "\n";
  } catch (const NoFigure& error) {
    throw StorageError("what the command " + (side.name == "base" ? std::string("of the base ") : "") + "prints " +
                       error.what() +
                       (sample.question.by == FigureBy::metric ? "" : "; --by wall compares how long it takes"));
  }
}

Json gate_json(const GateJudgement& judged, const GateSample& now, const GateOptions& options) {
  return {{"answer", to_string(judged.answer)},
          {"verdict", to_string(judged.answer)},  // under the name that it has elsewhere
          {"by", to_string(now.question.by)},
          {"metric", now.question.by == FigureBy::metric ? Json(name_of(now.question)) : Json()},
          {"unit", text_or_null(now.unit)},
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

int status_of(GateAnswer answer, FigureBy by) {
  if (answer == GateAnswer::worse && by == FigureBy::loss) return exit_loss_not_at_parity;
  return by_enum<GateAnswer>(exit_done, exit_slower, exit_slower, exit_cannot_tell, exit_other_machine,
                             exit_implausible, exit_loss_not_at_parity)[answer];
}

std::string current_commit() {
  const Json environment = Json::parse(environment_json());
  const Json& git = environment["git"];
  return git.is_object() ? git["commit"].get<std::string>() + (git["dirty"].get<bool>() ? "+changes" : "") : "";
}

int write_baseline(const GateOptions& options, GateSample sample, const fs::path& folder, const CommonOptions& common) {
  if (guesses_direction(options.figure)) throw UsageError(unknown_direction(name_of(sample.question)));
  keep_off_database(options.write, common.database);
  keep_existing(options.write, options.forces);
  while (options.logs.empty() && std::ssize(sample.values) < options.runs)
    measure({.command = for_shell(options.command)}, folder, sample);
  write_gate_baseline(options.write, sample, current_commit());
  const SampleFigures figures = figures_of(sample.values);
  if (common.json)
    print({{"file", options.write}, {"runs", figures.n}, {"mean", number(figures.mean)}, {"unit", sample.unit}});
  else
    std::cerr << "stepladder: " << options.write << " holds " << plural(figures.n, "run") << ", mean "
              << significant(figures.mean, 6) << " " << sample.unit << "\n";
  return exit_done;
}

Looks looks_of(const GateOptions& options, std::int64_t most) {
  return {static_cast<std::size_t>(std::max(options.most_runs.value_or(most), options.runs)),
          static_cast<std::size_t>(options.runs)};
}

void require_unit(const GateSample& baseline, const GateSample& now, const GateOptions& options) {
  if (now.unit != baseline.unit)
    throw StorageError(options.baseline + " gives " + unit_words(baseline.unit) + ", and these runs " +
                       unit_words(now.unit));
}

int answer(GateJudgement judged, const GateSample& baseline, const GateSample& now, const GateOptions& options,
           const CommonOptions& common) {
  check_pass(judged, baseline, now);
  // Then only a figure that stayed where it was passes.
  if (judged.answer == GateAnswer::passes && guesses_direction(options.figure) &&
      !(judged.ci95.high <= 1 + options.tolerance_percent / 100)) {
    judged.answer = GateAnswer::cannot_tell;
    judged.reason = unknown_direction(name_of(now.question)) + "; " + judged.reason;
  }
  if (common.json) {
    print(gate_json(judged, now, options));
  } else {
    const auto words =
        by_enum<GateAnswer>("Passes", "Slower", "Worse", "Inconclusive", "Other machine", "Impossible", "Guard");
    std::cout << notes_text(words[judged.answer] + (": " + judged.reason));
  }
  return status_of(judged.answer, now.question.by);
}

int judge(const GateOptions& options, GateSample now, const fs::path& folder, const CommonOptions& common) {
  const GateSample baseline = read_gate_baseline(options.baseline);
  GateJudgement judged;
  // Another machine's baseline needs no run to be refused.
  if (!machine_difference(now.machine, baseline.machine).empty() && takes_time(now.question)) {
    judged = judge_gate(baseline, now, 0);
  } else if (!options.logs.empty()) {
    require_unit(baseline, now, options);
    judged = judge_gate(baseline, now, options.tolerance_percent / 100);
  } else {
    const Looks looks = looks_of(options, 20);
    for (const std::size_t runs : looks.runs) {
      while (now.values.size() < runs) measure({.command = for_shell(options.command)}, folder, now);
      require_unit(baseline, now, options);
      judged = judge_gate(baseline, now, options.tolerance_percent / 100, looks.error_at(runs));
      if (judged.answer != GateAnswer::cannot_tell) break;
    }
  }
  return answer(judged, baseline, now, options, common);
}

// Checks the commit out into a folder of its own, and finds there the counterpart of the current folder.
GateSide side_at_commit(const GitCheckout& repository, const std::string& commit, GateSide side, const fs::path& tree) {
  repository.check_out_to(tree, commit, commit);
  side.folder = tree / fs::relative(fs::current_path(), repository.top());
  std::error_code error;
  if (!fs::is_directory(side.folder, error))
    throw UsageError("commit " + commit.substr(0, 12) + " has no folder " +
                     fs::relative(fs::current_path(), repository.top()).string());
  side.environment.emplace_back("STEPLADDER_COMMIT", commit);
  return side;
}

// The side that `--against` names: a folder or a commit, where the same command runs, or another command.
GateSide base_side(const GateOptions& options, const GateSide& now, const fs::path& folder) {
  GateSide side = now;
  side.name = "base";
  std::error_code error;
  if (fs::is_directory(options.against, error)) {
    side.folder = fs::absolute(options.against);
    return side;
  }
  std::optional<GitCheckout> repository;
  try {
    repository.emplace(fs::current_path());
  } catch (const StorageError&) {  // not in a checkout
  }
  if (repository)
    if (const std::string commit = repository->commit_named(options.against); !commit.empty())
      return side_at_commit(*repository, commit, std::move(side), folder / "tree");
  if (options.against.find_first_of(" /") == std::string::npos)
    throw UsageError("--against " + options.against +
                     " is neither a folder nor a commit of this checkout; a command has its "
                     "path or arguments");
  side.command = for_shell(options.against);
  return side;
}

// Both sides in turns, the first of a round by chance, until the answer is clear.
int judge_against(const GateOptions& options, const FigureQuestion& question, const fs::path& folder,
                  const CommonOptions& common) {
  const GateSide now_side{.name = "now",
                          .command = options.command.empty() ? options.logs : for_shell(options.command)};
  const GateSide base = base_side(options, now_side, folder);
  const Looks looks = looks_of(options, 40);
  GateSample before{.question = question, .unit = {}, .values = {}, .machine = machine_fingerprint()};
  GateSample now = before;
  GateJudgement judged;
  std::mt19937_64 random{std::random_device{}()};
  for (const std::size_t rounds : looks.runs) {
    while (now.values.size() < rounds) {
      const bool now_first = random() % 2 == 0;
      if (now_first) measure(now_side, folder, now);
      measure(base, folder, before);
      if (!now_first) measure(now_side, folder, now);
      if (before.unit != now.unit)
        throw StorageError("the base gives " + unit_words(before.unit) + ", and these runs " + unit_words(now.unit));
    }
    judged = judge_turns(before, now, options.tolerance_percent / 100, looks.error_at(rounds));
    if (judged.answer != GateAnswer::cannot_tell) break;
  }
  return answer(judged, before, now, options, common);
}

int run_gate(GateOptions options, const CommonOptions& common) {
  if (options.against.ends_with(".json") && options.against.find(' ') == std::string::npos &&
      !fs::exists(options.against))
    throw NotFound(options.against + " does not exist", {.argument = "--against", .value = options.against});
  if (options.against.ends_with(".json") && fs::is_regular_file(options.against))
    std::swap(options.against, options.baseline);  // a file that --out made
  const bool against = !options.against.empty();
  if (!options.baseline.empty() + !options.write.empty() + against != 1)
    throw UsageError(
        "record gate needs one of --against REF (both sides in turns), --against FILE to judge, --out FILE to "
        "make one");
  if (options.most_runs && *options.most_runs < options.runs)
    throw UsageError(
        "--max-repeats " + std::to_string(*options.most_runs) + " is less than --repeats, " +
            std::to_string(options.runs),
        {.code = "conflicting-options", .argument = "--max-repeats", .value = std::to_string(*options.most_runs)});
  if (options.command.empty() == options.logs.empty())
    throw UsageError(against ? "record gate --against needs the command, after --"
                             : "record gate needs either logs or --command");
  FigureQuestion question = asked_figure(options.figure);
  if (!options.baseline.empty()) {
    const FigureQuestion written = read_gate_baseline(options.baseline).question;
    if (options.figure.given() && question != written)
      throw UsageError(options.baseline + " was written with " + option_text(written));
    question = written;
  }
  if (question.by == FigureBy::wall && !options.logs.empty() && !against) throw UsageError("--by wall needs --command");
  const ScratchFolder folder("stepladder-gate");
  try {
    if (against) return judge_against(options, question, folder.path(), common);
    GateSample sample = sample_of_logs(options.logs, question);
    return options.write.empty() ? judge(options, std::move(sample), folder.path(), common)
                                 : write_baseline(options, std::move(sample), folder.path(), common);
  } catch (const Stopped&) {
    return exit_interrupted;
  }
}

}  // namespace

void add_record_gate(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<GateOptions>();
  CLI::App* command = add_with_json(record, common, "gate", "Tell whether a change is slower than a baseline's file");
  command->add_option("logs", options->logs,
                      "Folders of logs of this machine, or logs; with --against the command, after --");
  command->add_option("--command", options->command, "Command that prints a log, for the shell, run instead");
  command->add_option("--baseline", options->baseline, "File to judge against")->type_name("FILE")->group(hidden_group);
  command
      ->add_option("--against", options->against,
                   "Commit, folder or command to run in turns with the command; or a file that --out made")
      ->type_name("REF");
  command->add_option("-o,--out,--write", options->write, "File to write the baseline to");
  add_force(*command, options->forces);
  add_figure_options(*command, options->figure);
  command->add_option("--repeats,--runs", options->runs, "Runs of the command")->transform(positive_count());
  command
      ->add_option("--max-repeats,--max-runs", options->most_runs,
                   "Most runs while it is inconclusive; else 20, with --against 40 of each")
      ->transform(positive_count());
  command->add_option("--tolerance", options->tolerance_percent, "Change that counts as none, in percent: 1%")
      ->transform(percent(0.01, 0, 50));
  choose_if_parsed(*command, chosen, options, common, run_gate);
}

}  // namespace stepladder
