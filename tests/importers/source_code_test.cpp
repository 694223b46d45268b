#include "storage/importers/source_code.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

const std::string rule = std::string(100, '=') + "\n";

std::string hash_of(const std::string& text, std::size_t piece) {
  SourceCodeHash hash;
  for (std::size_t at = 0; at < text.size(); at += piece) hash.take(std::string_view(text).substr(at, piece));
  return hash.text();
}

TEST(SourceCode, is_hashed_up_to_the_rule) {
  const std::string source = "import os\nlr = 0.1\n" + rule;
  const std::string hash = hash_of(source + "step 1 loss 2\n", 7);
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash, hash_of(source + "step 1 loss 3\n", 1000)) << "what follows and the pieces don't matter";
  EXPECT_NE(hash, hash_of("import os\nlr = 0.2\n" + rule, 1000));
}

TEST(SourceCode, is_not_found_in_a_plain_log) {
  EXPECT_EQ(hash_of("step 1 loss 2\n" + rule, 100), "");
  EXPECT_EQ(hash_of("import os\nstep 1 loss 2\n", 100), "");
  EXPECT_EQ(hash_of("", 100), "");
}

}  // namespace
}  // namespace stepladder
