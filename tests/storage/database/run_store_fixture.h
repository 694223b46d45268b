// What the tests of RunStore share: a store in a file, and comparisons in which a missing value equals a missing one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "../not_finite.h"
#include "../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/run_store.h"

namespace stepladder {

// Equal where both are missing, or both NaN but not missing, or equal.
inline testing::AssertionResult alike(double a, double b) {
  const bool same =
      is_missing(a) || is_missing(b) ? is_missing(a) == is_missing(b) : (std::isnan(a) && std::isnan(b)) || a == b;
  if (same) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << (is_missing(a) ? " (missing)" : "") << " and " << b
                                     << (is_missing(b) ? " (missing)" : "");
}

inline void expect_alike(const Run& a, const Run& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.ladder, b.ladder);
  EXPECT_EQ(a.rung, b.rung);
  EXPECT_EQ(a.repeat, b.repeat);
  EXPECT_EQ(a.stands_on, b.stands_on);
  EXPECT_EQ(a.looks_up_to, b.looks_up_to);
  EXPECT_EQ(a.loss_against, b.loss_against);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.forked_at_step, b.forked_at_step);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.changed, b.changed);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.source_path, b.source_path);
  EXPECT_TRUE(alike(a.created_at, b.created_at));
  EXPECT_TRUE(alike(a.started_at, b.started_at));
  EXPECT_TRUE(alike(a.ended_at, b.ended_at));
  EXPECT_EQ(a.planned_steps, b.planned_steps);
  EXPECT_EQ(a.tokens_per_step, b.tokens_per_step);
  EXPECT_EQ(a.warmup_steps, b.warmup_steps);
  EXPECT_EQ(a.params, b.params);
  EXPECT_TRUE(alike(a.model_flops_per_token, b.model_flops_per_token));
  EXPECT_TRUE(alike(a.loss_floor, b.loss_floor));
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.hardware, b.hardware);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_TRUE(alike(a.setup_ms, b.setup_ms));
  EXPECT_EQ(a.peak_memory_bytes, b.peak_memory_bytes);
  EXPECT_EQ(a.sync, b.sync);
  EXPECT_EQ(a.recipe, b.recipe);
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.printed.unit, b.printed.unit);
  EXPECT_TRUE(alike(a.printed.tokens_per_s, b.printed.tokens_per_s));
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.forked_at_step, b.forked_at_step);
  EXPECT_EQ(a.stands_on, b.stands_on);
  EXPECT_EQ(a.looks_up_to, b.looks_up_to);
  EXPECT_EQ(a.loss_against, b.loss_against);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_TRUE(alike(a.setup_ms, b.setup_ms));
  EXPECT_EQ(a.peak_memory_bytes, b.peak_memory_bytes);
}

inline void expect_alike(const Summary& a, const Summary& b) {
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.first_step, b.first_step);
  EXPECT_EQ(a.last_step, b.last_step);
  EXPECT_EQ(a.warmup_steps, b.warmup_steps);
  EXPECT_TRUE(alike(a.loss_first, b.loss_first));
  EXPECT_TRUE(alike(a.loss_last, b.loss_last));
  EXPECT_TRUE(alike(a.loss_min, b.loss_min));
  EXPECT_TRUE(alike(a.val_loss_last, b.val_loss_last));
  EXPECT_TRUE(alike(a.val_loss_min, b.val_loss_min));
  EXPECT_TRUE(alike(a.dt_ms_median, b.dt_ms_median));
  EXPECT_TRUE(alike(a.dt_ms_p25, b.dt_ms_p25));
  EXPECT_TRUE(alike(a.dt_ms_p75, b.dt_ms_p75));
  EXPECT_TRUE(alike(a.tokens_per_s, b.tokens_per_s));
  EXPECT_TRUE(alike(a.tokens_per_s_p25, b.tokens_per_s_p25));
  EXPECT_TRUE(alike(a.tokens_per_s_p75, b.tokens_per_s_p75));
}

class RunStoreTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::filesystem::path file = folder / "a.db";
  RunStore store = RunStore::open(file);

  void apply(const std::vector<RunEvent>& events) { store.apply(events); }

  std::int64_t integer(const std::string& sql) { return Database(file, Database::Mode::read_only).integer(sql); }
  void execute(const std::string& sql) { Database(file, Database::Mode::read_write).execute(sql); }
};

}  // namespace stepladder
