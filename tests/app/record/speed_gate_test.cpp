#include "app/record/speed_gate.h"

#include <gtest/gtest.h>

#include "app/record/machine.h"

namespace stepladder {
namespace {

GateSample sample(std::vector<double> values, FigureBy by = FigureBy::throughput) {
  return {by, "s/step", std::move(values), machine_fingerprint()};
}

TEST(SpeedGate, answers_by_interval_and_tolerance) {
  const GateSample baseline = sample({0.100, 0.101, 0.099, 0.1005, 0.0995});
  const auto answer = [&](std::vector<double> values, double tolerance = 0.01) {
    return judge_gate(baseline, sample(std::move(values)), tolerance).answer;
  };
  EXPECT_EQ(answer({0.1000, 0.1005, 0.0998, 0.1002, 0.0995}), GateAnswer::passes);
  EXPECT_EQ(answer({0.090, 0.091, 0.0905, 0.0899, 0.0901}), GateAnswer::passes);  // faster
  EXPECT_EQ(answer({0.105, 0.106, 0.1055, 0.1049, 0.1051}), GateAnswer::slower);
  EXPECT_EQ(answer({0.105, 0.106, 0.1055, 0.1049, 0.1051}, 0.10), GateAnswer::passes);
  EXPECT_EQ(answer({0.09, 0.12}), GateAnswer::cannot_tell);
  EXPECT_EQ(answer({0.1}), GateAnswer::cannot_tell);
  const GateSample loss = sample({3.28, 3.28, 3.28}, FigureBy::loss);
  EXPECT_EQ(judge_gate(loss, loss, 0.01).answer, GateAnswer::passes);  // the same to the last digit
  EXPECT_EQ(judge_gate(loss, sample({3.6, 3.6, 3.6}, FigureBy::loss), 0.01).answer, GateAnswer::worse);
}

TEST(SpeedGate, times_of_another_machine_say_nothing) {
  GateSample baseline = sample({0.1, 0.101});
  baseline.machine["cores"] = baseline.machine["cores"].get<int>() + 1;
  const GateJudgement judged = judge_gate(baseline, sample({0.1, 0.101}), 0.01);
  EXPECT_EQ(judged.answer, GateAnswer::other_machine);
  EXPECT_NE(judged.reason.find("cores: "), std::string::npos);
  baseline.by = FigureBy::loss;
  EXPECT_NE(judge_gate(baseline, sample({0.1, 0.101}, FigureBy::loss), 0.05).answer, GateAnswer::other_machine);
}

}  // namespace
}  // namespace stepladder
