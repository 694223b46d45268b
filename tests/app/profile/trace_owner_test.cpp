// Which run of the project a trace is of: certain only for the same process, or the same host and folder, at that time.
#include "app/profile/trace_owner.h"

#include <gtest/gtest.h>

#include "app/host/environment.h"

namespace stepladder {
namespace {

class Owner : public testing::Test {
 protected:
  RunId add(const std::string& host, const std::string& folder, double from, double to) {
    return store_.insert_finished({.name = "r",
                                   .source = "import",
                                   .created_at = from,
                                   .started_at = from,
                                   .ended_at = to,
                                   .environment = R"({"host": ")" + host + R"(", "cwd": ")" + folder + R"("})"},
                                  std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 10}});
  }
  static StoredTrace trace(const std::string& path, const std::string& host, double from, double to,
                           std::int64_t pid = 0) {
    return {.name = "t",
            .source_path = path,
            .format = "kineto",
            .origin = {.began_at = from, .ended_at = to, .host = host, .pid = pid}};
  }
  RunStore store_ = RunStore::in_memory();
};

TEST_F(Owner, host_time_and_folder_are_certain) {
  add("node1", "/data/a", 1'000'000, 1'000'100);
  const RunId right = add("node1", "/data/b", 1'000'200, 1'000'300);
  StoredTrace kept = trace("/data/b/log/node1_7.1.pt.trace.json", "node1", 1'000'250, 1'000'251);
  kept.id = store_.traces().insert(kept);
  const TraceOwner owner = attach_to_owner(store_, kept);
  EXPECT_EQ(owner.run, right);
  EXPECT_EQ(kept.run, right);
  EXPECT_EQ(store_.traces().find(kept.id)->run, right);
  EXPECT_NE(owner.reason.find("node1"), std::string::npos);
}

TEST_F(Owner, what_is_not_certain_is_only_suggested) {
  const RunId run = add("node1", "/data/b", 1'000'200, 1'000'300);
  const auto suggested = [&](const StoredTrace& of) {
    const TraceOwner owner = owner_of(store_, of);
    EXPECT_FALSE(owner.run);
    return owner.possible;
  };
  // Nothing says the host; another folder; two runs at that time.
  EXPECT_EQ(suggested(trace("/data/b/trace.json", "", 1'000'250, 1'000'251)), std::vector{run});
  EXPECT_EQ(suggested(trace("/tmp/node1_7.1.pt.trace.json", "node1", 1'000'250, 1'000'251)), std::vector{run});
  const RunId second = add("node1", "/data/b", 1'000'210, 1'000'290);
  EXPECT_EQ(suggested(trace("/data/b/node1_7.1.pt.trace.json", "node1", 1'000'250, 1'000'251)),
            (std::vector{run, second}));
  for (int i = 0; i < 5; ++i) add("node1", "/data/b", 1'000'210, 1'000'290);
  const TraceOwner many = owner_of(store_, trace("/data/b/node1_7.1.pt.trace.json", "node1", 1'000'250, 1'000'251));
  EXPECT_EQ(many.possible.size(), 7U);
  EXPECT_EQ(many.reason, "It may belong to runs 1, 2, 3, 4, 5 and 2 more, which trained at that time.");
}

TEST_F(Owner, another_time_or_host_or_an_unknown_one_is_nobodys) {
  add("node1", "/data/b", 1'000'200, 1'000'300);
  for (const StoredTrace& other :
       {trace("/data/b/t.json", "node1", 1'000'400, 1'000'401), trace("/data/b/t.json", "node2", 1'000'250, 1'000'251),
        trace("/data/b/t.json", "node1", 1'000'250, 1'000'900), trace("/data/b/t.json", "", missing, missing)}) {
    const TraceOwner owner = owner_of(store_, other);
    EXPECT_FALSE(owner.run);
    EXPECT_TRUE(owner.possible.empty());
    EXPECT_TRUE(owner.reason.empty());
  }
}

TEST_F(Owner, other_hardware_another_model_or_a_full_folder_is_no_suggestion) {
  const auto add_log = [&](const std::string& hardware, const std::string& recipe, const std::string& device = "") {
    return store_.insert_finished({.name = "r",
                                   .source = "import",
                                   .source_path = "/logs/run.log",
                                   .device = device,
                                   .hardware = hardware,
                                   .recipe = recipe},
                                  std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 10}});
  };
  add_log("NVIDIA GeForce RTX 3080", "");
  add_log("", "", "cpu");
  add_log("", R"({"layers": 24, "d_model": 1024})");
  StoredTrace kept = trace("/logs/trace.json", "", missing, missing);
  kept.hardware = "NVIDIA H100 80GB HBM3";
  kept.recipe = R"({"layers": 12, "d_model": 768})";
  kept.profile.on_gpu = true;
  EXPECT_TRUE(owner_of(store_, kept).reason.empty()) << owner_of(store_, kept).reason;
  const RunId same = add_log("8x NVIDIA H100", R"({"layers": 12, "d_model": 768})"), unknown = add_log("", "");
  EXPECT_EQ(owner_of(store_, kept).possible, (std::vector{same, unknown}));
  add_log("", "");
  EXPECT_EQ(owner_of(store_, kept).possible.size(), 3U);
  add_log("", "");
  EXPECT_TRUE(owner_of(store_, kept).possible.empty()) << "a folder of four says nothing about one of them";
  EXPECT_TRUE(owner_of(store_, kept).reason.empty());
}

TEST_F(Owner, the_process_that_owns_a_run_is_certain_among_several) {
  const std::string here = this_host();
  add(here, "/data/b", 1'000'200, 1'000'300);
  const RunId own = store_.create_run({.name = "own",
                                       .status = RunStatus::running,
                                       .source = "import",
                                       .created_at = 1'000'000,
                                       .started_at = 1'000'000,
                                       .environment = R"({"host": ")" + here + R"("})"});
  const std::int64_t pid = store_.processes().owner_of(own).value().pid;
  EXPECT_EQ(owner_of(store_, trace("/elsewhere/t.json", "", 1'000'250, 1'000'251, pid)).run, own);
  EXPECT_FALSE(owner_of(store_, trace("/elsewhere/t.json", "", 1'000'250, 1'000'251, pid + 1)).run);
  EXPECT_FALSE(owner_of(store_, trace("/elsewhere/t.json", "node2", 1'000'250, 1'000'251, pid)).run)
      << "of another host";
  // Of another program in the folder of a watched one.
  const RunId watched =
      store_.insert_finished({.name = "watched",
                              .source = "watch",
                              .started_at = 2'000'200,
                              .ended_at = 2'000'300,
                              .environment = R"({"host": "node1", "cwd": "/data/b", "program_pid": 77})"},
                             std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 10}});
  const auto taken = [&](std::int64_t by) {
    return owner_of(store_, trace("/data/b/node1_7.1.pt.trace.json", "node1", 2'000'250, 2'000'251, by)).run;
  };
  EXPECT_EQ(taken(77), watched);
  EXPECT_FALSE(taken(78));
}

}  // namespace
}  // namespace stepladder
