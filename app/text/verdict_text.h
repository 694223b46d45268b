// Verdicts in words: the same in tables, reports and the window.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "storage/analysis/judgement.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

// False also for one as wide as 0.1 - 32, of two runs that scatter against one: it answers nothing.
bool is_informative(const Interval& ci95);

// "1.38 - 1.46", "9.1 - 12.3": with the digits that its width supports; "-" if not known, "no interval" if it says
// nothing.
std::string ci95_text(const Interval& interval);

// "faster"; "faster, one run" if a side has no repeats; "faster, doubtful" if a side is doubtful; "inconclusive" says
// enough; "impossible" or "baseline impossible" if the factor is meaningless; without a factor "-" or "doubtful".
// `base` names the rung that it is relative to.
std::string verdict_text(const Gain& gain, std::string_view base = "baseline");
std::string_view verdict_word(Verdict verdict);        // "inconclusive" for cannot_tell
std::string_view verdict_word(MetricVerdict verdict);  // likewise
std::string try_verdict_word(std::string verdict);     // likewise, of a try

// "val_bpb 0.9812, baseline 0.9790: worse, a difference of 0.0022 (95 % interval 0.0011 to 0.0033)".
std::string difference_text(const std::string& name, const MetricComparison& metric);

// Why the speed of a run, or of a rung, can't be relied on: "Impossible: throughput above the hardware's peak",
// "Doubtful: busy machine"; empty if it is trusted.
std::string doubt_text(const Plausibility& found);
std::string title_in_lower_case(const FlagKind& kind);  // "busy machine", "NaN or infinite loss"

// "same", "worse by 0.0312", "inconclusive"; "baseline" for the rung that the others are compared with.
std::string loss_text(const LossParity& loss, bool is_baseline);

std::string_view answer_word(RungAnswer answer);  // "real", "faster, one run", "can't tell"

// "5 runs"; "2 of 5 runs count, 3 were disturbed"; "3 runs, all disturbed".
std::string count_text(const RunCount& count);

// The rung that a gain is over, in a sentence: "the baseline", "rung 2".
std::string subject_of(const RungJudgement& below);

// Why the gain of a rung over the one that it stands on isn't clear, and what would settle it: "Other programs
// disturbed the baseline. Runs on a quiet machine would settle it." Of a rung without effect: what shows that. Empty
// where the answer is clear. `below`: null if not known.
std::string why_open_text(const RungJudgement& rung, const RungJudgement* below);

struct AnsweredRung {
  std::string title;
  const RungJudgement* judged = nullptr;
};
// The answer of a ladder, with the factor of each rung's own step: "Real: TF32 2.39 x. Not proven: Fused AdamW (busy
// machine). Under way: Fused AdamW. Impossible: 10 of 11. All together 3.10 x baseline." Empty with nothing but a
// baseline. Runs of the ladder that are in the bin are said, since the others may be the lucky ones.
std::string answer_text(std::span<const AnsweredRung> rungs, std::int64_t binned_runs = 0);

// "About 7 more runs of each, 12 min, would settle a difference of this size."; if more than a thousand were needed,
// says that hardly any number would; empty if the verdicts are clear, or nothing is known. `seconds`: of all these
// runs; missing if not known.
std::string needed_text(const RungJudgement& rung);
std::string needed_for_loss_text(const RungJudgement& rung);  // the loss alone
std::string needed_text(std::int64_t runs, double seconds, double noise_floor);

// A sentence that says why a profile's times are scaled, or why only its shares count; empty without a profile, or if
// it took as long as the measured step within a tenth.
std::string fit_text(const FittedProfile& fitted);

}  // namespace stepladder
