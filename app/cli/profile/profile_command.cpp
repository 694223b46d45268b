#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/profile/trace_commands.h"
#include "app/exit_status.h"
#include "app/format.h"
#include "engine/engine.h"
#include "storage/analysis/statistics.h"

namespace stepladder {
namespace {

struct Shape {
  const char* name;
  int layers, heads, d_model;
};
// GPT-2's two smallest, without their vocabulary.
constexpr std::array shapes{Shape{"small", 12, 12, 768}, Shape{"medium", 24, 16, 1024}};

struct ProfileOptions {
  std::string model = "small";
  std::optional<int> batch, seq;  // 16 and 128; on a CPU 2 and 64, since more would take minutes
  int vocab = 10'000;
  std::optional<int> warmup;  // 0 and 1, one after the other
  CallTimesRequest request;
};

struct ProfileRow {
  const CallTimes& times;
  double mean_ms, median_ms, std_ms, min_ms, max_ms, total_ms;
};

// std_ms is the standard deviation of the calls themselves (divided by n).
ProfileRow profile_row(const CallTimes& times) {
  const std::vector<double>& ms = times.ms;
  const auto n = static_cast<double>(ms.size());
  const double total = std::accumulate(ms.begin(), ms.end(), 0.0);
  double squares = 0;
  for (const double each : ms) squares += (each - total / n) * (each - total / n);
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  return {times, total / n, quantile(sorted, 0.5), std::sqrt(squares / n), sorted.front(), sorted.back(), total};
}

Json row_json(const ProfileRow& row) {
  return {{"computation", row.times.computation},
          {"warmup", row.times.warmup},
          {"precision", row.times.precision},
          {"steps", row.times.ms.size()},
          {"mean_ms", row.mean_ms},
          {"median_ms", row.median_ms},
          {"std_ms", row.std_ms},
          {"min_ms", row.min_ms},
          {"max_ms", row.max_ms},
          {"total_ms", row.total_ms}};
}

void fill_recipe(const ProfileOptions& options, const DeviceReport& report, Recipe& recipe) {
  const Shape& shape =
      *std::find_if(shapes.begin(), shapes.end(), [&](const Shape& each) { return each.name == options.model; });
  const bool cpu = report.resolve(recipe.device) == "cpu";
  recipe.layers = shape.layers;
  recipe.heads = shape.heads;
  recipe.d_model = shape.d_model;
  recipe.vocab = options.vocab;
  recipe.batch = options.batch.value_or(cpu ? 2 : 16);
  recipe.seq = options.seq.value_or(cpu ? 64 : 128);
  validate(recipe);
}

int profile(ProfileOptions options, const CommonOptions& common) {
  Engine engine([](const RunEvent&) {});
  CallTimesRequest& request = options.request;
  const DeviceReport report = engine.probe().get();
  fill_recipe(options, report, request.recipe);
  if (options.warmup) request.warmups = {*options.warmup};
  const Recipe& recipe = request.recipe;
  std::cerr << "stepladder: GPT-2 " << options.model << ", batch " << recipe.batch << " x " << recipe.seq
            << " tokens, vocabulary " << recipe.vocab << ", on " << report.hardware(report.resolve(recipe.device))
            << "\n";
  std::vector<CallTimes> all;
  try {
    all = engine.time_calls(request, interrupted).get();
  } catch (const std::exception& error) {
    if (interrupted()) return complain(error, exit_interrupted);
    throw;
  }
  Json rows = Json::array();
  std::vector<std::vector<std::string>> cells = {
      {"computation", "warm-up", "precision", "steps", "mean", "median", "std", "min", "max", "total"}};
  for (const CallTimes& times : all) {
    const ProfileRow row = profile_row(times);
    rows.push_back(row_json(row));
    std::vector<std::string> line{times.computation, std::to_string(times.warmup), times.precision,
                                  std::to_string(times.ms.size())};
    for (const double ms : {row.mean_ms, row.median_ms, row.std_ms, row.min_ms, row.max_ms, row.total_ms})
      line.push_back(milliseconds_text(ms));
    cells.push_back(std::move(line));
  }
  if (common.json) {
    print(rows);
  } else {
    std::cout << table(cells, {false, true, false, true, true, true, true, true, true, true});
  }
  return exit_done;
}

}  // namespace

Subcommand profile_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command = add_with_json(app, common, "profile",
                                    "Time the forward and backward pass call by call, with and without warm-up");
  std::vector<std::string> names;
  for (const Shape& shape : shapes) names.emplace_back(shape.name);
  command->add_option("--model", options->model, "small (12 layers, 768 wide) or medium (24, 1024)")
      ->check(CLI::IsMember(names));
  command->add_option("--batch", options->batch, "Sequences per batch (default 16; 2 on a CPU)")
      ->transform(positive_count());
  command->add_option("--seq", options->seq, "Tokens per sequence (default 128; 64 on a CPU)")
      ->transform(positive_count());
  command->add_option("--vocab", options->vocab, "Vocabulary size (default 10000)")->transform(positive_count());
  command->add_option("--warmup", options->warmup, "Warm-up calls (default: measured with 0 and with 1)")
      ->check(between(0, 1e6));
  command->add_option("--steps", options->request.calls, "Timed calls (default 5)")->transform(positive_count());
  command->add_option("--device", options->request.recipe.device, "auto, cpu, cuda or mps")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "mps"}));
  command->add_option("--threads", options->request.recipe.threads, "CPU threads")->transform(positive_count());
  const auto chosen = std::make_shared<std::function<int()>>();
  add_trace_commands(*command, common, *chosen);
  return {command, [options, chosen, &common] { return *chosen ? (*chosen)() : profile(*options, common); }};
}

}  // namespace stepladder
