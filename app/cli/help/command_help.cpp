// The one table of groups, examples and exit statuses. Options, their types and defaults are CLI11's, where each
// command declares them. A new command gets a row here; tests/cli/help_test.py says so if it has none.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "app/cli/help/arguments.h"
#include "app/cli/help/help.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr CommandHelp all_help[] = {
    {"ladder", "Measure",
     "ladder --stages bf16,flash-attention --repeats 3 --interleave\tthe baseline and two rungs, three times each\n"
     "ladder --preset rtx3080 --steps 5\tsomebody else's ladder, on this machine\n"
     "ladder --stages \"bf16+compile,mine:lr=3e-4\" --data book.txt\ttwo stages in one rung, then a rung of your own"},
    {"ladder show", "",
     "ladder show\tthe latest ladder, as `ladder` prints it at its end\n"
     "ladder show 3 --json\tladder 3 for a script"},
    {"ladders", "Measure",
     "ladders\tevery ladder with its rungs and runs\n"
     "ladders --json\tthe same for a script"},
    {"train", "Measure",
     "train --data book.txt --steps 2000 --save-every 500\tone run with checkpoints\n"
     "train --stage bf16,compile --model gpt2 --steps 50\tone run with two stages\n"
     "train --resume latest --steps 4000\tcontinues the newest run from its newest checkpoint"},
    {"sweep", "Measure",
     "sweep --over lr=1e-4,3e-4,1e-3 --over seed=1,2,3\tnine runs: three learning rates, three seeds each\n"
     "sweep --of 7 --target 3.28\tthe results of ladder 7 again, and what each run needed"},
    {"sweep show", "",
     "sweep show 7\tthe results of sweep 7\n"
     "sweep show latest --json\tthe newest one for a script"},
    {"stages", "Measure",
     "stages\twhat this build and device support, and why not the others\n"
     "stages --json\tid, title, why, kind, available, reason"},
    {"compare", "Judge",
     "compare 4 5 6\tfactors against run 4, intervals, verdicts, loss parity\n"
     "compare 4 5 --gate --json\tthe same, with an exit status for CI",
     "with --gate: 10 slower, 11 inconclusive, 12 impossible, 13 loss not at parity"},
    {"confirm", "Judge",
     "confirm 5\trepeats run 5 and its ladder's baseline in turns until the verdict is clear\n"
     "confirm 5 --against 4 --repeats 10 --json\tagainst run 4, at most ten times",
     "10 slower or worse, 11 inconclusive, 12 impossible"},
    {"check", "Judge",
     "check\tthe flags of every run, with the arithmetic\n"
     "check 12 --json\tthose of run 12",
     "12 if a run that you name is impossible; without a name it is 0"},
    {"try", "Judge",
     "try begin --metric val_bpb -- python train.py\tthe unchanged checkout, six times: its noise\n"
     "try -m 'warm-up of 200 steps' --json\tis this change of the checkout a gain",
     "0 kept, 10 worse, 11 inconclusive, 12 impossible or a sealed path changed, 13 the guard, 14 the command failed"},
    {"try begin", "",
     "try begin -- python train.py\tby tokens/s; the loss is the guard\n"
     "try begin --metric val_bpb --seal evaluate.py -- python train.py\tby a figure that it prints"},
    {"try status", "", "try status\twhere the series stands\ntry status --json\tfor a script"},
    {"try log", "", "try log\tall tries with their verdicts\ntry log --json\tfor a script"},
    {"try show", "", "try show 3\tone try with its figures\ntry show 3 --json\tfor a script"},
    {"try diff", "", "try diff 3\twhat try 3 changed\ntry diff 3 --json\tfor a script"},
    {"try revert", "", "try revert\tsets the checkout to what was kept last\ntry revert 3\tto the state of try 3"},
    {"try replay", "",
     "try replay results.tsv\twhich keeps of a log are supported\ntry replay log.jsonl --json\tfor a script"},
    {"try parts", "",
     "try parts\twhich hunks of the change that was kept last did it\n"
     "try parts 3 --flag=--bf16 --flag=--fused --json\twords of the command line in its state"},
    {"try end", "", "try end\tthe first state against the last one\ntry end --runs 0\twithout measuring"},
    {"mcp", "Judge",
     "mcp\tthe loop of try for a client of the Model Context Protocol, over stdin and stdout\n"
     "--db night.db mcp\tthe same in a project of its own"},
    {"mfu", "Judge",
     "mfu --params 124439808 --layers 12 --d-model 768 --seq 1024 --throughput 150000 --gpu a100\tby every convention\n"
     "mfu --published\tMosaicML's tables, recomputed"},
    {"import", "Take in",
     "import logs/ tb/ mlflow.db\tformats are recognised by content\n"
     "import - < train.log\tfrom standard input\n"
     "import train.log --tokens-per-step 524288 --gpu a100 --json\twith facts that the log lacks"},
    {"watch", "Take in",
     "watch --name w1 -- python train.py\truns the program and records the steps that it prints\n"
     "watch --follow train.log\trecords a growing file until interrupted",
     "the program's own exit status, whatever it is"},
    {"follow", "Take in",
     "follow stepladder/\tstores journals of stepladder.py while they grow\n"
     "follow tb/ --once --json\ttakes in what is there, and ends"},
    {"runs", "Runs",
     "runs --filter 'status=finished tokens_per_s>20000'\tthe runs for which both hold\n"
     "runs --columns id,name,tokens_per_s,trust --json\tfour fields of every run"},
    {"show", "Runs",
     "show latest\tthe newest run\n"
     "show 12 --steps --ndjson --limit 100\tthe last hundred steps, one a line"},
    {"get", "Runs",
     "get 12 tokens_per_s\tone number, for a shell variable\n"
     "get latest loss_last\tthe last loss of the newest run"},
    {"edit", "Runs",
     "edit 12 --name 'bf16, batch 24' --tag keep\tits name and a tag\n"
     "edit 12-15 --archive\thides four runs from the list"},
    {"pause", "Runs",
     "pause 12\tbefore its next step, from any terminal\n"
     "pause latest --json\tthe newest run"},
    {"unpause", "Runs",
     "unpause 12\tlets a paused run continue\n"
     "unpause latest --json\tthe newest run"},
    {"stop", "Runs",
     "stop 12\tafter its current step\n"
     "stop latest --json\tthe newest run"},
    {"delete", "Runs",
     "delete 12 15-17\tmoves four runs into the bin; they are kept for 30 days\n"
     "delete latest --json\tthe newest run"},
    {"restore", "Runs",
     "restore 12\tbrings run 12 back from the bin\n"
     "restore 15-17\tbrings three runs back"},
    {"bin", "Runs",
     "bin\tdeleted runs, recoverable for 30 days\n"
     "bin --empty --yes\tdeletes them and their checkpoints permanently"},
    {"profile", "Why",
     "profile time --model small --steps 5\ttimes the forward and backward pass, cold and warm\n"
     "profile run 12\ttraces a few steps of run 12's recipe"},
    {"profile time", "",
     "profile time --model small --steps 5\teach pass, with and without warm-up\n"
     "profile time --model small --precision bf16 --json\tfor a script"},
    {"profile run", "",
     "profile run 12 --traced 5\tfive steps of run 12's recipe\n"
     "profile run --model nano --stage compile\tof a recipe given here"},
    {"profile import", "",
     "profile import trace.json.gz\ta trace of PyTorch's profiler\n"
     "profile import report.sqlite --run 12\tone of Nsight Systems, taken of run 12"},
    {"profile passes", "",
     "profile passes\tkept results of `profile time`\n"
     "profile passes 1 2\ttwo of them, row by row"},
    {"profile list", "", "profile list\tthe kept traces\nprofile list --json\tfor a script"},
    {"profile show", "",
     "profile show 3 --anatomy\tthe step by parts of the model\n"
     "profile show 3 --roofline --json\thow near each kind of work comes to the device's peak"},
    {"profile diff", "",
     "profile diff 3 4\twhy one step is faster than another\n"
     "profile diff run:12 3 --json\ta run's step profile and a trace\n"
     "profile diff 3 4 5\tthree traces beside each other"},
    {"profile attach", "",
     "profile attach 3 12\ttrace 3 was taken of run 12\n"
     "profile attach 3 none\tof no run of this project"},
    {"profile export", "",
     "profile export 3 --out trace.json\tfor Perfetto or TensorBoard\n"
     "profile export 3 --format perfetto --out trace.pftrace --step 7\tone step"},
    {"profile remove", "", "profile remove 3\tforgets trace 3\nprofile remove old --json\tby its name"},
    {"predict", "Why",
     "predict 12 --stage bf16\twhat a stage would buy of run 12's step, from its trace\n"
     "predict profile:3 --scale attention=0.4,optimizer=0 --json\ta faster kernel, and no update at all\n"
     "predict 12\twhat is left, and in which order"},
    {"operators", "Why",
     "operators 4\twhere the time of a step is spent\n"
     "operators 4 5 --json\tand the change between two runs"},
    {"record", "Records",
     "record judge logs/ --against baseline/ --rule modded-nanogpt-1\tis it a record, and why not\n"
     "record gate --command 'python train.py' --against base.json --repeats 3\ta gate for CI",
     "11 inconclusive, 12 flagged, 13 misses the target"},
    {"record judge", "",
     "record judge logs/ --against baseline/\tis this pool of runs a record\n"
     "record judge rung:3/bf16 --rule modded-nanogpt-1 --json\tone rung of a ladder",
     "11 inconclusive, 12 flagged, 13 misses the target"},
    {"record run", "",
     "record run work/ --repeats 10 --against 'python old.py' --candidate 'python new.py'\tboth in turns\n"
     "record run work/\tcontinues what was cut off",
     "10 slower, 11 inconclusive, 12 flagged, 13 misses the target"},
    {"record gate", "",
     "record gate --command 'python train.py' --out base.json --repeats 3\tonce, on main\n"
     "record gate --command 'python train.py' --against base.json --repeats 3 --json\tin CI",
     "10 slower or worse, 11 inconclusive, 13 a worse loss, 14 the baseline is another machine's"},
    {"record trade", "",
     "record trade short/ long/\tloss per step from pools at two step counts\n"
     "record trade short/ long/ --candidate new/ --at 3.28\tthe time at equal loss",
     "with --candidate: 10 slower, 11 inconclusive"},
    {"record source", "",
     "record source log.txt --out train.py\tthe script that a log embeds\n"
     "record source log.txt | less\ton standard output"},
    {"record diff", "",
     "record diff before.txt after.txt\twhat changed between two scripts\n"
     "record diff before.txt after.txt --ignore-comments --json\twithout comments"},
    {"record export", "",
     "record export logs/ --out claim/ --rule modded-nanogpt-1\ta folder to hand in\n"
     "record export logs/ --out claim/ --explain no-sync='timed by events'\twith the reason for a flag",
     "12 a flag isn't explained"},
    {"export", "Hand out",
     "export --ladder latest --out report.html\tone file that can be mailed\n"
     "export 4 5 --format csv -o -\ttwo runs' steps on standard output"},
    {"screenshot", "Hand out",
     "screenshot --view ladder --out ladder.png --theme light\ta picture of the window; needs no display\n"
     "screenshot --saved-view 'night runs' -o night.png\ta view that you saved"},
    {"machines", "Set up",
     "machines\thosts and clusters: reachable, GPUs, load, disk, Slurm\n"
     "machines add box\ta host of ~/.ssh/config"},
    {"machines add", "",
     "machines add box --folder /scratch/me\ta host, and the folder to use there\n"
     "machines add cluster --slurm --partition gpu\ta cluster"},
    {"machines check", "", "machines check box\ttries it step by step\nmachines check box --json\tfor a script"},
    {"machines setup", "",
     "machines setup box\tinstalls Stepladder there; asks first\n"
     "machines setup box --yes --json\twithout asking"},
    {"machines adopt", "",
     "machines adopt box\tmakes a machine of this project's file yours; asks first\n"
     "machines adopt box --yes\twithout asking"},
    {"machines remove", "", "machines remove box\tforgets it\nmachines remove box --force\talso if steps are missing"},
    {"machines follow", "",
     "machines follow\tuntil all that was started on machines is over\n"
     "machines follow --json\tand the runs at the end"},
    {"setup-training", "Set up",
     "setup-training\tinstalls torch in a folder of its own; asks first\n"
     "setup-training --remove\tremoves that folder"},
    {"doctor", "Set up",
     "doctor\thardware, libraries, database\n"
     "doctor --noise\thow noisy this machine is\n"
     "doctor --gpu\tten minutes of checks on a GPU, for a bug report\n"
     "doctor --backup copy.db\ta complete copy, also while runs are recorded"},
    {"help", "Set up", "help ladder\tthe options of a command\nhelp --json\tall commands and options, for a program"},
    {"completion", "Set up",
     "completion bash > ~/.local/share/bash-completion/completions/stepladder\tfor bash\n"
     "completion fish > ~/.config/fish/completions/stepladder.fish\tfor fish"},
    {"skill", "Set up",
     "skill\thow a program should use this one\n"
     "skill > SKILL.md\tin a project of yours"},
};

