#include "app/text/format.h"

#include <gtest/gtest.h>

#include <vector>

#include "app/text/short_names.h"
#include "storage/records.h"

namespace stepladder {

TEST(InPrint, the_signs_are_those_of_print) {
  EXPECT_EQ(in_print("1.42 x"), "1.42\u00D7");
  EXPECT_EQ(in_print("1.42 x the baseline (95 %: 1.380 - 1.460)"),
            "1.42\u00D7 the baseline (95 %: 1.380 \u2013 1.460)");
  EXPECT_EQ(in_print("6 x 124,439,808 x 13.6 k x (2 + 3)"), "6 \u00D7 124,439,808 \u00D7 13.6 k \u00D7 (2 + 3)");
  EXPECT_EQ(in_print("1.10 x (0.85 - 1.43)"), "1.10\u00D7 (0.85 \u2013 1.43)");
  EXPECT_EQ(in_print("V x C, 8 x NVIDIA A100"), "V \u00D7 C, 8 \u00D7 NVIDIA A100");
  EXPECT_EQ(in_print("B 4 x T 1024"), "B 4 \u00D7 T 1024");
  EXPECT_EQ(in_print("x 747 MFLOP"), "\u00D7 747 MFLOP");
  EXPECT_EQ(in_print("x ~747 MFLOP"), "\u00D7 ~747 MFLOP");
  EXPECT_EQ(in_print("7 tokens/s, x 6 x 124 parameters"), "7 tokens/s, \u00D7 6 \u00D7 124 parameters");
  EXPECT_EQ(in_print("5 s +/- 1 s, 3 -> 2"), "5 s \u00B1 1 s, 3 \u2192 2");
  EXPECT_EQ(in_print("-0.0602 (-3) 1.5 - -2, ~-4, -Infinity"),
            "\u22120.0602 (\u22123) 1.5 \u2013 \u22122, ~\u22124, \u2212Infinity");
  EXPECT_EQ(in_print("n = 3 rungs x 1 run x 60 steps"), "n = 3 rungs \u00D7 1 run \u00D7 60 steps");
  EXPECT_EQ(in_print("-"), "-") << "unknown";
  EXPECT_EQ(in_print("1e-07, 2026-11-27, run-3, --lr"), "1e-07, 2026-11-27, run-3, --lr");
  EXPECT_EQ(in_print(in_print("-0.05, 1.42 x, 1 - 2")), in_print("-0.05, 1.42 x, 1 - 2"));
  EXPECT_EQ(in_print("an x-axis - as it is, 2 xylophones, a->b"), "an x-axis - as it is, 2 xylophones, a->b");
}

TEST(Format, RoughDurationsHaveNoDigitsThatTheyLack) {
  EXPECT_EQ(rough_duration_text(0.00421), "4.2 ms");
  EXPECT_EQ(rough_duration_text(0.267), "270 ms");
  EXPECT_EQ(rough_duration_text(38.4), "38 s");
  EXPECT_EQ(rough_duration_text(200), "3 min");
  EXPECT_EQ(rough_duration_text(3600 * 2.44), "2.4 h");
}

TEST(Format, LatenessNamesTheWriterThatHoldsValuesBack) {
  EXPECT_EQ(lateness_text("tensorboard", 95.4),
            "newest value 95 s old; TensorBoard's writer holds values back for up to 120 s");
  EXPECT_EQ(lateness_text("mlflow", 95), "");
  stepladder::Run run{.status = RunStatus::running, .environment = R"({"followed_store":"tensorboard"})"};
  EXPECT_NE(lateness_text(run, unix_now() - 40), "");
  EXPECT_EQ(lateness_text(run, unix_now()), "");
  EXPECT_EQ(lateness_text(run, missing), "");
  run.status = RunStatus::finished;
  EXPECT_EQ(lateness_text(run, unix_now() - 40), "");
}

namespace {

std::vector<std::string> shortened(std::vector<std::string> names, std::size_t least = 0) {
  const std::string beginning = common_beginning(names, least == 0 ? names.size() : least);
  for (std::string& name : names) name = without_beginning(name, beginning);
  return names;
}

TEST(ShortNames, LoseTheWordsWithWhichAllBegin) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(shortened({"night on two cores: TF32", "night on two cores: bf16"}), (Names{"TF32", "bf16"}));
  EXPECT_EQ(shortened({"gpt2-h100-adamw", "gpt2-h100-muon"}), (Names{"adamw", "muon"}));
  EXPECT_EQ(shortened({"lr_1e-4", "lr_1e-5"}), (Names{"lr_1e-4", "lr_1e-5"})) << "a number is one word";
  EXPECT_EQ(shortened({"Speed-up-1", "Speed-up-5, default mode"}), (Names{"Speed-up-1", "Speed-up-5, default mode"}));
  EXPECT_EQ(shortened({"log: Speed-up-1", "log: Speed-up-10"}), (Names{"Speed-up-1", "Speed-up-10"}));
  EXPECT_EQ(shortened({"gpt2-adam", "gpt2-adamw"}), (Names{"adam", "adamw"}));
  EXPECT_EQ(shortened({"gpt2-b16", "gpt2-b12"}), (Names{"b16", "b12"}));
  EXPECT_EQ(shortened({"run", "run two"}), (Names{"run", "run two"})) << "nothing would be left of the first";
  EXPECT_EQ(shortened({"run 0", "tuned", "run 1"}), (Names{"run 0", "tuned", "run 1"}));
  EXPECT_EQ(shortened({"run 0", "tuned", "run 1"}, 2), (Names{"0", "tuned", "1"}));
}

}  // namespace
}  // namespace stepladder
