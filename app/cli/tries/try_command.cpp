// `stepladder try`: judges one change after the other of a git checkout. Its exit status is for scripts: 0 only for a
// change that is kept.
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/machines/on_machine.h"
#include "app/cli/record/subcommands.h"
#include "app/cli/tries/try_report.h"
#include "app/exit_status.h"
#include "app/record/try_ledger.h"
#include "app/record/try_series.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "app/text/verdict_text.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

struct TryOptions {
  std::string message;
  bool reverts = false, commits = false, is_dry = false;
  std::string holdout;
  QuietPatience quiet;
  FigureOptions figure;
  bool strict = false;
  std::vector<std::string> also, seals, command, flags;
  std::int64_t first_runs = 6, budget_runs = 0, rounds = 5;
  std::string budget_time;
  std::string machine, there;
  std::int64_t number = 0;
  std::string file;
  double noise = 0;
  bool tsv = false;
  Limit limit;
};

void report(const std::string& line) {
  std::cerr << "stepladder: " << line << "\n";
}

int status_of(TryVerdict verdict) {
  return by_enum<TryVerdict>(exit_done, exit_slower, exit_cannot_tell, exit_implausible, exit_loss_not_at_parity,
                             exit_command_failed)[verdict];
}

int stopped(const std::string& again) {
  return report_error(UsageError("stopped", {.code = "interrupted", .hint = "`stepladder " + again + "` goes on"}),
                      exit_interrupted);
}

// The note that an answer wasn't given yet. Declared before the project is opened, so that it goes last.
struct GivenAnswer {
  fs::path file;
  ~GivenAnswer() {
    std::cout.flush();
    std::error_code error;
    if (!file.empty()) fs::remove(file, error);
  }
};

// A machine that can't do the runs of a series is refused before the first one.
void check_machine(RunStore& store, const TryOptions& options) {
  if (options.machine.empty()) return;
  const Machine machine = find_machine(store, options.machine);
  const std::string alias = machine.alias.text();
  if (machine.uses_slurm)
    throw UsageError(alias +
                     " gives each run to Slurm, and runs on several nodes can't be compared; begin the series on a "
                     "node of it, or add the machine once more without --slurm");
  if (options.quiet)
    throw UsageError("--when-quiet watches the load of this machine, and the runs are done at " + alias);
  if (const std::string why = MachineFolder::refused(options.there); !why.empty())
    throw UsageError("--there: " + why, {.code = "invalid-value", .argument = "--there", .value = options.there});
}

int begin(const TryOptions& options, const CommonOptions& common) {
  TryPlan plan{.command = options.command,
               .figure = asked_figure(options.figure),
               .guesses_direction = guesses_direction(options.figure),
               .holdout = options.holdout,
               .first_runs = options.first_runs,
               .budget_runs = options.budget_runs,
               .quiet_s = options.quiet ? double(options.quiet->count()) : 0,
               .machine = options.machine,
               .there = options.there,
               .false_keeps = options.strict ? FalseKeeps::none : FalseKeeps::few};
  for (const std::string& text : options.also) plan.guards.push_back(guard_from(text));
  for (const std::string& path : options.seals) plan.seals.push_back({.path = path});
  if (!options.budget_time.empty()) plan.budget_s = duration_from(options.budget_time);
  if (plan.first_runs < 3) throw UsageError("--runs: the noise needs 3 runs or more of the unchanged state");
  if (plan.budget_runs > 0 && plan.budget_runs <= plan.first_runs)
    throw UsageError("--budget-runs: the unchanged state alone takes " + plural(plan.first_runs, "run"));
  if (!plan.holdout.empty() && plan.figure.by != FigureBy::metric)
    throw UsageError("--holdout needs --metric: the held-out command prints it too");
  GivenAnswer given;
  RunStore store = RunStore::open(common.database);
  check_machine(store, options);
  const auto runner = TrySeriesRunner::begin(store, plan, fs::current_path(), report, interrupted);
  if (!runner) return stopped("try begin");
  const Try& first = runner->tries().front();
  if (first.verdict != to_string(TryVerdict::kept)) {
    const std::string run = std::to_string(runner->runs().back().run);
    return report_error(
        UsageError("on the unchanged state, " + Json::parse(first.answer).value("reason", "the command failed"),
                   {.code = "command-failed",
                    .argument = "command",
                    .value = run,
                    .hint = "`stepladder show " + run + " --console` prints its output"}),
        exit_command_failed);
  }
  const Json json = begin_json(*runner);
  if (const std::string doubt = runner->seed_doubt(); !doubt.empty())
    report(doubt + "; nothing can be kept");
  else if (!json["flags"].empty())
    report(
        "all runs gave the same value to the last digit, which says nothing about the noise: let the seed vary, as "
        "$STEPLADDER_SEED does, or nothing can be kept");
  if (common.json)
    print_line(json, std::cout);
  else
    std::cout << status_text(try_history(store)) << "Change something, then: stepladder try -m \"what was changed\"\n";
  given.file = runner->unreported_file();
  return exit_done;
}

