// Forms in which well-known programs print steps, evaluations and configurations: each is read right, or not at all.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

// A log of ten records, made from an index.
template <class Print>
Told import_ten(const Print& print, const std::string& header = {}, std::string name = "run.log") {
  std::string text = header;
  for (int i = 1; i <= 10; ++i) text += print(i);
  return import_text(text, {}, std::move(name));
}

std::string loss_of(int i) {
  return std::to_string(12 - i) + ".25";
}

void expect_steps(const Told& told, std::int64_t apart, const std::string& why) {
  ASSERT_EQ(told.runs.size(), 1u) << why;
  ASSERT_EQ(told.runs[0].steps.size(), 10u) << why;
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(told.runs[0].steps[i].step, static_cast<std::int64_t>(i + 1) * apart) << why;
    EXPECT_EQ(told.runs[0].steps[i].loss, 11.25 - static_cast<double>(i)) << why;
  }
}

TEST(PrintedForms, ALineOfGlogIsNoWarning) {
  const std::string front = "I0304 10:00:00.000001 140203 train.py:20] ";
  const Told told =
      import_ten([&](int i) { return front + "step " + std::to_string(i) + " | loss " + loss_of(i) + " | 340 ms\n"; },
                 front + "Using device: cuda\n" + front + "batch_size: 8, seq_len: 1024, world_size: 8, lr: 0.001\n");
  expect_steps(told, 1, "glog");
  const stepladder::Run& run = told.runs[0].run;
  EXPECT_EQ(run.device, "cuda");
  EXPECT_EQ(run.tokens_per_step, 8 * 1024 * 8);
  EXPECT_EQ(nlohmann::json::parse(run.recipe).value("lr", 0.0), 0.001) << run.recipe;
  EXPECT_FALSE(told.noted("a warning"));
}

TEST(PrintedForms, ParametersMayBeCountedInWords) {
  for (const std::string header : {"number parameters: 1.5 billion", "--> model has 1500.0 Million params"}) {
    const Told told =
        import_ten([](int i) { return "step " + std::to_string(i) + " loss " + loss_of(i) + "\n"; }, header + "\n");
    EXPECT_EQ(told.runs.at(0).run.params, 1'500'000'000) << header;
  }
}

TEST(PrintedForms, TrainableParametersAreAPartOfAll) {
  for (const std::string all : {" of 8,072,204,288", "/8,072,204,288 (0.52% trained)"}) {
    const Told told = import_ten([](int i) { return "step " + std::to_string(i) + " loss " + loss_of(i) + "\n"; },
                                 "Trainable parameters = 41,943,040" + all + "\n");
    EXPECT_EQ(told.runs.at(0).run.params, 8'072'204'288) << all;
  }
}

}  // namespace
}  // namespace stepladder
