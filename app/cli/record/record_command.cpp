// `stepladder record`: judges whether a pool of runs is a record. The commands beneath it are declared in their own
// files; the helpers here (rule, metric, pool, claim) are theirs too. Options given before a subcommand are refused,
// since they would have no effect.
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/record/subcommands.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/record/pool_source.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

int run_record(const ClaimRequest& request, const CommonOptions& common) {
  if (request.pool.empty()) throw UsageError("record needs a folder of logs, logs, or runs");
  const AskedClaim asked = asked_claim(request, common);
  print_as(
      common, [&] { return record_json(asked.claim, asked.rule); },
      [&] { return record_text(asked.claim, asked.rule, request.options.power); });
  return exit_status_of(asked.claim.verdict);
}

void add_record_judge(CLI::App& record, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<ClaimRequest>();
  CLI::App* command = add_with_json(record, common, "judge", "Tell whether a pool of runs is a record, and why not");
  add_claim_options(*command, *options)->required();
  choose_if_parsed(*command, chosen, options, common, run_record);
}

}  // namespace

int exit_status_of(RecordVerdict verdict) {
  return by_enum<RecordVerdict>(exit_done, exit_loss_not_at_parity, exit_cannot_tell, exit_implausible)[verdict];
}

void add_figure_options(CLI::App& command, FigureOptions& options) {
  CLI::Option* by = command.add_option("--by", options.by, "throughput, loss or wall (default throughput)")
                        ->check(one_of({"throughput", "loss", "wall"}));
  CLI::Option* metric =
      command
          .add_option("--metric", options.metric, "Any name that the log has in place of that: val_bpb, min(val/loss)")
          ->excludes(by);
  CLI::Option* lower =
      command.add_flag("--lower", options.lower, "Lower values of the metric are better")->needs(metric);
  command.add_flag("--higher", options.higher, "Higher values of the metric are better")
      ->needs(metric)
      ->excludes(lower);
}

FigureQuestion asked_figure(const FigureOptions& options) {
  if (options.metric.empty()) return {.by = options.by.empty() ? FigureBy::throughput : *figure_by(options.by)};
  FigureQuestion question{.by = FigureBy::metric, .metric = metric_named(options.metric)};
  const bool is_guess = guesses_direction(options);
  if (is_guess)
    std::cerr << "stepladder: a higher " << question.metric.metric
              << " counts as better by a guess, so no gain counts; give --lower or --higher\n";
  question.lower_is_better =
      !is_guess && asked_direction(question.metric.metric, options.lower, options.higher) == Direction::lower;
  return question;
}

bool guesses_direction(const FigureOptions& options) {
  return !options.metric.empty() && !options.lower && !options.higher &&
         direction_of_name(metric_named(options.metric).metric) == Direction::unknown;
}

Direction asked_direction(const std::string& metric, bool lower, bool higher, Direction stated) {
  if (lower || higher) return lower ? Direction::lower : Direction::higher;
  if (stated != Direction::unknown) return stated;
  const Direction named = direction_of_name(metric);
  if (named == Direction::unknown) throw UsageError(unknown_direction(metric));
  return named;
}

std::optional<RecordRule> asked_rule(const std::string& name) {
  if (name.empty()) return {};
  try {
    return find_record_rule(name, assets_folder());
  } catch (const UnknownRule& error) {
    throw NotFound(std::string("--rule: ") + error.what(), {.argument = "--rule", .value = name});
  }
}

LogQuestion question_of(const std::optional<RecordRule>& rule, const std::string& metric) {
  if (!rule) return metric.empty() ? LogQuestion{} : LogQuestion{.metric = metric, .final_line = {}};
  if (!metric.empty() && metric != rule->metric)
    throw UsageError("--metric: the rule judges " + rule->metric + ", not " + metric);
  return {rule->metric, rule->final_line, !is_missing(rule->time_limit_s)};
}

RecordPool asked_pool(const std::vector<std::string>& names, const LogQuestion& question, const CommonOptions& common) {
  return read_pool(names, question, common.database);
}

CLI::Option* add_claim_options(CLI::App& command, ClaimRequest& request) {
  CLI::Option* pool =
      command.add_option("pool", request.pool, "Folder of logs, logs, runs, rung:LADDER/STAGE or filter:EXPRESSION");
  command.add_option("--against,--baseline", request.baseline, "The same of the record so far")->type_name("POOL");
  command.add_option("--rule", request.rule, "Rule, such as modded-nanogpt-1");
  CLI::Option* metric = command.add_option("--metric", request.metric,
                                           "What the logs call the loss (by default the rule's, or val_loss)");
  command.add_flag("--lower", request.lower, "Lower values of the metric are better")->needs(metric);
  command.add_option("--planned-runs,--plan", request.options.plan, "Number of runs that was fixed beforehand")
      ->transform(positive_count());
  command.add_option("--power", request.options.power, "Probability of passing that the needed number is for")
      ->check(between(0.01, 0.999));
  command.add_flag("--systems-only", request.options.systems_only, "The change leaves the maths alone");
  return pool;
}

AskedClaim asked_claim(const ClaimRequest& request, const CommonOptions& common) {
  AskedClaim asked{.rule = asked_rule(request.rule)};
  const LogQuestion question = question_of(asked.rule, request.metric);
  if (request.lower && asked.rule && !asked.rule->lower_wins)
    throw UsageError("--lower: by the rule, higher values of " + asked.rule->metric + " win");
  asked.pool = asked_pool(request.pool, question, common);
  if (!request.baseline.empty()) asked.baseline = asked_pool(request.baseline, question, common);
  asked.claim = judge_record(asked.pool, asked.baseline_pool(), asked.rule, request.options);
  return asked;
}

Subcommand record_command(CLI::App& app, CommonOptions& common) {
  const auto options = std::make_shared<ClaimRequest>();
  const auto chosen = std::make_shared<ChosenCommand>();
  CLI::App* command =
      add_with_json(app, common, "record", "Speed-run records: judge, measure, gate and hand in pools of runs");
  add_claim_options(*command, *options);
  for (CLI::Option* option : command->get_options())
    if (option != command->get_help_ptr())
      option->group(hidden_group);  // listed under `judge`, which is the command's full name
  add_record_judge(*command, common, *chosen);
  add_record_source(*command, common, *chosen);
  add_record_diff(*command, common, *chosen);
  add_record_trade(*command, common, *chosen);
  add_record_run(*command, common, *chosen);
  add_record_gate(*command, common, *chosen);
  add_record_export(*command, common, *chosen);
  return {command, [options, chosen, &common] { return *chosen ? (*chosen)() : run_record(*options, common); }};
}

}  // namespace stepladder