int preview(const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  TrySeriesRunner runner(store, fs::current_path(), report, interrupted);
  const TryPreview it = runner.preview();
  if (common.json) {
    print_line({{"dry_run", true},
                {"try", it.number},
                {"against", runner.kept().number},
                {"changed", it.changed},
                {"tried_as", it.tried_before ? Json(it.tried_before->number) : Json()},
                {"refused", text_or_null(it.refused)},
                {"run_s", number(it.run_s)},
                {"runs_left", runner.runs_left() ? Json(*runner.runs_left()) : Json()}},
               std::cout);
    return exit_done;
  }
  const std::string against =
      runner.kept().number == 0 ? "the first state" : "try " + std::to_string(runner.kept().number);
  std::string text = "Try " + std::to_string(it.number) + " would judge " +
                     plural(std::ssize(it.changed), "changed file") + " against " + against +
                     (is_missing(it.run_s) ? "" : "; a run took " + rough_duration_text(it.run_s) + " in the mean") +
                     ".\n";
  if (it.changed.empty()) text = "Nothing has changed since " + against + ".\n";
  for (const std::string& file : it.changed) text += "  " + file + "\n";
  if (it.tried_before && !it.changed.empty())
    text += "It was tried as " + std::to_string(it.tried_before->number) + ": " +
            try_verdict_word(it.tried_before->verdict) + ".\n";
  if (!it.refused.empty()) text += "It would be refused: " + it.refused + ".\n";
  std::cout << notes_text(text);
  return exit_done;
}

int judge(const TryOptions& options, const CommonOptions& common) {
  if (options.is_dry) return preview(common);
  if (options.message.empty())
    throw UsageError("say what was changed: stepladder try -m TEXT; `stepladder try begin -- COMMAND` begins a series");
  GivenAnswer given;
  RunStore store = RunStore::open(common.database);
  TrySeriesRunner runner(store, fs::current_path(), report, interrupted);
  const auto answer = runner.judge(options.message);
  if (!answer) return stopped("try -m TEXT");
  const Try& it = runner.tries().back();
  if (options.commits && answer->verdict == TryVerdict::kept && runner.is_dirty(it)) try {
      runner.commit(it.number);
      report("committed as " + it.commit.substr(0, 12));
    } catch (const std::runtime_error& error) {
      report(std::string("kept, but not committed: ") + error.what());
    }
  const Json json = Json::parse(it.answer);
  if (common.json) {
    print_line(json, std::cout);
  } else {
    const std::string change = change_text(json);
    std::cout << "Try " << it.number << ": " << try_verdict_word(to_string(answer->verdict))
              << (change.empty() ? "" : ", ") << change << "; " << plural(runner.runs_of_try(it.number), "run") << "\n"
              << answer->reason << "\n";
  }
  given.file = runner.unreported_file();
  if (options.reverts && answer->verdict != TryVerdict::kept) {
    if (!runner.checkout_is(it)) {
      report("the checkout was changed meanwhile, so it is left as it is; `stepladder try revert` goes back");
      return status_of(answer->verdict);
    }
    runner.revert({});
    report("the checkout is as it was kept last; `stepladder try revert " + std::to_string(it.number) +
           "` brings the change back");
  }
  return status_of(answer->verdict);
}

int revert(const TryOptions& options, bool has_number, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  TrySeriesRunner runner(store, fs::current_path(), report, interrupted);
  const std::string saved = runner.revert(has_number ? std::optional(options.number) : std::nullopt);
  if (!saved.empty()) report("what was there and hadn't been tried is in " + saved);
  const std::int64_t to = has_number ? options.number : runner.kept().number;
  if (common.json)
    print_line({{"try", to}, {"saved", text_or_null(saved)}}, std::cout);
  else
    std::cout << "The checkout is that of " << (to == 0 ? "the beginning" : "try " + std::to_string(to)) << "\n";
  return exit_done;
}

int end(const TryOptions& options, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  TrySeriesRunner runner(store, fs::current_path(), report, interrupted);
  const auto answer = runner.end(options.rounds);
  if (!answer) return stopped("try end");
  const bool is_measured = !is_missing(answer->difference);
  const Json json = try_answer(runner.series().answer);
  if (common.json)
    print_line(json, std::cout);
  else
    std::cout << status_text(try_history(store))
              << (is_measured ? "All that was kept, measured once more in turns: " + change_text(json) + "; "
                              : std::string("At the end: "))
              << answer->reason << "\n";
  if (runner.held_out_answer() && !common.json)
    std::cout << "Held out: " << change_text(try_json(runner, runner.kept(), *runner.held_out_answer())) << "\n";
  if (is_measured) return status_of(answer->verdict);
  return options.rounds == 0 || runner.kept().number == 0 ? exit_done : exit_cannot_tell;
}

