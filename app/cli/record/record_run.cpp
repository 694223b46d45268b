// `stepladder record run`: a baseline and a candidate in turns, on this machine.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <random>

#include "app/cli/machines/on_machine.h"
#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "app/import/import.h"
#include "app/record/experiment.h"
#include "app/record/run_doubt.h"
#include "app/runs/find_run.h"
#include "app/text/format.h"
#include "storage/speedrun/record_claim.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string folder;
  std::int64_t runs = 0;
  std::string baseline, candidate;        // commands of the shell
  std::string baseline_in, candidate_in;  // folders
  std::vector<std::string> command;       // of both sides
  std::string rule;
  double power = 0.9;
  bool systems_only = false;
  bool no_import = false;
  OnMachine on;
};

ExperimentSide side_of(const std::string& shell, const std::string& folder, const std::vector<std::string>& command,
                       const char* name) {
  ExperimentSide side;
  if (!shell.empty() && !command.empty())
    throw UsageError(std::string("give --") + name + " or a command after --, not both");
  if (!shell.empty()) side.command = {"/bin/sh", "-c", shell};
  if (!command.empty()) side.command = command;
  if (side.command.empty()) return side;
  side.folder = fs::absolute(folder.empty() ? fs::path(".") : fs::path(folder)).lexically_normal();
  if (!fs::is_directory(side.folder)) throw UsageError(side.folder.string() + " isn't a folder");
  return side;
}

ExperimentPlan plan_of(const RunOptions& options) {
  ExperimentPlan plan{.baseline = side_of(options.baseline, options.baseline_in, options.command, "baseline"),
                      .candidate = side_of(options.candidate, options.candidate_in, options.command, "candidate"),
                      .runs = static_cast<int>(std::min<std::int64_t>(options.runs, 1'000'000)),
                      .order = {},
                      .machine = {}};
  if (!plan.baseline.command.empty() && plan.baseline == plan.candidate)
    throw UsageError("baseline and candidate are the same command in the same folder");
  return plan;
}

// Imports what `stepladder import FOLDER` would; skips what the project has already.
std::vector<RunId> import_logs(const fs::path& folder, const CommonOptions& common) {
  std::optional<RunStore> store;
  const auto open = [&]() -> RunStore& {
    if (!store) store.emplace(RunStore::open(common.database));
    return *store;
  };
  ImportRequest request;
  request.paths = {(folder / "baseline").string(), (folder / "candidate").string()};
  request.options.files = FilesAre::repeats;
  request.interrupted = interrupted;
  if (fs::exists(common.database)) request.in_project = imported_contents(open());
  const ImportOutcome outcome = import_into(open, request);
  if (outcome.error) std::rethrow_exception(outcome.error);
  for (const std::string& sentence : outcome.failures)
    std::cerr << "stepladder: not imported: " << harmless(sentence) << "\n";
  return ids_of(outcome.runs);
}

Json figures_json(const SampleFigures& figures) {
  return {{"n", figures.n}, {"mean", number(figures.mean)}, {"std", number(figures.std)}};
}

Json wall_json(const WallTimes& wall) {
  return {{"baseline_s", figures_json(wall.baseline)},
          {"candidate_s", figures_json(wall.candidate)},
          {"speedup", number(wall.speedup)},
          {"ci95", interval_json(wall.ci95)},
          {"verdict", std::string(to_string(wall.verdict))}};
}

std::string wall_text(const WallTimes& wall) {
  std::vector<std::vector<std::string>> rows{
      {"  wall clock",
       "baseline " + decimals(wall.baseline.mean, 3) + " s, candidate " + decimals(wall.candidate.mean, 3) + " s"}};
  if (!is_missing(wall.speedup))
    rows.push_back({"  speed-up", decimals(wall.speedup, 4) + " by the wall clock" +
                                      (wall.ci95.known() ? ", 95 % interval " + decimals(wall.ci95.low, 4) + " to " +
                                                               decimals(wall.ci95.high, 4)
                                                         : "")});
  return table(rows, {false, false});
}

