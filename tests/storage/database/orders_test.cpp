// What a project's rows may make the program do: nothing that this user hasn't asked for here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class OrdersOfAProject : public testing::Test {
 protected:
  OrdersOfAProject() { ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1); }
  ~OrdersOfAProject() override { ::unsetenv("XDG_STATE_HOME"); }

  void as_stranger(const fs::path& file, const std::string& sql) {
    Database(file, Database::Mode::read_write).execute(sql);
  }
  static FarRun asked(const std::string& alias) {
    return {.uid = new_uid(),
            .alias = *MachineAlias::from(alias),
            .kind = "watch",
            .name = "n",
            .request = R"({"command":["x","--api-key","s3cret"]})",
            .shown = R"({"command":["x","--api-key","***"]})"};
  }

  TemporaryFolder folder_;
  const fs::path file_ = folder_ / "a.db";
};

const Machine box{.alias = *MachineAlias::from("box"), .folder = *MachineFolder::from("/scratch")};

TEST_F(OrdersOfAProject, RowsOfAStrangerAreHistory) {
  RunStore store = RunStore::open(file_);
  as_stranger(file_,
              "INSERT INTO machines (alias, is_local, folder, added_at) VALUES ('here', 1, '/tmp/$(id)', 1);"
              "INSERT INTO far_runs (uid, alias, kind, name, request, asked_at, is_started, is_over) VALUES "
              "('/home/me/Documents', 'here', 'watch', 'n', '{\"command\":[\"id\"]}', 1, 0, 0)");
  EXPECT_TRUE(store.machines().machines().empty());
  EXPECT_TRUE(store.machines().open_runs().empty());
  EXPECT_FALSE(store.machines().machine(*MachineAlias::from("here")));
  const std::vector<MachineInFile> machines = store.machines().machines_in_file();
  ASSERT_EQ(machines.size(), 1u);
  EXPECT_EQ(machines[0].folder, "/tmp/$(id)");
  ASSERT_EQ(machines[0].open_runs.size(), 1u);
  EXPECT_EQ(machines[0].open_runs[0].uid, "/home/me/Documents");
  EXPECT_NE(complaint<StorageError>([&] { store.machines().adopt(machines[0]); }).find("a machine's folder has only"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "state")) << "reading creates no order book";
}

TEST_F(OrdersOfAProject, OnlyTheseSayThatARunWasLaunchedHere) {
  const std::string mine(32, 'a'), theirs(32, 'b'), far(32, 'c');
  const FarRun batch = asked("box");
  {
    RunStore store = RunStore::open(file_);
    for (const std::string& uid : {mine, theirs, far})
      store.create_run({.uid = uid,
                        .name = "r",
                        .source = "launched",
                        .source_path = uid == far ? "box:runs/" + batch.uid.text() : ""});
    const auto claimed = [&] {
      std::vector<bool> all;
      for (const stepladder::Run& run : store.runs()) all.push_back(run.is_claimed);
      return all;
    };
    EXPECT_EQ(claimed(), (std::vector<bool>{true, true, true}));
    store.orders().put(order_kind::launch, {{mine, "{}"}});
    store.orders().put(order_kind::far_run, {{batch.uid.text(), "{}"}});
    EXPECT_EQ(claimed(), (std::vector<bool>{false, true, false}));
    EXPECT_TRUE(store.runs_with_summaries()[1].run.is_claimed);
    EXPECT_FALSE(store.runs_with_kept_summaries()[0].run.is_claimed);
  }
  fs::rename(file_, folder_ / "moved.db");
  RunStore moved = RunStore::open(folder_ / "moved.db");
  EXPECT_TRUE(moved.runs()[0].is_ours()) << "still this user's";
  EXPECT_FALSE(moved.existing_run(2).is_ours());
}

TEST_F(OrdersOfAProject, BelongToTheFileAndItsPlace) {
  {
    RunStore store = RunStore::open(file_);
    store.machines().save(box);
    store.machines().add_runs({asked("box")});
    ASSERT_EQ(store.machines().machines().size(), 1u);
    EXPECT_EQ(store.machines().machines()[0].folder.text(), "/scratch");
    ASSERT_EQ(store.machines().open_runs().size(), 1u);
    EXPECT_TRUE(store.machines().machines_in_file().empty());
    store.upkeep().back_up(folder_ / "copy.db");
  }
  RunStore copy = RunStore::open(folder_ / "copy.db");
  EXPECT_TRUE(copy.machines().machines().empty());
  EXPECT_TRUE(copy.machines().open_runs().empty());
  EXPECT_EQ(copy.machines().machines_in_file().size(), 1u);
  RunStore again = RunStore::open(folder_ / "." / "a.db");
  EXPECT_EQ(again.machines().open_runs().size(), 1u);
  fs::remove(file_);
  RunStore other = RunStore::open(file_);
  EXPECT_TRUE(other.machines().machines().empty()) << "another file at the same place";
}

