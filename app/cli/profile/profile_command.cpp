#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/profile/call_report.h"
#include "app/cli/profile/trace_commands.h"
#include "app/exit_status.h"
#include "engine/engine.h"

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
  bool csv = false;
  CallTimesRequest request;
};

void fill_recipe(const ProfileOptions& options, const DeviceReport& report, Recipe& recipe) {
  const auto shape =
      std::find_if(shapes.begin(), shapes.end(), [&](const Shape& each) { return each.name == options.model; });
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

int profile(ProfileOptions options, const CommonOptions& common) {
  check_options(options, common);
  Engine engine([](const RunEvent&) {});
  CallTimesRequest& request = options.request;
  const DeviceReport report = engine.probe().get();
  fill_recipe(options, report, request.recipe);
  if (options.warmup) request.warmups = {*options.warmup};
  const Recipe& recipe = request.recipe;
  const std::string device = report.resolve(recipe.device);
  std::cerr << "stepladder: " << (recipe.model == options.model ? "" : "GPT-2 ") << options.model << ", batch "
            << recipe.batch << " x " << recipe.seq << " tokens, vocabulary " << recipe.vocab << ", on "
            << report.hardware(device) << "\n";
  std::vector<CallTimes> all;
  try {
    all = engine.time_calls(request, interrupted).get();
  } catch (const std::exception& error) {
    if (interrupted()) return complain(error, exit_interrupted);
    throw;
  }
  const std::vector<CallRow> rows = call_rows(std::move(all));
  if (common.json) {
    print(rows_json(rows));
  } else if (options.csv) {
    std::cout << rows_csv(rows);
  } else {
    std::cout << rows_table(rows) << "\n";
  }
  const bool are_messages = common.json || options.csv;
  for (const std::string& lesson : lessons_of(rows))
    (are_messages ? std::cerr << "stepladder: " : std::cout) << lesson << "\n";
  return exit_done;
}

}  // namespace

Subcommand profile_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command = add_with_json(app, common, "profile",
                                    "Time the forward and backward pass call by call, with and without warm-up; import "
                                    "and compare traces of profilers");
  command
      ->add_option("--model", options->model,
                   "small (GPT-2's 12 layers, 768 wide), medium (24, 1024), or the same as seed-small and seed-medium: "
                   "RMSNorm, exact GELU, no biases")
      ->check(CLI::IsMember(std::vector<std::string>(models.begin(), models.end())));
  command->add_option("--batch", options->batch, "Sequences per batch (default 16; 2 on a CPU)")
      ->transform(positive_count());
  command->add_option("--seq", options->seq, "Tokens per sequence (default 128; 64 on a CPU)")
      ->transform(positive_count());
  command->add_option("--vocab", options->vocab, "Vocabulary size (default 10000)")->transform(positive_count());
  command->add_option("--warmup", options->warmup, "Warm-up calls (default: measured with 0 and with 1)")
      ->check(between(0, 1e6));
  command->add_option("--steps", options->request.calls, "Timed calls (default 5)")->transform(positive_count());
  command->add_flag("--csv", options->csv, "Print CSV");
  command->add_option("--device", options->request.recipe.device, "auto, cpu, cuda or mps")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "mps"}));
  command->add_option("--threads", options->request.recipe.threads, "CPU threads")->transform(positive_count());
  const auto chosen = std::make_shared<std::function<int()>>();
  add_trace_commands(*command, common, *chosen);
  return {command, [options, chosen, &common] { return *chosen ? (*chosen)() : profile(*options, common); }};
}

}  // namespace stepladder
