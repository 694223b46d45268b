// --on for the commands that train or watch: sends this command line to a machine without the options that belong to
// this side (`own_options`), follows the runs there, and prints their results as if they were local. A new option for
// this side only has to be added to that list.
#include "app/cli/machines/on_machine.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <set>

#include "app/cli/progress.h"
#include "app/exit_status.h"
#include "app/machines/far_command.h"
#include "app/machines/packed_files.h"
#include "app/runs/find_run.h"
#include "app/runs/loaded_runs.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds wait_for_machines(100);
constexpr std::chrono::seconds patience_with_requests(60);

// Options that have a meaning on this side only and aren't sent.
const std::set<std::string> own_options = {"--on",   "--there", "--db",    "--partition",     "--account",
                                           "--time", "--gpus",  "--nodes", "--tasks-per-node"};
const std::set<std::string> own_flags = {"--json", "--detach", "--slurm"};

std::vector<std::string> words_for_there(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (own_flags.contains(name)) continue;
    if (!own_options.contains(name))
      kept.push_back(words[i]);
    else if (name.size() == words[i].size())
      ++i;  // its value
  }
  return kept;
}

void say(const std::string& text) {
  std::cerr << "stepladder: " << harmless(text) << "\n";
}

std::optional<SlurmRequest> slurm_of(const OnMachine& on, const Machine& machine) {
  const bool asks = on.uses_slurm || on.slurm != SlurmRequest{};
  if (!asks && !machine.uses_slurm) return std::nullopt;
  SlurmRequest slurm = machine.slurm;  // what it was added with, unless this command says otherwise
  for (SlurmWord SlurmRequest::*word : {&SlurmRequest::partition, &SlurmRequest::account, &SlurmRequest::time})
    if (!(on.slurm.*word).empty()) slurm.*word = on.slurm.*word;
  for (std::int64_t SlurmRequest::*count : {&SlurmRequest::gpus, &SlurmRequest::nodes, &SlurmRequest::tasks_per_node})
    if (on.slurm.*count > 0) slurm.*count = on.slurm.*count;
  return slurm;
}

void say_how_to_come_back(const FarRun& run) {
  std::cerr << "stepladder: it goes on at " << run.alias.text()
            << "; `stepladder machines follow` takes in its steps, as does the window\n";
}

// For a run that isn't followed to its end.
int exit_status_of_left(const FarRun& run, bool detaches, const CommonOptions& common) {
  if (common.json) print({{"machine", run.alias.text()}, {"under_way", true}});
  say_how_to_come_back(run);
  return detaches && !interrupted() ? exit_done : exit_interrupted;
}

std::string not_asked_from_here(const std::string& alias) {
  return "this project's file says that the run is at " + harmless(alias) +
         ", but you haven't started it from here: it came with the file. `stepladder machines adopt " +
         harmless(alias) + "` shows what that machine would do, and makes it yours";
}

// The last lines of a program's output.
std::string last_lines(const std::string& output, int most) {
  std::size_t begin = output.find_last_not_of('\n');
  for (int line = 0; line < most && begin != std::string::npos && begin > 0; ++line)
    begin = output.rfind('\n', begin - 1);
  return harmless(output.substr(begin == std::string::npos ? 0 : begin));
}

int print_results(RunStore& store, const FarProgress& progress, const CommonOptions& common,
                  const PrintLadder& print_ladder) {
  std::vector<Run> rows;
  for (const RunId id : progress.runs)
    if (const auto run = store.run(id)) rows.push_back(*run);
  if (rows.empty()) return exit_failed;
  const std::optional<LadderId> ladder = rows.front().ladder;
  const std::vector<LoadedRun> runs = load_runs(store, ladder ? store.runs_of(*ladder) : rows);
  const RunContext context = load_run_context(&store);
  if (ladder) {
    Ladder of_all{.id = *ladder};
    for (const Ladder& each : store.ladders())
      if (each.id == *ladder) of_all = each;
    if (print_ladder)
      print_ladder(store, of_all, runs);
    else if (common.json)
      print(ladder_json(of_all, runs, {}, common.database, context));
    else
      std::cout << ladder_table(of_all, runs, {}, context);
  } else if (common.json) {
    print(run_json(runs.front().run, runs.front().summary, context));
  } else {
    std::cout << run_text(runs.front(), context);
  }
  return exit_status(runs, true);
}

// Prints the runs that a Stepladder there has trained and, if it failed, its last lines.
int report_end(RunStore& store, const FarProgress& progress, const CommonOptions& common,
               const PrintLadder& print_ladder = {}) {
  const int status = print_results(store, progress, common, print_ladder);
  if (status == exit_done && progress.exit_status == 0) return exit_done;
  if (!progress.reason.empty()) say("the Stepladder at " + progress.run.alias.text() + ": " + progress.reason);
  if (progress.runs.empty() && !progress.output_tail.empty()) std::cerr << last_lines(progress.output_tail, 10) << "\n";
  return status == exit_done ? exit_failed : status;
}

