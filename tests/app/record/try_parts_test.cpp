// The parts of a change and the states with some of them, in repositories of all kinds of changes.
#include "app/record/try_parts.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class TryParts : public ::testing::Test {
 protected:
  TryParts() {
    std::ofstream(folder_ / "settings") << "[diff]\nsuppressBlankEmpty = true\ninterHunkContext = 100\n"
                                           "[user]\nname = A\nemail = a@example.org\n";
    ::setenv("GIT_CONFIG_GLOBAL", (folder_ / "settings").c_str(), 1);
    sh("git init -q -b main repository");
  }
  ~TryParts() override { ::unsetenv("GIT_CONFIG_GLOBAL"); }

  void sh(const std::string& command) const {
    ASSERT_EQ(std::system(("cd " + folder_.path().string() + " && " + command).c_str()), 0) << command;
  }
  std::string state_after(const std::string& command) const {
    sh("cd repository && " + command + " && git add -A && git commit -q --allow-empty -m state");
    return first_line(GitCheckout(folder_ / "repository").git({"rev-parse", "HEAD^{tree}"}));
  }
  std::string with(const std::string& from, const std::string& to, const std::vector<bool>& chosen) const {
    const GitCheckout store(folder_ / "repository", GitCheckout::Ours{});
    return state_with(store, from, to, parts_of_change(store, from, to, 19), chosen, folder_ / "scratch");
  }
  std::string git(const std::vector<std::string>& arguments) const {
    return GitCheckout(folder_ / "repository").git(arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(TryParts, EmptyLinesBesideAHunkStay) {
  const std::string from = state_after(R"(printf 'a\n\nb\n\n\n\nc\n\nd\n' > file)");
  const std::string to = state_after(R"(printf 'a\n\nB\n\n\n\nC\n\nd\n' > file)");
  EXPECT_EQ(with(from, to, {false, false}), from);
  EXPECT_EQ(with(from, to, {true, true}), to);
  EXPECT_EQ(git({"show", with(from, to, {true, false}) + ":file"}), "a\n\nB\n\n\n\nc\n\nd\n");
  EXPECT_EQ(git({"show", with(from, to, {false, true}) + ":file"}), "a\n\nb\n\n\n\nC\n\nd\n");
}

TEST_F(TryParts, TheIndexStaysAsItIs) {
  const std::string from = state_after("echo 1 > a && echo 1 > b");
  const std::string to = state_after("echo 2 > a && echo 2 > b && echo 2 > c");
  const std::string before = git({"ls-files", "--stage"});
  EXPECT_NE(with(from, to, {true, false, false}), to);
  EXPECT_EQ(git({"ls-files", "--stage"}), before);
  EXPECT_ANY_THROW(with(from, std::string(40, '1'), {true}));
  EXPECT_EQ(git({"ls-files", "--stage"}), before);
}

TEST_F(TryParts, AFileMayBecomeAFolder) {
  const std::string from = state_after("echo 1 > a"), to = state_after("rm a && mkdir a && echo 2 > a/b");
  EXPECT_EQ(git({"ls-tree", "-r", "--name-only", with(from, to, {false, true})}), "a/b\n");
  EXPECT_EQ(with(from, to, {true, true}), to);
  EXPECT_EQ(git({"ls-tree", "-r", "--name-only", with(to, from, {true, false})}), "a\n");
  EXPECT_EQ(with(to, from, {true, true}), from);
}

}  // namespace
}  // namespace stepladder
