// What all steps of a file have in common describes its run, whatever the file's format is.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "storage/analysis/file_grouping.h"
#include "storage/analysis/summary.h"
#include "storage/importers/name_settings.h"
#include "storage/wording.h"
#include "tests/importers/told.h"

namespace stepladder {
namespace {

using SortedJson = nlohmann::json;

constexpr int steps = 20;

// Files of one content; `field` and `value` are on each of their lines.
struct Format {
  const char* name;
  std::string (*text)(const std::string& field, const std::string& value, bool is_text);
};

template <class Line>
std::string lines(Line line) {
  std::string text;
  for (int i = 1; i <= steps; ++i) text += line(std::to_string(i), fmt::format("{:.4f}", 5 - 0.01 * i)) + "\n";
  return text;
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {"bars.log",
       [](const std::string& field, const std::string& value, bool) {
         return lines([&](const std::string& step, const std::string& loss) {
           return "step " + step + " | loss " + loss + " | dt 100.5 ms | " + field + " " + value;
         });
       }},
      {"pairs.log",
       [](const std::string& field, const std::string& value, bool) {
         return lines([&](const std::string& step, const std::string& loss) {
           return "step=" + step + " loss=" + loss + " dt_ms=100.5 " + field + "=" + value;
         });
       }},
      {"colons.log",
       [](const std::string& field, const std::string& value, bool) {
         return lines([&](const std::string& step, const std::string& loss) {
           return "step: " + step + ", loss: " + loss + ", " + field + ": " + value + ", dt: 100.5 ms";
         });
       }},
      {"lines.jsonl",
       [](const std::string& field, const std::string& value, bool is_text) {
         const std::string json = is_text ? "\"" + value + "\"" : value;
         return lines([&](const std::string& step, const std::string& loss) {
           return "{\"step\": " + step + ", \"loss\": " + loss + ", \"dt_ms\": 100.5, \"" + field + "\": " + json + "}";
         });
       }},
      {"table.csv",
       [](const std::string& field, const std::string& value, bool) {
         return "step,loss,dt_ms," + field + "\n" + lines([&](const std::string& step, const std::string& loss) {
                  return step + "," + loss + ",100.5," + value;
                });
       }},
      {"runs.csv", [](const std::string& field, const std::string& value, bool) {
         return "run,step,loss,dt_ms," + field + "\n" + lines([&](const std::string& step, const std::string& loss) {
                  return "r," + step + "," + loss + ",100.5," + value;
                });
       }}};
  return all;
}

FilesAre grouping_of(const Told& a, const Told& b) {
  const Summary none;
  const std::vector<FileRun> files{{&a.runs.at(0).run, &none}, {&b.runs.at(0).run, &none}};
  return group_files(files).files;
}

TEST(Constants, make_rungs_in_every_format) {
  struct Field {
    const char* name;
    const char* first;
    const char* second;
    bool is_text;
  };
  for (const Field& field : {Field{"lr", "0.001", "0.0003", false}, Field{"optimizer", "adam", "muon", true},
                             Field{"beta2", "0.95", "0.99", false}}) {
    for (const Format& format : formats()) {
      SCOPED_TRACE(std::string(format.name) + " " + field.name);
      // A number behind a word alone is read only if it is one of a step.
      if (std::string_view(format.name) == "bars.log" && std::string_view(field.name) == "beta2") continue;
      const Told a = import_text(format.text(field.name, field.first, field.is_text), {}, format.name);
      const Told same = import_text(format.text(field.name, field.first, field.is_text), {}, format.name);
      const Told b = import_text(format.text(field.name, field.second, field.is_text), {}, format.name);
      ASSERT_EQ(a.runs.size(), 1u);
      EXPECT_EQ(a.runs[0].steps.size(), static_cast<std::size_t>(steps));
      EXPECT_TRUE(SortedJson::parse(a.runs[0].run.recipe).contains(field.name)) << a.runs[0].run.recipe;
      EXPECT_EQ(grouping_of(a, same), FilesAre::repeats);
      EXPECT_EQ(grouping_of(a, b), FilesAre::rungs);
    }
  }
}

TEST(Constants, values_that_change_and_measurements_describe_no_run) {
  const Told told = import_text(lines([](const std::string& step, const std::string& loss) {
                                  return "{\"step\": " + step + ", \"loss\": " + loss + ", \"lr\": 0.00" + step +
                                         ", \"phase\": \"" + (step < "15" ? "warm" : "steady") +
                                         "\", \"gpu_mem\": 4096, \"stamp\": \"2026-01-0" + step.substr(0, 1) + "\"}";
                                }),
                                {}, "a.jsonl");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_EQ(SortedJson::parse(told.runs[0].run.recipe), (SortedJson{{"log_family", "json-lines"}}));
}

TEST(NameSettings, AreWellKnownKeysWithValues) {
  const auto added = [](std::string_view stem, Json recipe = Json::object()) {
    return add_settings_in_name(recipe, stem);
  };
  for (const char* stem : {"lr3e-4_seed1", "lr=3e-4,seed=1", "lr_3e-4 seed_1", "run7-lr-3e-4-seed-1", "LR 3e-4 s1"})
    EXPECT_EQ(added(stem), "lr 0.0003, seed 1") << stem;
  EXPECT_EQ(added("bs64-s2"), "batch_size 64, seed 2");
  EXPECT_EQ(added("depth12_width768_wd0.1_warmup500_opt-muon"),
            "weight_decay 0.1, warmup 500, width 768, depth 12, optimizer muon");
  EXPECT_EQ(added("lr3e4"), "lr 3e4") << "3e-4 without its sign, perhaps";
  for (const char* stem : {"baseline", "tables64", "colr3", "optimal", "2026-11-28", "s1st", "gpt2-124M", "lr",
                           "steps100", "bs64k", "seeds3"})
    EXPECT_EQ(added(stem), "") << stem;
  EXPECT_EQ(added("lr3e-4_seed1_bs8", {{"optim.learning_rate", 0.1}, {"global_batch", 32}, {"seed", 2}}), "");
}

}  // namespace
}  // namespace stepladder