// A watched command's exit status; exit_failed if its run didn't finish for another reason.
int status_of(RunStore& store, const FarProgress& progress) {
  if (progress.runs.empty()) return exit_failed;
  if (store.existing_run(progress.runs.front()).status == RunStatus::finished) return exit_done;
  return progress.exit_status != 0 ? static_cast<int>(progress.exit_status & 255) : exit_failed;
}

}  // namespace

FarRuns::Callbacks callbacks_for_terminal(bool shows_output) {
  FarRuns::Callbacks callbacks{.report = say};
  if (shows_output)
    callbacks.output = [](const Uid&, std::string_view bytes) {
      std::cout.write(bytes.data(), std::ssize(bytes));
      std::cout.flush();
    };
  return callbacks;
}

SshAsks asks_on_terminal() {
  return {.on_terminal = ::isatty(STDIN_FILENO) == 1};
}

std::optional<FarProgress> follow_to_end(FarRuns& runs, const FarRun& run, bool detaches) {
  while (!interrupted()) {
    runs.poll(wait_for_machines);
    const auto progress = runs.progress(run.uid);
    if (!progress || progress->run.is_over) return progress;
    if (detaches && progress->run.is_started) return std::nullopt;
  }
  return std::nullopt;
}

Machine find_machine(RunStore& store, const std::string& name) {
  const auto alias = MachineAlias::from(name);
  if (!alias)
    throw UsageError(MachineAlias::refused(name), {.code = "invalid-value", .argument = "machine", .value = name});
  if (auto machine = store.machines().machine(*alias)) return *machine;
  for (const MachineInFile& known : store.machines().machines_in_file())
    if (known.alias == name)
      throw UsageError(name + " came with this project's file, so nothing connects to it",
                       {.code = "foreign-machine",
                        .argument = "machine",
                        .value = name,
                        .hint = "`stepladder machines adopt " + name + "` shows what it would do, and makes it yours"});
  throw NotFound("no machine " + name + " is known", {.code = "no-such-machine",
                                                      .argument = "machine",
                                                      .value = name,
                                                      .hint = "`stepladder machines add " + name + "` adds it"});
}

std::vector<CLI::Option*> add_slurm_options(CLI::App& command, SlurmRequest& slurm) {
  return {
      add_checked_option(command, "--partition", slurm.partition, "Slurm's partition"),
      add_checked_option(command, "--account", slurm.account, "Slurm's account"),
      add_checked_option(command, "--slurm-time,--time", slurm.time, "Slurm's time limit: 30, 02:00:00, 1-12:00:00"),
      command.add_option("--gpus", slurm.gpus, "GPUs of each node")->check(between(0, 64)),
      command.add_option("--nodes", slurm.nodes, "Nodes of one job")->check(between(1, 4096)),
      command
          .add_option("--tasks-per-node", slurm.tasks_per_node,
                      "Processes of each node (default: on several nodes its GPUs, else 1)")
          ->check(between(1, 64))};
}

void add_on_options(CLI::App& command, OnMachine& on, bool watches) {
  CLI::Option* where = command.add_option("--on", on.alias, "Machine to run it on (see `stepladder machines`)");
  command.add_option("--there", on.folder, "Folder of that machine to run it in")->needs(where);
  command.add_flag("--detach", on.detaches, "End when the machine has taken it, without following it")->needs(where);
  command.add_flag("--slurm", on.uses_slurm, "As a job of that machine's Slurm")->needs(where);
  if (watches) {
    command.add_flag("--send", on.sends_tree, "Send this git checkout's files, changed ones too, and run it in them")
        ->needs(where);
    CLI::Option* repeats =
        command
            .add_option("--repeats", on.repeats, "Run it this often, as one array of Slurm jobs: repeats of one rung")
            ->check(between(1, 1000))
            ->needs(where);
    command.add_option("--at-once", on.at_once, "Repeats that run at the same time (default: as many as have room)")
        ->check(between(1, 1000))
        ->needs(repeats);
  }
  for (CLI::Option* option : add_slurm_options(command, on.slurm)) option->needs(where);
}

int train_on_machine(const OnMachine& on, const CommonOptions& common, const std::vector<std::string>& words,
                     const PrintLadder& print) {
  RunStore store = RunStore::open(common.database);
  const Machine machine = find_machine(store, on.alias);
  FarRuns runs(store, callbacks_for_terminal(false), asks_on_terminal());
  FarCommand asked = stepladder_there(machine, words.empty() ? words_for_there(command_words()) : words);
  asked.folder = on.folder;
  asked.slurm = slurm_of(on, machine);
  const FarRun run = runs.start(machine, asked);
  const auto progress = follow_to_end(runs, run, on.detaches);
  if (!progress) return exit_status_of_left(run, on.detaches, common);
  return report_end(store, *progress, common, print);
}

