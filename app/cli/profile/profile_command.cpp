// `stepladder profile`: times single calls of a model's forward, backward and whole step, prints them with what they
// teach, and keeps the result. A CPU gets smaller batches and a time limit, since a row there may take minutes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/profile/trace_commands.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/profile/call_rows.h"
#include "app/text/format.h"
#include "engine/engine.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {
namespace {

struct Shape {
  const char* name;
  int layers, heads, d_model;
};
// GPT-2's two smallest, without their vocabulary; the other models are presets.
constexpr std::array shapes{Shape{"small", 12, 12, 768}, Shape{"medium", 24, 16, 1024}};
constexpr std::array models{"small", "medium", "seed-small", "seed-medium"};

struct ProfileOptions {
  std::string model = "small";
  std::optional<int> batch, seq;  // 16 and 128; on a CPU 2 and 64, since more would take minutes
  int vocab = 10'000;
  std::optional<int> warmup;  // 0 and 1, one after the other
  bool csv = false, unsynced = false, keeps = true;
  std::string name;
  double spread_percent = 0;
  std::optional<double> seconds;  // no limit; on a CPU cpu_seconds
  CallTimesRequest request;
};

// A CPU without bf16 instructions takes many times as long for a row in bf16 as for one in float32.
constexpr double cpu_seconds = 120;

void fill_recipe(const ProfileOptions& options, const DeviceReport& report, Recipe& recipe) {
  const auto shape = std::ranges::find(shapes, options.model, &Shape::name);
  if (shape == shapes.end()) {
    apply_preset(recipe, options.model);
  } else {
    recipe.layers = shape->layers;
    recipe.heads = shape->heads;
    recipe.d_model = shape->d_model;
  }
  const bool cpu = report.resolve(recipe.device) == "cpu";
  recipe.vocab = options.vocab;
  recipe.batch = options.batch.value_or(cpu ? 2 : 16);
  recipe.seq = options.seq.value_or(cpu ? 64 : 128);
  validate(recipe);
}

void check_options(const ProfileOptions& options, const CommonOptions& common) {
  if (options.csv && common.json) throw UsageError("--csv and --json exclude each other");
}

StoredPasses stored(const ProfileOptions& options, const DeviceReport& report, const std::vector<CallRow>& rows) {
  const Recipe& recipe = options.request.recipe;
  const std::string device = report.resolve(recipe.device);
  StoredPasses passes{.name = options.name.empty() ? options.model + " on " + report.hardware(device) : options.name,
                      .measured_at = unix_now(),
                      .host = this_host(),
                      .hardware = report.hardware(device),
                      .device = device,
                      .model = options.model,
                      .batch = recipe.batch,
                      .seq = recipe.seq,
                      .vocab = recipe.vocab,
                      .threads = recipe.threads,
                      .is_synced = options.request.is_synced};
  for (const CallRow& row : rows)
    passes.rows.push_back({.computation = row.times.computation,
                           .precision = row.times.precision,
                           .warmup = row.times.warmup,
                           .ms = row.times.ms});
  return passes;
}

// Sentences about everything that differs from what was asked for.
std::vector<std::string> notes_of(const ProfileOptions& options, const std::vector<CallRow>& rows, bool on_cpu) {
  std::vector<std::string> notes;
  const CallTimesRequest& request = options.request;
  const auto is_short = [&](const CallRow& row) {
    return row.times.ms.size() < static_cast<std::size_t>(request.calls);
  };
  if (const auto short_rows = std::ranges::count_if(rows, is_short); short_rows > 0)
    notes.push_back(fmt::format(
        "{} of {} rows have fewer than {} calls, since they used up their share of {}; --time 0 sets no limit.",
        short_rows, rows.size(), request.calls, duration_text(request.seconds)));
  const auto is_wide = [&](const CallRow& row) {
    return request.spread > 0 &&
           row.std_ms / std::sqrt(static_cast<double>(row.times.ms.size())) > request.spread * row.mean_ms;
  };
  if (const auto wide = std::ranges::count_if(rows, is_wide); wide > 0)
    notes.push_back(fmt::format(
        "The means of {} of {} rows aren't known to the {} % that --spread asks for; --time gives them more time.",
        wide, rows.size(), compact(options.spread_percent)));
  if (!request.is_synced) notes.push_back(no_sync_sentence(on_cpu));
  return notes;
}

int profile(ProfileOptions options, const CommonOptions& common) {
  check_options(options, common);
  Engine engine([](const RunEvent&) {});
  CallTimesRequest& request = options.request;
  const DeviceReport report = engine.probe().get();
  fill_recipe(options, report, request.recipe);
  if (options.warmup) request.warmups = {*options.warmup};
  const bool on_cpu = report.resolve(request.recipe.device) == "cpu";
  request.seconds = options.seconds.value_or(on_cpu ? cpu_seconds : 0);
  request.spread = options.spread_percent / 100;
  request.is_synced = !options.unsynced;
  const Recipe& recipe = request.recipe;
  const std::string device = report.resolve(recipe.device);
  std::cerr << "stepladder: " << (recipe.model == options.model ? "" : "GPT-2 ") << options.model << ", batch "
            << recipe.batch << " x " << recipe.seq << " tokens, vocabulary " << recipe.vocab << ", on "
            << report.hardware(device) << "\n";
  std::vector<CallTimes> all;
  try {
    all = engine.time_calls(request, interrupted).get();
  } catch (const std::exception& error) {
    if (interrupted()) return report_error(error, exit_interrupted);
    throw;
  }
  const std::vector<CallRow> rows = call_rows(std::move(all));
  if (common.json) {
    print(rows_json(rows, request.is_synced));
  } else if (options.csv) {
    std::cout << rows_csv(rows);
  } else {
    std::cout << table(rows_table(rows));
    std::cout << "\n";
  }
  const bool are_messages = common.json || options.csv;
  std::vector<std::string> sentences = notes_of(options, rows, on_cpu);
  for (const std::string& lesson : lessons_of(rows)) sentences.push_back(lesson);
  for (const std::string& sentence : sentences)
    are_messages ? std::cerr << "stepladder: " << sentence << "\n" : std::cout << notes_text(sentence);
  if (!options.keeps) return exit_done;
  RunStore store = RunStore::open(common.database);
  const std::int64_t id = store.traces().passes().insert(stored(options, report, rows));
  std::cerr << "stepladder: saved as result " << id << " of `stepladder profile passes`\n";
  return exit_done;
}

void add_time_options(CLI::App& command, const std::shared_ptr<ProfileOptions>& options) {
  command
      .add_option("--model", options->model,
                  "small (GPT-2's 12 layers, 768 wide), medium (24, 1024), or the same as seed-small and seed-medium: "
                  "RMSNorm, exact GELU, no biases")
      ->check(one_of(std::vector<std::string>(models.begin(), models.end())));
  command.add_option("--batch", options->batch, "Sequences per batch (default 16; 2 on a CPU)")
      ->transform(positive_count());
  command.add_option("--seq", options->seq, "Tokens per sequence (default 128; 64 on a CPU)")
      ->transform(positive_count());
  command.add_option("--vocab", options->vocab, "Vocabulary size (default 10000)")->transform(positive_count());
  command.add_option("--warmup", options->warmup, "Warm-up calls (default: measured with 0 and with 1)")
      ->check(between(0, 1e6));
  command
      .add_option("--precision", options->request.precision,
                  "fp32 or bf16 (autocast); default: both, where the device has bf16")
      ->check(one_of({"fp32", "bf16"}));
  command.add_option("--steps", options->request.calls, "Timed calls (default 5)")->transform(positive_count());
  command
      .add_option("--tolerance,--spread", options->spread_percent,
                  "Go on until every row's mean is known to this many percent (its standard error): 1%")
      ->transform(percent(0.01, 0.01, 100));
  command
      .add_option("--time", options->seconds,
                  "Seconds that the rows share: one that has used its part gets no more calls (default: 120 on a CPU, "
                  "else 0, which is no "
                  "limit)")
      ->check(between(0, 1e6));
  command.add_flag("--no-sync", options->unsynced,
                   "Read the clock without waiting for the device, to see how wrong that is; flagged");
  command.add_option("--name", options->name, "Name in the project")->check(short_name());
  command.add_flag("!--no-keep", options->keeps, "Don't keep the result in the project");
  command
      .add_option_function<std::string>(
          "--format", [options](const std::string& it) { options->csv = it == "csv"; }, "Print this instead of a table")
      ->check(one_of({"text", "csv"}));
  command.add_flag("--csv", options->csv, "Print CSV")->group(hidden_group);
  command.add_option("--device", options->request.recipe.device, "auto, cpu, cuda or mps")
      ->check(one_of({"auto", "cpu", "cuda", "mps"}));
  command.add_option("--threads", options->request.recipe.threads, "CPU threads")->transform(positive_count());
}

}  // namespace

Subcommand profile_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command =
      add_with_json(app, common, "profile",
                    "Where the time goes: trace runs, read traces; alone, times GPT-2's passes for some minutes");
  add_time_options(*command, options);
  for (CLI::Option* option : command->get_options())
    if (option != command->get_help_ptr())
      option->group(hidden_group);  // listed under `time`, which is the command's full name
  const auto chosen = std::make_shared<ChosenCommand>();
  const auto timed = std::make_shared<ProfileOptions>();
  CLI::App* time = add_with_json(*command, common, "time",
                                 "Time the forward and backward pass call by call, with and without warm-up");
  add_time_options(*time, timed);
  choose_if_parsed(*time, *chosen, timed, common, profile);
  add_trace_commands(*command, common, *chosen);
  add_pass_command(*command, common, *chosen);
  return {command, [options, chosen, &common] { return *chosen ? (*chosen)() : profile(*options, common); }};
}

}  // namespace stepladder