int parts(const TryOptions& options, bool has_number, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  TrySeriesRunner runner(store, fs::current_path(), report, interrupted, TrySeriesRunner::Which::any);
  const auto json = runner.take_apart(has_number ? options.number : runner.kept().number, options.flags);
  if (!json) return stopped("try parts");
  if (common.json)
    print_line(*json, std::cout);
  else
    std::cout << parts_text(*json);
  return exit_done;
}

int replay(const TryOptions& options, const CommonOptions& common) {
  if (!(options.noise > 0))
    throw UsageError("try replay needs --noise SD: by how much one run's figure scatters when nothing is changed");
  const Ledger ledger = read_ledger(options.file);
  const Direction better = options.figure.lower    ? Direction::lower
                           : options.figure.higher ? Direction::higher
                                                   : ledger.better;
  if (better == Direction::unknown) throw UsageError(unknown_direction(ledger.metric));
  Json keeps = Json::array();
  std::vector<std::vector<std::string>> rows{{"line", "gain", "95 % margin", "supported", "holds together", "change"}};
  std::int64_t supported = 0, together = 0;
  for (const JudgedKeep& keep : judge_keeps(ledger, better, options.noise)) {
    const LedgerRow& row = ledger.rows[keep.row];
    supported += keep.is_supported;
    together += keep.holds_together;
    keeps.push_back({{"line", row.line},
                     {"commit", text_or_null(row.commit)},
                     {"description", row.description},
                     {"value", number(row.value)},
                     {"gain", number(keep.gain)},
                     {"ci95", {keep.gain - keep.margin, keep.gain + keep.margin}},
                     {"supported", keep.is_supported},
                     {"holds_together", keep.holds_together}});
    rows.push_back({std::to_string(row.line), metric_text(keep.gain), metric_text(keep.margin),
                    keep.is_supported ? "yes" : "no", keep.holds_together ? "yes" : "no", row.description});
  }
  if (common.json)
    print({{"file", options.file},
           {"metric", text_or_null(ledger.metric)},
           {"tries", ledger.rows.size()},
           {"keeps", keeps},
           {"supported", supported},
           {"hold_together", together}});
  else
    std::cout << table(rows, {true, true, true}) << supported << " of " << plural(std::ssize(keeps), "keep")
              << " are larger than two single runs differ by in 95 %; " << together
              << " also hold by the rule that bounds the false keeps of the whole series\n";
  return exit_done;
}

void add_begin(CLI::App& app, CommonOptions& common, TryOptions& options, ChosenCommand& chosen) {
  CLI::App* command = add_with_json(app, common, "begin", "Begin a series: measure the unchanged checkout's noise");
  command->add_option("command", options.command, "Command that trains and prints its figures, after --");
  add_figure_options(*command, options.figure);
  command->add_option("--also", options.also, "NAME=TOLERANCE: a figure that may give way by so much; 2% is a share")
      ->take_all();
  command->add_option("--runs", options.first_runs, "Runs of the unchanged state (default 6)")
      ->transform(positive_count());
  command->add_option("--budget-runs", options.budget_runs, "Most runs of the whole series")
      ->transform(positive_count());
  command->add_option("--budget-time", options.budget_time, "Longest time of the whole series, such as 8h");
  command->add_option("--seal", options.seals, "File or folder that no change may touch")->take_all();
  command->add_option("--holdout", options.holdout,
                      "Command for the shell that prints the metric on data which no try sees: runs at the end only");
  CLI::Option* machine =
      command->add_option("--on", options.machine, "Machine to do all runs on (see `stepladder machines`)");
  command
      ->add_option("--there", options.there,
                   "Folder of that machine with what git ignores here, such as data (default: the checkout's path)")
      ->needs(machine);
  add_when_quiet(*command, options.quiet);
  command->add_flag("--strict", options.strict, "No false keep in the whole series, with 95 %");
  command->callback([&] { chosen = [&] { return begin(options, common); }; });
}

