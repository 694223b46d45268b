// Traces that appear in followed folders: taken once, when they are complete.
#include <gtest/gtest.h>

#include <fstream>

#include "app/import/trace_import.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

constexpr const char* trace_text = R"({"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 2}]})";

TEST(TraceSearch, takes_a_trace_once_when_it_no_longer_grows) {
  const TemporaryFolder folder;
  const std::filesystem::path deep = folder.path() / "a" / "b";
  std::filesystem::create_directories(deep);
  std::filesystem::create_directories(folder.path() / ".hidden");
  std::ofstream(folder.path() / ".hidden" / "t.json") << trace_text;
  std::ofstream(deep / "config.json") << R"({"lr": 0.1})";
  std::ofstream(deep / "t.pt.trace.json") << std::string(trace_text).substr(0, 60);
  TraceSearch search;
  EXPECT_TRUE(search.find_new({folder.path()}, false).empty()) << "it may still be written";
  std::ofstream(deep / "t.pt.trace.json") << trace_text;
  EXPECT_TRUE(search.find_new({folder.path()}, false).empty()) << "it has grown";
  EXPECT_EQ(search.find_new({folder.path()}, false), std::vector{(deep / "t.pt.trace.json").string()});
  EXPECT_TRUE(search.find_new({folder.path()}, false).empty());
  EXPECT_TRUE(search.find_new({folder.path()}, true).empty());
  EXPECT_EQ(TraceSearch().find_new({deep / "t.pt.trace.json"}, true).size(), 1U) << "nobody reads on, and it is named";
}

}  // namespace
}  // namespace stepladder
