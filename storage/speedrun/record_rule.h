// The demands of a community on a record: one JSON file each, in assets/rules and in the user's own folder
// (docs/record.md).
#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

#include "storage/records.h"

namespace stepladder {

// A rule file can't be used. what() is one sentence that names the file and the key or line.
struct RuleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class RecordTest {
  none,   // the mean alone decides
  t,      // one-sided t test of the mean against the target
  z,      // the same with a known standard deviation
  welch,  // Welch's one-sided t test against the baseline
};

struct RecordRule {
  std::string name;                 // the file's, without its ending
  bool overrides_built_in = false;  // it is the user's own, and a shipped one has the same name
  std::string title;
  std::string metric;  // val_loss, val_bpb or core_metric
  bool lower_wins = true;
  double target = missing;  // missing: the baseline's mean
  RecordTest test = RecordTest::none;
  double alpha = missing;
  double sigma = missing;  // of one run, for z
  // z: (target - mean) * sqrt(n) must be at least this, whatever sigma is. Welch: the baseline's mean must be beaten by
  // more than this.
  double margin = missing;
  bool faster_than_baseline = false;
  bool same_hardware = false;        // the baseline must come from the same machine and day
  bool systems_only_waiver = false;  // a change that leaves the maths alone needs no test of the loss
  bool source_in_log = false;        // each log must hold the script
  std::int64_t val_tokens = 0;       // that the metric is of; 0: not fixed
  double time_limit_s = missing;     // of training; also: a run may end before its last scheduled step
  std::string final_line;            // not empty: only a line that begins so holds the final value
  std::string source;                // address of the rules
  std::string date;                  // of the version that was read
};

// There is no rule of this name. what() lists the names.
struct UnknownRule : RuleError {
  using RuleError::RuleError;
};

// Throws RuleError.
RecordRule read_record_rule(const std::filesystem::path& file);

// The user's own rules: $XDG_CONFIG_HOME/stepladder/rules, else under ~/.config.
std::filesystem::path user_rules_folder();

// The user's own rule of this name, else the shipped one. Throws UnknownRule if there is none.
RecordRule find_record_rule(const std::string& name, const std::filesystem::path& assets_folder);

// The rule whose target for the metric is the nearest to a pool's mean, within two percent of it; null if none is, or
// if two are as near: tracks share a target.
const RecordRule* nearest_rule(std::span<const RecordRule> rules, const std::string& metric, double mean);

}  // namespace stepladder