int run_on_machine(const OnMachine& on, const CommonOptions& common) {
  if (common.json) throw UsageError("--json: the results are at " + on.alias + "; ask for them there");
  RunStore store = RunStore::open(common.database);
  const Machine machine = find_machine(store, on.alias);
  FarCommand asked = stepladder_there(machine, words_for_there(command_words()), false);
  asked.folder = on.folder.empty() ? std::filesystem::current_path().string() : on.folder;
  asked.slurm = slurm_of(on, machine);
  FarRuns runs(store, callbacks_for_terminal(true), asks_on_terminal());
  const FarRun run = runs.start(machine, asked);
  const auto progress = follow_to_end(runs, run, on.detaches);
  if (!progress) return exit_status_of_left(run, on.detaches, common);
  if (progress->phase != "ended") say(progress->reason);
  return progress->phase == "ended" ? static_cast<int>(progress->exit_status & 255) : exit_failed;
}

std::optional<int> continue_on_machine(const std::string& wanted, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const std::vector<Run> trained = store.runs_of(find_ladder(store, wanted).id);
  const auto place = trained.empty() ? std::nullopt : store.machines().place_of(trained.front().id);
  if (!place) return std::nullopt;
  const Machine machine = find_machine(store, place->alias);
  const auto before = store.machines().far_run_of(trained.front().id);
  if (!before) throw UsageError(not_asked_from_here(place->alias));
  if (!before->is_over)
    throw UsageError("the ladder is still under way at " + machine.alias.text() +
                     "; `stepladder machines follow` follows it");
  FarRuns runs(store, callbacks_for_terminal(false), asks_on_terminal());
  const FarRun run = runs.restart(before->uid, stepladder_there(machine, {"ladder", "--continue"}).command);
  const auto progress = follow_to_end(runs, run, false);
  return progress ? report_end(store, *progress, common) : exit_status_of_left(run, false, common);
}

int watch_on_machine(const OnMachine& on, const std::vector<std::string>& command, const std::string& name,
                     const ImportOptions& options, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  const Machine machine = find_machine(store, on.alias);
  FarCommand asked{.kind = "watch",
                   .name = name.empty() ? std::filesystem::path(command.front()).filename().string() : name,
                   .command = command,
                   .folder = on.folder,
                   .slurm = slurm_of(on, machine),
                   .at_once = on.at_once,
                   .options = options};
  if (on.repeats > 1 && !asked.slurm)
    throw UsageError("--repeats needs Slurm, which starts them as one array of jobs; " + machine.alias.text() +
                     " runs one command at a time: call it again for each repeat, or give --slurm");
  std::optional<PackedFiles> tree;
  if (on.sends_tree) {
    tree.emplace(PackedFiles::working_tree());
    asked.tree = tree->archive();
    asked.sent = tree->description();
  } else if (on.folder.empty()) {
    asked.folder = std::filesystem::current_path().string();
  }
  FarRuns runs(store, callbacks_for_terminal(!common.json && on.repeats == 1), asks_on_terminal());
  int status = exit_done;  // of the first repeat that failed
  std::vector<RunId> recorded;
  for (const FarRun& run : runs.start_repeats(machine, asked, on.repeats)) {
    const auto progress = follow_to_end(runs, run, on.detaches);
    if (!progress && on.detaches && !interrupted()) continue;
    if (!progress) {
      say_how_to_come_back(run);
      return exit_interrupted;
    }
    if (status == exit_done) status = status_of(store, *progress);
    recorded.insert(recorded.end(), progress->runs.begin(), progress->runs.end());
  }
  if (common.json) {
    const RunContext context = load_run_context(&store);
    Json json = Json::array();
    for (const RunId id : recorded)
      if (const auto run = store.run(id)) json.push_back(run_json(*run, store.summary(*run), context));
    print(on.repeats == 1 && json.size() == 1 ? json.front() : json);
  }
  if (on.detaches) say_how_to_come_back({.alias = machine.alias});
  return status;
}

std::optional<int> ask_machine(RunStore& store, const Run& run, RunRequest request) {
  const auto place = store.machines().place_of(run.id);
  if (!place) return std::nullopt;
  const auto far_run = store.machines().far_run_of(run.id);
  if (!far_run) throw UsageError(not_asked_from_here(place->alias));
  const auto machine = store.machines().machine(far_run->alias);
  if (!machine)
    throw NotFound(place->alias + " is no longer among the machines; `stepladder machines add` adds it again");
  FarRuns runs(store, callbacks_for_terminal(false), asks_on_terminal());
  std::optional<std::string> answer;
  Link& link = runs.link(*machine);
  const auto give_up = std::chrono::steady_clock::now() + patience_with_requests;
  while (!link.is_up() && is_missing(link.lost_at()) && !interrupted() && std::chrono::steady_clock::now() < give_up)
    runs.poll_links(wait_for_machines);
  if (!link.is_up())
    return report_error(harmless(place->alias + " can't be reached: " + link.why() + "; the run was not asked"));
  const char* signal = request == RunRequest::stop ? "stop" : request == RunRequest::pause ? "pause" : "continue";
  runs.signal(far_run->uid, signal, [&](const std::string& error) { answer = error; });
  while (!answer && !interrupted()) runs.poll_links(wait_for_machines);
  if (answer && answer->empty()) {
    say(place->alias + " was asked to " + signal + " " + asked_of(store, *place));
    return exit_done;
  }
  return report_error(harmless(answer ? *answer : "interrupted before " + place->alias + " has answered"));
}

}  // namespace stepladder