void add_readers(CLI::App& app, CommonOptions& common, TryOptions& options, ChosenCommand& chosen) {
  const auto add = [&](const char* name, const char* what, const std::function<void(const TryHistory&)>& show) {
    CLI::App* command = add_with_json(app, common, name, what);
    command->callback([&, show] {
      chosen = [&, show] {
        RunStore store = open_existing(common.database);
        show(try_history(store));
        return int(exit_done);
      };
    });
    return command;
  };
  add("status", "Show where the series is", [&](const TryHistory& history) {
    print_as(
        common, [&] { return status_json(history); }, [&] { return status_text(history); });
  });
  CLI::App* log = add("log", "List the tries", [&](const TryHistory& history) {
    const std::size_t all = history.tries.size() - (common.json ? 1 : 0), most = options.limit.of(all, common);
    Json list = Json::array();
    for (const Try& it : history.tries)
      if (it.number > 0 && it.number > std::ssize(history.tries) - 1 - std::int64_t(most))
        list.push_back(logged_try_json(history, it));
    print_as(
        common, [&] { return list; }, [&] { return (options.tsv ? log_tsv(history, most) : log_text(history, most)); });
    Limit::note_left_out(all - most, "earlier one");
  });
  log->add_flag("--tsv", options.tsv, "Table as autoresearch's results.tsv");
  options.limit.add_to(*log, "List only the newest, this many");
  add("show", "Show a try with its runs",
      [&](const TryHistory& history) {
        const Try& it = try_named(history, options.number);
        print_as(
            common, [&] { return shown_try_json(history, it); }, [&] { return show_text(history, it); });
      })
      ->add_option("try", options.number, "Number of the try")
      ->required();
  add("diff", "Print what a try changed",
      [&](const TryHistory& history) {
        const Try& it = try_named(history, options.number);
        if (common.json)
          print({{"try", it.number}, {"patch_bytes", it.patch_bytes}, {"patch", text_or_null(it.patch)}});
        else
          std::cout << it.patch;
        if (it.patch.empty() && it.patch_bytes > 0) report("the patch is longer than 1 MiB, so it isn't kept as text");
      })
      ->add_option("try", options.number, "Number of the try")
      ->required();
}

void add_replay(CLI::App& app, CommonOptions& common, TryOptions& options, ChosenCommand& chosen) {
  CLI::App* command =
      add_with_json(app, common, "replay", "Tell which keeps of a results.tsv or log.jsonl are supported");
  command->add_option("file", options.file, "Ledger of autoresearch or pi-autoresearch")->required();
  command->add_option("--noise", options.noise, "Standard deviation of one run's figure")->transform(positive_number());
  CLI::Option* lower = command->add_flag("--lower", options.figure.lower, "Lower values are better");
  command->add_flag("--higher", options.figure.higher, "Higher values are better")->excludes(lower);
  command->callback([&] { chosen = [&] { return replay(options, common); }; });
}

}  // namespace

Subcommand try_command(CLI::App& app, CommonOptions& common) {
  const auto options = std::make_shared<TryOptions>();
  const auto chosen = std::make_shared<ChosenCommand>();
  CLI::App* command = add_with_json(app, common, "try",
                                    "Judge changes of a git checkout one after the other; 0: kept, 10: worse, 11: "
                                    "inconclusive");
  command->add_option("-m,--message", options->message, "What was changed")->check(short_name());
  command->add_flag("--dry-run", options->is_dry, "Say what would be judged; nothing runs, and nothing is kept");
  command->add_flag("--revert-if-dropped", options->reverts, "Take the change back unless it is kept");
  command->add_flag("--commit", options->commits, "Commit the checkout if the change is kept");
  add_begin(*command, common, *options, *chosen);
  add_readers(*command, common, *options, *chosen);
  add_replay(*command, common, *options, *chosen);
  CLI::App* back = add_with_json(*command, common, "revert", "Set the checkout to what was kept last, or to a try");
  CLI::Option* number = back->add_option("try", options->number, "Number of the try");
  back->callback([options, chosen, number, &common] {
    *chosen = [options, number, &common] { return revert(*options, number->count() > 0, common); };
  });
  CLI::App* apart = add_with_json(*command, common, "parts", "Tell which parts of a kept change did it");
  CLI::Option* taken = apart->add_option("try", options->number, "Number of the try; the one that was kept last");
  apart
      ->add_option("--flag", options->flags, "Words for the command line that are a part, instead of the patch's hunks")
      ->take_all();
  apart->callback([options, chosen, taken, &common] {
    *chosen = [options, taken, &common] { return parts(*options, taken->count() > 0, common); };
  });
  CLI::App* last = add_with_json(*command, common, "end", "Measure the first state against the last one, and end");
  last->add_option("--runs", options->rounds, "Runs of each (default 5); 0 measures nothing")->check(between(0, 1000));
  last->callback([options, chosen, &common] { *chosen = [options, &common] { return end(*options, common); }; });
  return {command, [options, chosen, &common] { return *chosen ? (*chosen)() : judge(*options, common); }};
}

}  // namespace stepladder
