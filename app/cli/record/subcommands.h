// The commands beneath `stepladder record`. Each function declares one, and sets `chosen` to what it does once it was
// parsed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/subcommand.h"
#include "app/record/log_figure.h"
#include "storage/speedrun/record_claim.h"

namespace stepladder {

void add_record_source(CLI::App& record, CommonOptions& common, ChosenCommand& chosen);  // record_scripts.cpp
void add_record_diff(CLI::App& record, CommonOptions& common, ChosenCommand& chosen);    // record_scripts.cpp
void add_record_trade(CLI::App& record, CommonOptions& common, ChosenCommand& chosen);   // record_trade.cpp

void add_record_run(CLI::App& record, CommonOptions& common, ChosenCommand& chosen);     // record_run.cpp
void add_record_gate(CLI::App& record, CommonOptions& common, ChosenCommand& chosen);    // record_gate.cpp
void add_record_export(CLI::App& record, CommonOptions& common, ChosenCommand& chosen);  // record_export.cpp

// The figure that two sides are compared by: --by, --metric, --lower and --higher.
struct FigureOptions {
  std::string by, metric;
  bool lower = false, higher = false;

  bool given() const { return !by.empty() || !metric.empty(); }
};
void add_figure_options(CLI::App& command, FigureOptions& options);
FigureQuestion asked_figure(const FigureOptions& options);  // throws UsageError
bool guesses_direction(const FigureOptions& options);       // neither they nor the metric's name say which is better
// Which values of a metric are better: as an option says, else as the metric states (`stated`), else as its name says.
// Throws UsageError if nobody does.
Direction asked_direction(const std::string& metric, bool lower, bool higher, Direction stated = Direction::unknown);

// The rule that --rule names; none if it is empty. Throws UsageError, RuleError.
std::optional<RecordRule> asked_rule(const std::string& name);
// `metric`: what the logs' evaluations are called; empty: the rule's, else val_loss. Throws UsageError if the rule's
// differs.
LogQuestion question_of(const std::optional<RecordRule>& rule, const std::string& metric = {});
RecordPool asked_pool(const std::vector<std::string>& names, const LogQuestion& question, const CommonOptions& common);

// The options that `record` and `record export` share, and the answer.
struct ClaimRequest {
  std::vector<std::string> pool;
  std::vector<std::string> baseline;
  std::string rule;
  std::string metric;
  bool lower = false;  // is better: accepted, since a record's metric is a loss unless a rule says otherwise
  ClaimOptions options;
};
struct AskedClaim {
  std::optional<RecordRule> rule;
  RecordPool pool;
  std::optional<RecordPool> baseline;
  RecordClaim claim;

  const RecordPool* baseline_pool() const { return baseline ? &*baseline : nullptr; }
};
CLI::Option* add_claim_options(CLI::App& command, ClaimRequest& request);  // returns the pool's
AskedClaim asked_claim(const ClaimRequest& request, const CommonOptions& common);

int exit_status_of(RecordVerdict verdict);

// record_report.cpp: the claim as JSON and as text.
Json flags_json(const std::vector<RecordFlag>& flags);
Json record_json(const RecordClaim& claim, const std::optional<RecordRule>& rule);
std::string record_text(const RecordClaim& claim, const std::optional<RecordRule>& rule, double power);

}  // namespace stepladder
