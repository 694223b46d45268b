// libFuzzer: any bytes are a speed run's log, and any two of them a pool and its baseline. What is computed from them
// must stay consistent.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "storage/speedrun/loss_trade.h"
#include "storage/speedrun/record_claim.h"
#include "storage/speedrun/script_diff.h"

namespace {

using namespace stepladder;

void require(bool holds) {
  if (!holds) std::abort();
}

SpeedrunLog read(std::string_view text, const LogQuestion& question) {
  SpeedrunLog log = read_speedrun_log(text, question);
  log.file = "log";
  require(log.problem.empty() == (log.final.step > 0 || !std::isnan(log.final.time_ms) || !log.evaluations.empty()) ||
          !log.problem.empty());
  require(log.gpus.size() == log.bus_ids.size());
  require(log.script.size() <= text.size());
  return log;
}

RecordRule rule_for(unsigned choice) {
  RecordRule rule;
  rule.metric = choice & 1 ? "val_bpb" : "val_loss";
  rule.target = 3.28;
  rule.test = static_cast<RecordTest>(choice / 2 % 4);
  rule.alpha = 0.01;
  rule.sigma = 0.0013;
  rule.margin = choice & 8 ? 0.004 : missing;
  rule.lower_wins = !(choice & 16);
  rule.faster_than_baseline = choice & 32;
  rule.same_hardware = choice & 64;
  return rule;
}

}  // namespace

// The bytes are several logs, separated by a byte of zero; the first byte chooses the rule.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const RecordRule rule = rule_for(data[0]);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const LogQuestion question{.metric = rule.metric, .final_line = {}, .may_stop_early = (data[0] & 128) != 0};
  RecordPool pools[2];
  for (std::size_t i = 0; !rest.empty() && i < 64; ++i) {
    const std::size_t end = rest.find('\0');
    pools[i % 3 == 2].add(read(rest.substr(0, end), question));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  const RecordClaim claim = judge_record(pools[0], &pools[1], rule, {});
  require(claim.metric.n == pools[0].logs.size());
  require(claim.verdict != RecordVerdict::record || claim.flags.empty());
  require(!(claim.p < 0) && !(claim.p > 1));
  require(!claim.speedup_ci95.known() || claim.speedup_ci95.low <= claim.speedup_ci95.high);
  for (const RecordFlag& flag : claim.flags) require(!flag.id.empty() && !flag.why.empty());
  require(runs_as_they_arrived(pools[0], &pools[1], rule).size() == pools[0].logs.size());
  if (!pools[0].logs.empty() && !pools[1].logs.empty())
    require(!difference_in_short(pools[0].logs.front().script, pools[1].logs.front().script).empty());
  try {
    loss_trade(pools[0], pools[1], &pools[0], missing);
  } catch (const TradeError&) {
    // a refusal is fine
  }
  return 0;
}
