// The commands beneath `stepladder record`. Each function declares one, and sets `chosen` to what it does once it was
// parsed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/subcommand.h"
#include "storage/speedrun/record_claim.h"

namespace stepladder {

using Chosen = std::function<int()>;

void add_record_source(CLI::App& record, CommonOptions& common, Chosen& chosen);  // record_scripts.cpp
void add_record_diff(CLI::App& record, CommonOptions& common, Chosen& chosen);    // record_scripts.cpp
void add_record_trade(CLI::App& record, CommonOptions& common, Chosen& chosen);   // record_trade.cpp

void add_record_run(CLI::App& record, CommonOptions& common, Chosen& chosen);     // record_run.cpp
void add_record_bisect(CLI::App& record, CommonOptions& common, Chosen& chosen);  // record_bisect.cpp
void add_record_gate(CLI::App& record, CommonOptions& common, Chosen& chosen);    // record_gate.cpp
void add_record_export(CLI::App& record, CommonOptions& common, Chosen& chosen);  // record_export.cpp

// The rule that --rule names; none if it is empty. Throws UsageError, RuleError.
std::optional<RecordRule> asked_rule(const std::string& name);
LogQuestion question_of(const std::optional<RecordRule>& rule);
RecordPool asked_pool(const std::vector<std::string>& names, const LogQuestion& question, const CommonOptions& common);

// What `record` and `record export` are asked alike, and the answer.
struct ClaimRequest {
  std::vector<std::string> pool;
  std::vector<std::string> baseline;
  std::string rule;
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

}  // namespace stepladder
