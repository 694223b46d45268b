// Saved views as texts in the project: kept, listed, renamed, deleted, and carried over by a rescue.
#include <gtest/gtest.h>

#include "../temporary_folder.h"
#include "storage/database/rescue/rescue.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

using Names = std::vector<std::string>;

TEST(Views, are_kept_by_name) {
  RunStore store = RunStore::in_memory();
  store.settings().set("another", "fact");
  store.views().save("night", "{}");
  store.views().save(" Day \"1\" ", "{\"a\": 1}");
  store.views().save("night", "{\"b\": 2}");
  EXPECT_EQ(store.views().names(), (Names{"Day \"1\"", "night"}));
  EXPECT_EQ(store.views().content("night"), "{\"b\": 2}");
  EXPECT_EQ(store.views().content("Night"), std::nullopt);
  store.views().rename("night", "nights");
  EXPECT_EQ(store.views().content("nights"), "{\"b\": 2}");
  EXPECT_THROW(store.views().rename("nights", "Day \"1\""), StorageError);
  EXPECT_THROW(store.views().rename("night", "other"), StorageError) << "it is gone";
  EXPECT_THROW(store.views().save("  ", "{}"), StorageError);
  EXPECT_THROW(store.views().rename("nights", ""), StorageError);
  store.views().remove("Day \"1\"");
  store.views().remove("Day \"1\"");
  EXPECT_EQ(store.views().names(), Names{"nights"});
  EXPECT_EQ(store.settings().get("another"), "fact");
}

TEST(Views, of_any_size_are_listed_but_not_read) {
  RunStore store = RunStore::in_memory();
  EXPECT_THROW(store.views().save("large", std::string(longest_view + 1, ' ')), StorageError);
  store.settings().set("view:huge", std::string(10'000'000, '['));
  store.settings().set("view:" + std::string(100'000, 'n'), "{}");
  EXPECT_EQ(store.views().names(), Names{"huge"});
  EXPECT_THROW(store.views().content("huge"), StorageError);
  for (int i = 0; i < 1100; ++i) store.settings().set("view:" + std::to_string(i), "{}");
  EXPECT_EQ(store.views().names().size(), most_views);
}

TEST(Views, are_seen_by_other_connections_and_read_only_ones) {
  TemporaryFolder folder;
  RunStore one = RunStore::open(folder / "a.db"), other = RunStore::open(folder / "a.db");
  other.processes().others_have_written();
  one.views().save("night", "{}");
  EXPECT_TRUE(other.processes().others_have_written());
  EXPECT_EQ(other.views().names(), Names{"night"});
  RunStore reader = RunStore::open(folder / "a.db", RunStore::Mode::read_only);
  EXPECT_EQ(reader.views().content("night"), "{}");
  EXPECT_THROW(reader.views().save("day", "{}"), StorageError);
}

TEST(Views, are_rescued) {
  TemporaryFolder folder;
  {
    RunStore store = RunStore::open(folder / "a.db");
    store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 3}});
    store.views().save("night", "{\"a\": 1}");
  }
  rescue(folder / "a.db", folder / "b.db");
  EXPECT_EQ(RunStore::open(folder / "b.db").views().content("night"), "{\"a\": 1}");
}

}  // namespace
}  // namespace stepladder
