// What the file of `doctor --gpu` says of folders and people: nothing, wherever a sentence names them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "app/cli/setup/gpu_check.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class GpuCheckReport : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "disk" / "annalena");
    fs::create_symlink(root_ / "disk" / "annalena", root_ / "home");
    ::setenv("HOME", (root_ / "home").c_str(), 1);
    ::setenv("USER", "annalena", 1);
  }
  void TearDown() override {
    home_ ? ::setenv("HOME", home_->c_str(), 1) : ::unsetenv("HOME");
    user_ ? ::setenv("USER", user_->c_str(), 1) : ::unsetenv("USER");
  }
  static std::optional<std::string> variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  static std::string shown(const std::string& text) {
    return without_names({{"texts", {text}}}, "/tmp/scratch-of-it")["texts"][0];
  }

  TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
  const std::optional<std::string> home_ = variable("HOME"), user_ = variable("USER");
};

TEST_F(GpuCheckReport, FoldersOfAllPathsAreHidden) {
  EXPECT_EQ(shown("/opt/acme/lib/libcudnn.so.9: cannot open shared object file"),
            "(folder)/libcudnn.so.9: cannot open shared object file");
  EXPECT_EQ(shown("cannot read '/data/acme', or /srv/acme.corp/."), "cannot read '(folder)', or (folder).");
  EXPECT_EQ(shown("/tmp/scratch-of-it/cache/x/kernel.cu(3): error"), "(scratch)/kernel.cu(3): error");
  EXPECT_EQ(shown((root_ / "home" / "acme" / "x.py").string() + ":3"), "~/x.py:3");
}

TEST_F(GpuCheckReport, HomeIsHiddenWhereLinksLeadTo) {
  EXPECT_EQ(shown((root_ / "disk" / "annalena" / "acme").string() + " is full"), "~ is full");
  EXPECT_EQ(shown("not a folder of annalena's"), "not a folder of (user)'s");
}

TEST_F(GpuCheckReport, OtherSlashesStay) {
  for (const char* text : {"4.2 tokens/s", "mlp/gelu is 1 / 3", "https://example.org/page", "0000:0a:00.0", "a // b"})
    EXPECT_EQ(shown(text), text);
}

}  // namespace
}  // namespace stepladder
