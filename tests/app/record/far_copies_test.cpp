// How a run of a series that a machine has ended is taken from what the machine says of it; nothing is connected to.
#include "app/record/far_copies.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "storage/errors.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class FarCopiesTest : public ::testing::Test {
 protected:
  FarCopiesTest() {
    ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);
    std::filesystem::create_directories(folder_ / ".state");
    store_.emplace(RunStore::open(folder_ / "runs.db"));
    store_->machines().save({.alias = *MachineAlias::from("box")});
  }
  ~FarCopiesTest() override { ::unsetenv("XDG_STATE_HOME"); }

  // The end of a run of which the machine says this.
  std::optional<CommandEnd> taken(const std::string& state) {
    FarRun run{.uid = new_uid(),
               .alias = *MachineAlias::from("box"),
               .kind = "try",
               .name = "run",
               .request = "{}",
               .shown = "{}"};
    run = store_->machines().add_runs({run}).front();
    run.state = state;
    run.is_started = run.is_over = true;
    store_->machines().update(run);
    std::ofstream(command_.state.string() + ".far") << run.uid.text() << "\n";
    FarCopies copies(
        *store_, "box", folder_.path(), "/ignored", [](const std::string&) {}, [] { return false; });
    return copies.run(command_);
  }

  TemporaryFolder folder_;
  std::optional<RunStore> store_;
  const MeasuredCommand command_{.log = folder_ / "0001.log",
                                 .state = folder_ / ".state/0001.json",
                                 .command = {"true"},
                                 .folder = "/copy",
                                 .environment = {}};
};

TEST_F(FarCopiesTest, times_of_a_clock_that_was_set_meanwhile_do_not_count) {
  for (const char* times : {R"("started_at": 2000000000.0, "ended_at": 1999999999.0)",
                            R"("started_at": 5.0, "ended_at": 1999999999.0)", R"("ended_at": 1999999999.0)"}) {
    const std::string state = R"({"phase": "ended", "code": 0, "status": "finished", )" + std::string(times) + "}";
    EXPECT_NE(complaint<StorageError>([&] { taken(state); }).find("its times there can't be true"), std::string::npos)
        << times;
    EXPECT_FALSE(end_of_command(command_.state)) << times;
    EXPECT_FALSE(std::filesystem::exists(command_.state.string() + ".far")) << "the same command runs it again";
  }
  const auto end = taken(R"({"phase": "ended", "code": 3, "started_at": 100.0, "ended_at": 102.5, "host": "there"})");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_status, 3);
  EXPECT_EQ(end->wall_s, 2.5);
  EXPECT_EQ(end_of_command(command_.state)->host, "there");
}

TEST_F(FarCopiesTest, a_run_without_an_end_of_its_own_does_not_count) {
  for (const char* state :
       {R"({"phase": "lost", "reason": "the machine restarted"})",
        R"({"phase": "ended", "status": "stopped", "code": 0, "started_at": 1.0, "ended_at": 2.0})", "", "[]"}) {
    EXPECT_NE(complaint<StorageError>([&] { taken(state); }).find("doesn't count"), std::string::npos) << state;
    EXPECT_FALSE(end_of_command(command_.state)) << state;
  }
}

}  // namespace
}  // namespace stepladder
