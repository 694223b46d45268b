#include "storage/analysis/mfu.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

const std::filesystem::path assets = std::filesystem::path(STEPLADDER_SOURCE_DIR) / "assets";

TEST(FlopsPerToken, of_gpt2_124m_by_each_convention) {
  const ModelShape gpt2{.params = 124'439'808, .layers = 12, .d_model = 768, .seq_len = 1024, .vocab = 50257};
  EXPECT_NEAR(flops_per_token(MfuConvention::six_n, gpt2), 746.6e6, 0.05e6);
  EXPECT_NEAR(flops_per_token(MfuConvention::llm_c, gpt2), 803.5e6, 0.05e6);
  EXPECT_NEAR(flops_per_token(MfuConvention::nano_gpt, gpt2), 855.2e6, 0.05e6);
  EXPECT_NEAR(flops_per_token(MfuConvention::palm, gpt2), 859.9e6, 0.05e6);
  EXPECT_NEAR(flops_per_token_recomputed(MfuConvention::six_n, gpt2), 8 * 124'439'808.0, 1);
}

TEST(FlopsPerToken, is_missing_where_the_shape_lacks_what_is_needed) {
  for (const MfuConvention convention : all_conventions) {
    EXPECT_TRUE(is_missing(flops_per_token(convention, {})));
    EXPECT_EQ(is_missing(flops_per_token(convention, {.params = 100})), convention != MfuConvention::six_n);
    EXPECT_EQ(is_missing(flops_per_token_recomputed(convention, {.params = 100})), convention != MfuConvention::six_n);
  }
  EXPECT_TRUE(is_missing(utilisation(missing, 1, 1)));
  EXPECT_DOUBLE_EQ(utilisation(750e6, 100'000, 312), 0.24038461538461539);
}

TEST(Published, all_87_rows_agree_to_four_decimals_or_say_why_not) {
  const std::vector<PublishedRow> rows = read_published(assets / "mosaic-mfu.csv");
  ASSERT_EQ(rows.size(), 87);
  for (const PublishedRow& row : rows)
    EXPECT_EQ(disagreement(row.published, recompute(row)), "") << row.model << " T=" << row.shape.seq_len;
  EXPECT_EQ(rows.front().model, "gpt13b");
  EXPECT_EQ(rows.front().samples_per_s, 0.5285);
  PublishedRow wrong = rows.front();
  wrong.published.hfu += 0.001;
  EXPECT_NE(disagreement(wrong.published, recompute(wrong)).find("hfu is published as 0.4296"), std::string::npos);
}

}  // namespace
}  // namespace stepladder
