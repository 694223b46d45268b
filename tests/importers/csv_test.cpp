// Tables: columns that never change, and a rate without the tokens of a step.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

using SortedJson = nlohmann::json;

TEST(Csv, ColumnsThatNeverChangeAreValuesOfTheRecipe) {
  const Told told = import_text(
      "step,loss,dt_ms,batch_size,lr,optimizer,gpu_mem,empty\n"
      "1,5.0,100,16,3e-4,muon,100,\n"
      "2,4.9,101,16,3e-4,muon,120,\n"
      "3,4.8,100,16,3e-4,muon,130,\n",
      {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const SortedJson recipe = SortedJson::parse(told.runs.front().run.recipe);
  EXPECT_EQ(recipe, (SortedJson{{"log_family", "csv"}, {"batch_size", 16}, {"lr", 3e-4}, {"optimizer", "muon"}}));
  EXPECT_DOUBLE_EQ(told.runs.front().steps.back().lr, 3e-4) << "a step's value too";
}

TEST(Csv, EachRunOfATableHasItsOwnConstants) {
  const Told told = import_text(
      "run,step,loss,batch_size\n"
      "a,1,5,16\nb,1,5,32\na,2,4,16\nb,2,4,32\na,3,3,16\nb,3,3,64\n",
      {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 2u);
  EXPECT_EQ(SortedJson::parse(told.runs[0].run.recipe).value("batch_size", 0), 16);
  EXPECT_FALSE(SortedJson::parse(told.runs[1].run.recipe).contains("batch_size"));
}

TEST(Csv, AQuotedTextIsValidJson) {
  const Told told = import_text("step,loss,note\n1,5,\"a \"\"b\"\" \\c\"\n2,4,\"a \"\"b\"\" \\c\"\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_TRUE(SortedJson::accept(told.runs.front().run.recipe)) << told.runs.front().run.recipe;
}

TEST(Csv, ARateIsKeptWhenTheTokensOfAStepAreUnknown) {
  const Told told = import_text("step,loss,tokens_per_sec\n1,5,1000\n2,4.9,1010\n3,4.8,1020\n", {}, "t.csv");
  ASSERT_EQ(told.runs.size(), 1u);
  const stepladder::Run& run = told.runs.front().run;
  EXPECT_EQ(run.tokens_per_step, 0);
  EXPECT_DOUBLE_EQ(run.printed.tokens_per_s, 1010);
  EXPECT_EQ(run.printed.unit, "tokens/s");
  EXPECT_TRUE(told.noted("whose unit can't be checked"));
}

TEST(Importers, WhatHoldsNoTrainingIsRecognisedAndNotOffered) {
  for (const Importer& importer : all_importers())
    EXPECT_EQ(importer.has_runs, importer.id != "profiler-table" && importer.id != "mfu-table") << importer.id;
}

}  // namespace
}  // namespace stepladder
