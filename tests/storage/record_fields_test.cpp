#include "storage/record_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace stepladder {
namespace {

TEST(RecordFields, EachNameIsThereOnce) {
  std::set<std::string> names;
  std::size_t fields = 0;
  for_each_field(run_fields, [&](const auto& field) {
    names.insert(field.name);
    ++fields;
  });
  EXPECT_EQ(names.size(), fields);
  for_each_field(started_fields, [&](const auto& field) { EXPECT_TRUE(names.contains(field.name)) << field.name; });
}

TEST(RecordFields, WhatAStartDoesntKnowStays) {
  stepladder::Run run{.status = RunStatus::interrupted,
                      .reason = "killed",
                      .ended_at = 50,
                      .tokens_per_step = 768,
                      .params = 10,
                      .loss_floor = 2,
                      .device = "cuda",
                      .sync = Sync::event,
                      .recipe = "{}"};
  merge(run, {.at = 100, .params = 20, .hardware = "NVIDIA H100", .setup_ms = 7});
  EXPECT_EQ(run.status, RunStatus::running);
  EXPECT_EQ(run.reason, "");
  EXPECT_TRUE(is_missing(run.ended_at));
  EXPECT_EQ(run.started_at, 100);
  EXPECT_EQ(run.tokens_per_step, 768);
  EXPECT_EQ(run.params, 20);
  EXPECT_EQ(run.model_flops_per_token, 120);
  EXPECT_EQ(run.loss_floor, 2);
  EXPECT_EQ(run.device, "cuda");
  EXPECT_EQ(run.hardware, "NVIDIA H100");
  EXPECT_EQ(run.setup_ms, 7);
  EXPECT_EQ(run.sync, Sync::event);
  EXPECT_EQ(run.recipe, "{}");
}

}  // namespace
}  // namespace stepladder