std::string verdict_words(Verdict verdict) {
  if (verdict == Verdict::cannot_tell) return "neither clearly faster nor clearly slower";
  return verdict == Verdict::same ? "as fast as the baseline" : std::string(to_string(verdict));
}

int status_of(Verdict verdict) {
  if (verdict == Verdict::slower) return exit_slower;
  return verdict == Verdict::cannot_tell ? exit_cannot_tell : exit_done;
}

// What speaks against a candidate that is as fast or faster: its loss, its steps, physics.
DoubtedGain doubt_of_candidate(const Experiment& experiment) {
  constexpr std::size_t most_compared = 10;  // runs of a side
  std::vector<LoadedRun> sides[2];
  for (const ExperimentRun& run : experiment.runs()) {
    std::vector<LoadedRun>& side = sides[run.is_candidate];
    const auto end = end_of_command(run.command.state);
    if (!end || side.size() == most_compared) continue;
    LoggedRun logged = read_logged_run(run.command.log);
    if (logged.steps.empty()) continue;
    logged.run.started_at = end->started_at;
    logged.run.ended_at = end->started_at + end->wall_s;
    side.push_back(loaded_from(logged));
  }
  if (sides[0].empty() || sides[1].empty()) return {};
  return doubt_of(measured(sides[0]), measured(sides[1]), load_run_context(nullptr).hardware, true);
}

// The answer without a rule, and its exit status.
struct RunAnswer {
  std::string word, reason;
  int status = exit_done;
};

RunAnswer answer_of(const Experiment& experiment, const RecordClaim& claim, Verdict verdict, std::string reason) {
  RunAnswer answer{std::string(to_string(verdict)), std::move(reason), status_of(verdict)};
  if (answer.status != exit_done) return answer;
  const auto withdraw = [&](const char* word, const std::string& why, int status) {
    answer = {word, why + "; " + answer.reason, status};
  };
  const DoubtedGain found = doubt_of_candidate(experiment);
  const auto flag = std::ranges::find_if(claim.flags, [](const RecordFlag& it) {  // seeds and curves may be one
    return it.id == "failed-runs" || it.id.starts_with("clock-");
  });
  if (claim.metric.n > 0 && !std::isfinite(claim.metric.mean))
    withdraw("misses", "a run of the candidate ends with a loss that isn't finite", exit_loss_not_at_parity);
  else if (found.doubt == RunDoubt::guard)
    withdraw("misses", found.reason, exit_loss_not_at_parity);
  else if (found.doubt == RunDoubt::invalid)
    withdraw("flagged", found.reason, exit_implausible);
  else if (flag != claim.flags.end())
    withdraw("flagged", flag->why, exit_implausible);
  else if (found.doubt == RunDoubt::cannot_tell)
    withdraw("cannot-tell", found.reason, exit_cannot_tell);
  else if (!found.note.empty())
    answer.reason += "; " + found.note;
  return answer;
}