// Names of values, and the options and arguments that they are of. What isn't here is named by its type.
constexpr std::pair<std::string_view, std::string_view> metavars[] = {
    {"RUN", "run runs base resume attach against"},
    {"LADDER", "ladder continue of"},
    {"RUN@STEP", "fork"},
    {"FILE",
     "out data weights tokenizer db project paths file follow backup rescue share log write wheel seal program"},
    {"FOLDER", "journal folder there repository against-in candidate-in"},
    {"POOL", "pool one other candidate"},
    {"NAME", "name metric saved-view step-key partition account"},
    {"EXPRESSION", "filter"},
    {"FIELDS", "columns field"},
    {"FIELD", "sort"},
    {"STAGES", "stage without"},
    {"RUNGS", "stages only"},
    {"NAME=LIST", "over"},
    {"KIND=FACTOR", "scale"},
    {"PART=FACTOR", "part"},
    {"PRESET", "preset"},
    {"LIST", "seeds"},
    {"MACHINE", "on alias"},
    {"HARDWARE", "gpu hardware"},
    {"PRECISION", "precision"},
    {"WxH", "size"},
    {"RULE", "rule"},
    {"COMMAND", "command holdout"},
    {"TRACE", "trace before after"},
    {"TIME", "time since slurm-time budget-time"},
    {"ID=TEXT", "explain"},
    {"VIEW", "view"},
    {"NAMES", "without-kernel"},
    {"TEXT", "sample-prompt"},
    {"MODEL", "model"},
    {"WORD", "flag"},
    {"TAGS", "tag untag"},
    {"FORMAT", "format"},
    {"NAME=TOLERANCE", "also"},
    {"LOG", "logs"},
    {"N", "passes"},
};

}  // namespace

std::span<const CommandHelp> all_command_help() {
  return all_help;
}

const CommandHelp* help_of(const CLI::App& command) {
  const std::string path = command_path(command);
  const auto found = std::ranges::find(all_help, path, &CommandHelp::command);
  return found == std::end(all_help) ? nullptr : found;
}

std::string metavar(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  const std::string base = type.substr(0, colon), checked = colon == std::string::npos ? "" : type.substr(colon + 1);
  for (const std::string& words : {checked, base})
    if (words.find('|') != std::string::npos) return words;
  constexpr std::string_view types[] = {"TEXT", "INT", "UINT", "FLOAT", "BOOLEAN", "N", "X", ""};
  if (std::ranges::find(types, base) == std::end(types)) return base;  // given by type_name()
  std::string name = option.get_positional() ? option.get_name(true) : option.get_name();
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  if (checked == "PERCENT") return checked;
  const bool counts_runs = base == "INT" && name == "runs";
  for (const auto& [shown, names] : metavars)
    if (has_word(names, name) && !counts_runs) return std::string(shown);
  if (base == "FLOAT" || base == "X") return "X";
  return base == "INT" || base == "UINT" || base == "N" || checked == "POSITIVE" ? "N" : "TEXT";
}

}  // namespace stepladder