TEST_F(OrdersOfAProject, AdoptingFollowsWhatWasStartedAndStartsNothing) {
  RunStore store = RunStore::open(file_);
  const std::string uid = new_uid().text();
  as_stranger(
      file_,
      "INSERT INTO machines (alias, folder, partition, added_at) VALUES ('box', '~/x', 'gpu', 1);"
      "INSERT INTO far_runs (uid, alias, kind, name, request, asked_at, is_started, is_over) VALUES ('" +
          uid + "', 'box', 'watch', 'n', '{\"name\":\"n\",\"env\":{\"LD_PRELOAD\":\"x\"},\"number\":0}', 1, 1, 0), ('" +
          new_uid().text() + "', 'box', 'watch', 'n', '{}', 1, 0, 0), ('../x', 'box', 'watch', 'n', '{}', 1, 1, 0)");
  const MachineInFile shown = store.machines().machines_in_file().at(0);
  as_stranger(file_, "UPDATE machines SET program = '/tmp/evil'");
  EXPECT_NE(complaint<StorageError>([&] { store.machines().adopt(shown); }).find("something else"), std::string::npos);
  as_stranger(file_, "UPDATE machines SET program = NULL");
  EXPECT_EQ(store.machines().adopt(shown).slurm.partition.text(), "gpu");
  const std::vector<FarRun> open = store.machines().open_runs();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].uid.text(), uid);
  EXPECT_TRUE(open[0].is_started);
  EXPECT_TRUE(store.machines().machines_in_file().empty());
  EXPECT_EQ(open[0].request, R"({"name":"n"})") << "nothing of it could be carried out";
}

TEST_F(OrdersOfAProject, AFileWithoutAnIdOfItsOwnHasNone) {
  for (const char* name : {"a.db", "b.db"}) {
    RunStore store = RunStore::open(folder_ / name);
    as_stranger(folder_ / name, "INSERT INTO settings (key, value) VALUES ('project_id', 'nonsense')");
    EXPECT_TRUE(store.machines().machines().empty()) << name;
    if (name == std::string("a.db")) store.machines().save(box);
  }
}

TEST_F(OrdersOfAProject, SecretsAreInTheOrderBookAlone) {
  RunStore store = RunStore::open(file_);
  store.machines().save(box);
  const FarRun run = store.machines().add_runs({asked("box")}).front();
  EXPECT_EQ(store.machines().far_run(run.uid)->request, run.request);
  Database project(file_, Database::Mode::read_only);
  EXPECT_EQ(project.text("SELECT request FROM far_runs"), run.shown);
  const fs::path book = folder_ / "state" / "stepladder" / "orders.db";
  EXPECT_EQ(fs::status(book).permissions() & fs::perms(077), fs::perms::none);
  EXPECT_EQ(fs::status(book.parent_path()).permissions() & fs::perms(077), fs::perms::none);
}

TEST_F(OrdersOfAProject, WhatWasAskedOfARunBeforeItWasOursIsForgotten) {
  RunStore store = RunStore::open(file_);
  as_stranger(file_, "PRAGMA foreign_keys = OFF; INSERT INTO requests (run_id, verb, at) VALUES (1, 'stop', 1)");
  const RunId run = store.create_run({.name = "mine"});
  ASSERT_EQ(run, 1);
  EXPECT_TRUE(store.processes().take_requests().empty());
  store.processes().request(run, RunRequest::pause);
  EXPECT_EQ(store.processes().take_requests().size(), 1u);
}

TEST_F(OrdersOfAProject, AUidThatIsNoneAndJsonThatNestsDeepAreNotRead) {
  RunStore store = RunStore::open(file_);
  store.insert_finished({.name = "r", .recipe = "{}"}, {});
  as_stranger(file_, "UPDATE runs SET uid = '../../x', environment = '" + std::string(10'000, '[') + "'");
  const stepladder::Run run = store.existing_run(1);
  EXPECT_EQ(run.uid, "");
  EXPECT_EQ(run.environment, "");
}

}  // namespace
}  // namespace stepladder
