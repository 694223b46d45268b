#include <gtest/gtest.h>

#include <stdexcept>

#include "storage/errors.h"

namespace stepladder {
namespace {

TEST(ErrorText, NamesTheFileAndTheReason) {
  const auto denied = std::make_error_code(std::errc::permission_denied);
  EXPECT_EQ(error_text(std::filesystem::filesystem_error("cannot rename", "/a", "/b", denied)),
            "/b cannot be used: Permission denied");
  EXPECT_EQ(error_text(std::filesystem::filesystem_error("status", "/a", denied)),
            "/a cannot be used: Permission denied");
  EXPECT_EQ(error_text(std::runtime_error("a sentence")), "a sentence");
}

}  // namespace
}  // namespace stepladder