int report(const Experiment& experiment, const RunOptions& options, const CommonOptions& common) {
  const std::optional<RecordRule> rule = asked_rule(options.rule);
  const LogQuestion question = question_of(rule);
  const RecordPool candidate = asked_pool({experiment.candidate_folder().string()}, question, common);
  const RecordPool baseline = asked_pool({experiment.baseline_folder().string()}, question, common);
  const RecordClaim claim =
      judge_record(candidate, &baseline, rule,
                   {.plan = experiment.plan().runs, .power = options.power, .systems_only = options.systems_only});
  const WallTimes wall = experiment.wall_times();
  // Logs of other programs may print neither a clock nor a loss that `record` knows; then the wall clock answers.
  const bool logs_tell = claim.metric.n > 0;
  const Verdict printed = verdict_of(claim.speedup, claim.speedup_ci95);
  // Slower processes whose logs say that they are faster: their clocks aren't those of the work. Of a shorter process
  // its start may be all.
  constexpr double shortest_s = 1;
  const bool is_doubted =
      printed == Verdict::faster && wall.verdict == Verdict::slower && wall.candidate.mean > shortest_s;
  const Verdict verdict = is_missing(claim.speedup) ? wall.verdict : is_doubted ? Verdict::cannot_tell : printed;
  const RunAnswer answer = answer_of(experiment, claim, verdict,
                                     std::string("the candidate is ") + verdict_words(verdict) +
                                         (is_doubted ? ": its logs' clocks say faster, and its processes took longer"
                                          : is_missing(claim.speedup) ? ""
                                                                      : " by its own clock"));
  std::vector<RunId> imported;
  if (!options.no_import) imported = import_logs(experiment.baseline_folder().parent_path(), common);
  if (common.json)
    print({{"folder", experiment.baseline_folder().parent_path().string()},
           {"runs", experiment.plan().runs},
           {"done", experiment.done()},
           {"verdict", answer.word},
           {"reason", answer.reason},
           {"wall", wall_json(wall)},
           {"claim", logs_tell ? record_json(claim, rule) : Json()},
           {"imported", imported}});
  else
    std::cout << wall_text(wall) << (logs_tell ? record_text(claim, rule, options.power) : "")
              << notes_text(capitalised(answer.reason));
  if (rule && !(is_doubted && claim.verdict == RecordVerdict::record)) return exit_status_of(claim.verdict);
  return answer.status;
}

int run_experiment(const RunOptions& options, const CommonOptions& common) {
  asked_rule(options.rule);  // a wrong name is an error before hours of runs
  if (options.on) return run_on_machine(options.on, common);
  Experiment experiment(options.folder, plan_of(options), std::random_device()());
  const std::size_t of = experiment.runs().size();
  const bool finished = experiment.go_on(
      [&](const ExperimentRun& run) {
        std::cerr << "stepladder: run " << experiment.done() + 1 << " of " << of << ": "
                  << (run.is_candidate ? "candidate " : "baseline ") << run.number << "\n";
      },
      interrupted);
  if (!finished) {
    std::cerr << "stepladder: stopped after " << experiment.done() << " of " << of << " runs; `stepladder record run "
              << options.folder << "` goes on\n";
    return exit_interrupted;
  }
  return report(experiment, options, common);
}

}  // namespace

void add_record_run(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      add_with_json(record, common, "run", "Run a baseline and a candidate in turns; the same command goes on");
  command->add_option("-o,--out,folder", options->folder, "Folder for the plan and the logs")
      ->required()
      ->type_name("FOLDER");
  command->add_option("--repeats,--runs", options->runs, "Runs of each side, fixed beforehand")
      ->transform(positive_count());
  command->add_option("--against,--baseline", options->baseline, "Command of the baseline, for the shell")
      ->type_name("COMMAND");
  command->add_option("--candidate", options->candidate, "Command of the candidate")->type_name("COMMAND");
  command->add_option("--against-in,--baseline-in", options->baseline_in,
                      "Folder that the baseline runs in, such as a checkout");
  command->add_option("--candidate-in", options->candidate_in, "Folder that the candidate runs in");
  command->add_option("command", options->command, "The command of both sides, after --");
  command->add_option("--rule", options->rule, "Rule, such as modded-nanogpt-1");
  command->add_option("--power", options->power, "Probability of passing that the needed number is for")
      ->check(between(0.01, 0.999));
  command->add_flag("--systems-only", options->systems_only, "The change leaves the maths alone");
  command->add_flag("--no-import", options->no_import, "Leave the database alone");
  add_on_options(*command, options->on, false);
  choose_if_parsed(*command, chosen, options, common, run_experiment);
}

}  // namespace stepladder
