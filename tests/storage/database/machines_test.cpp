// Machines, and what was started on them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../temporary_folder.h"
#include "old_file.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

TEST(Machines, AreListedAsPeopleCount) {
  RunStore store = RunStore::in_memory();
  for (const char* alias : {"node10", "box", "node2"}) store.machines().save({.alias = *MachineAlias::from(alias)});
  std::vector<std::string> names;
  for (const Machine& machine : store.machines().machines()) names.push_back(machine.alias.text());
  EXPECT_EQ(names, (std::vector<std::string>{"box", "node2", "node10"}));
}

TEST(Machines, AnExperimentThatWasCalledASetupGetsItsOwnKind) {
  const TemporaryFolder folder;
  const auto row = [](const std::string& uid, const std::string& kind, const std::string& name) {
    return "INSERT INTO far_runs (uid, alias, kind, name, request, sent, state, asked_at, is_started, is_over) VALUES "
           "('" +
           uid + "', 'box', '" + kind + "', '" + name + "', '{}', 's', '{\"phase\":\"running\"}', 7.5, 1, 0);";
  };
  make_old_file(folder / "a.db",
                row("a", "setup", "record on box") + row("b", "setup", "setup") + row("c", "ladder", "record on box") +
                    row("d", "setup", "record on other"),
                19);
  RunStore store = RunStore::open(folder / "a.db");
  Database(folder / "a.db", Database::Mode::read_write)
      .execute("INSERT INTO machines (alias, added_at) VALUES ('box', 1)");
  std::string kinds;
  const std::vector<MachineInFile> machines = store.machines().machines_in_file();
  ASSERT_EQ(machines.size(), 1u);
  for (const MachineInFile::Started& run : machines[0].open_runs) {
    kinds += run.uid + " " + run.kind + ", ";
    EXPECT_EQ(run.request, "{}");
    EXPECT_TRUE(run.is_started);
  }
  EXPECT_EQ(kinds, "a record, b setup, c ladder, d setup, ");
}

}  // namespace
}  // namespace stepladder
