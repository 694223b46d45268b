// Traces that are cut off, broken or made to hurt: each ends in a sentence with the place, or in a profile whose kinds
// add up to its steps.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <random>

#include "storage/database/database.h"
#include "storage/traces/attribution.h"
#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "storage/wording.h"
#include "tests/storage/temporary_folder.h"
#include "tests/storage/traces/trace_text.h"

namespace stepladder {
namespace {

struct HostileTraceTest : testing::Test {
  std::filesystem::path write(const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  // Empty: it was read.
  std::string problem_of(const std::string& bytes) { return problem_of_file(write(bytes)); }
  std::string problem_of_file(const std::filesystem::path& path) {
    try {
      check(attribute_all(read_trace(path).front()));
      return "";
    } catch (const TraceError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      EXPECT_LT(std::string(error.what()).size(), 2'000U);
      return error.what();
    }
  }
  void check(const TracedProcess& process) {
    for (const TracedStep& step : process.profile.steps) {
      double sum = 0;
      for (const double ms : step.ms) {
        EXPECT_GE(ms, -1e-9);
        sum += ms;
      }
      EXPECT_NEAR(sum, step.dt_ms, 0.001 * step.dt_ms + 1e-6);
    }
    for (const KeptStep& kept : process.kept) unpack(kept.packed);
  }
  TemporaryFolder folder;
  std::filesystem::path file = folder.path() / "trace.json";
};

std::string whole_trace() {
  return trace_of({cpu_step(1, 1000, 100), op("aten::mm", 1000, 20, R"("Input Dims": [[12, 34], [34, 5]])"),
                   launch(3, 1010), kernel("gemm", 7, 3, 1020, 50), kernel("ncclAllReduce", 8, 0, 1030, 60),
                   cpu_step(2, 1100, 100), launch(4, 1110), kernel("softmax", 7, 4, 1120, 50)},
                  R"("distributedInfo": {"rank": 1}, )");
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(HostileTraceTest, CutOffAnywhere) {
  const std::string whole = whole_trace();
  ASSERT_EQ(problem_of(whole), "");
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_PRED2(holds, problem_of(whole.substr(0, size)),
                 "is cut off after " + grouped(static_cast<std::int64_t>(size)) + " bytes")
        << size;
}

TEST_F(HostileTraceTest, CutOffGzip) {
  const std::string packed = [] {
    const std::string whole = whole_trace();
    std::string made(4096, '\0');
    z_stream stream{};
    deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(whole.data()));
    stream.avail_in = static_cast<uInt>(whole.size());
    stream.next_out = reinterpret_cast<Bytef*>(made.data());
    stream.avail_out = static_cast<uInt>(made.size());
    deflate(&stream, Z_FINISH);
    made.resize(stream.total_out);
    deflateEnd(&stream);
    return made;
  }();
  ASSERT_EQ(problem_of(packed), "");
  for (std::size_t size = 2; size < packed.size(); ++size) EXPECT_NE(problem_of(packed.substr(0, size)), "") << size;
}

TEST_F(HostileTraceTest, WhatIsWrongIsNamedWithItsPlace) {
  const std::string good = op("aten::mm", 0, 4);
  const auto with = [&](const std::string& bad) { return problem_of(trace_of({good, bad})); };
  EXPECT_EQ(with(op("a::b", 0, -4)), "has a slice that ends before it begins, 'a::b', event 2");
  EXPECT_EQ(with(op("a::b", 1e30, 4)), "has a slice at an impossible time, 'a::b', event 2");
  EXPECT_EQ(with(op("a::b", 9e17, 4)), "has a slice at an impossible time, 'a::b', event 2");
  EXPECT_EQ(with(R"({"ph": "X", "name": "a", "ts": "12", "dur": 1})"), "has an event whose ts is a text, event 2");
  EXPECT_EQ(with(R"({"ph": "X", "name": 12, "ts": 12, "dur": 1})"), "has an event whose name is a number, event 2");
  EXPECT_EQ(with(R"({"ph": "X", "name": ["a"], "ts": 12, "dur": 1})"), "has an event whose name is a list, event 2");
  EXPECT_EQ(with(R"({"ph": {}, "name": "a", "ts": 12, "dur": 1})"), "has an event whose ph is an object, event 2");
  EXPECT_PRED2(holds, with(R"({"ph": "X", "name": "a", "ts": NaN, "dur": 1})"), "isn't JSON: byte ");
  EXPECT_PRED2(holds, problem_of(trace_of({good}) + trace_of({good})), "goes on after its JSON value has ended");
  EXPECT_PRED2(holds, problem_of(trace_of({good}) + " x"), "goes on after its JSON value has ended");
  EXPECT_EQ(problem_of(trace_of({good}) + " \n"), "");
  EXPECT_EQ(problem_of(std::string(100'000, '[')), "nests its values more than 100 deep");
  EXPECT_EQ(problem_of(trace_of({op("a::b", 0, 4, "\"x\": " + std::string(100'000, '['))})),
            "nests its values more than 100 deep");
  EXPECT_EQ(problem_of(trace_of({op(std::string(17 << 20, 'a'), 0, 4)})), "holds a value of more than 16 MiB");
  EXPECT_EQ(problem_of(""), "is empty");
  EXPECT_PRED2(holds, problem_of(R"({"traceEvents": {}})"), "holds no events of a trace");
}

// A hundred thousand events in no order, one of them twice: the sums don't depend on the order.
TEST_F(HostileTraceTest, TimesOutOfOrder) {
  std::vector<std::string> events;
  for (int i = 0; i < 20'000; ++i) events.push_back(op("aten::op" + std::to_string(i % 7), 10 * i, 9));
  events.push_back(cpu_step(1, 0, 200'000));
  const TraceProfile sorted = attribute(read_trace(write(trace_of(events))).front());
  std::shuffle(events.begin(), events.end(), std::mt19937_64(3));
  const TraceProfile shuffled = attribute(read_trace(write(trace_of(events))).front());
  ASSERT_EQ(sorted.operators.size(), shuffled.operators.size());
  for (std::size_t i = 0; i < sorted.operators.size(); ++i)
    EXPECT_NEAR(sorted.operators[i].time.self_ms, shuffled.operators[i].time.self_ms, 1e-9);
  events.push_back(events.front());
  EXPECT_EQ(problem_of(trace_of(events)), "");
}

TEST_F(HostileTraceTest, MoreKernelsAtOnceThanAGpuRuns) {
  std::vector<std::string> events;
  for (int i = 0; i < 3'000; ++i) events.push_back(kernel("k", i % 900, 0, 0, 100));
  EXPECT_PRED2(holds, problem_of(trace_of(events)), "more than 1000 kernels at the same time");
  events.clear();
  for (int i = 0; i < 3'000; ++i) events.push_back(kernel("k", i, 0, 0, 100));
  EXPECT_PRED2(holds, problem_of(trace_of(events)), "more than 1000 threads and streams");
}

// Bytes and pieces of a good trace changed, swapped and left out, the same ones each time.
TEST_F(HostileTraceTest, RandomChangesEndInASentenceOrInSums) {
  const std::string whole = whole_trace();
  const std::vector<std::string> pieces{"\"dur\": -1",
                                        "1e300",
                                        "-1e15",
                                        "9223372036854775807",
                                        "null",
                                        "[[[",
                                        "}]}",
                                        "\"",
                                        "\\u0000",
                                        "\"ph\": \"i\", \"name\": \"[memory]\"",
                                        "ProfilerStep#4294967295",
                                        "\xff",
                                        "{",
                                        "0"};
  std::mt19937_64 chance(20261123);
  int refused = 0, read = 0;
  for (int round = 0; round < 1'000; ++round) {
    std::string made = whole;
    for (std::uint64_t changes = 1 + chance() % 3; changes > 0; --changes) {
      const std::size_t at = chance() % made.size(), count = chance() % std::min<std::size_t>(made.size() - at, 40);
      switch (chance() % 4) {
        case 0:
          made[at] = static_cast<char>(chance() % 256);
          break;
        case 1:
          made.replace(at, count, pieces[chance() % pieces.size()]);
          break;
        case 2:
          made.insert(at, made.substr(chance() % made.size(), 60));
          break;
        default:  // another digit
          if (const std::size_t digit = made.find_first_of("0123456789", at); digit != std::string::npos)
            made.replace(digit, 1, std::to_string(chance() % 10'000'000));
      }
    }
    ++(problem_of(made).empty() ? read : refused);
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

// The smallest export that is read, with one statement more.
std::string problem_of_nsight(HostileTraceTest& test, const std::filesystem::path& path, const std::string& change) {
  std::filesystem::remove(path);
  {
    Database database(path, Database::Mode::read_write);
    for (const char* sql :
         {"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
          "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER)",
          "INSERT INTO StringIds VALUES (1, 'gemm')",
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, 1, 1)"})
      Statement(database, sql).run();
    if (!change.empty()) Statement(database, change).run();
  }
  return test.problem_of_file(path);
}

// Figures of operands: neither infinite nor negative, whatever they are.
TEST_F(HostileTraceTest, ImpossibleOperandsCountNothing) {
  const std::string huge = "4611686018427387904";
  std::string many = "[[" + huge;
  for (int i = 0; i < 40; ++i) many += "," + huge;
  many += "]]";
  for (const auto& [name, arguments] : std::initializer_list<std::pair<std::string, std::string>>{
           {"plan::qkv", R"("Input Dims": [[],[]], "Input type": ["",""], "Concrete Inputs": ["inf","inf"])"},
           {"plan::qkv", R"("Input Dims": [[],[]], "Input type": ["",""], "Concrete Inputs": ["1e308","nan"])"},
           {"plan::qkv", R"("Input Dims": [[],[]], "Input type": ["",""], "Concrete Inputs": ["-5","-7"])"},
           {"aten::add", R"("Input Dims": )" + many + R"(, "Input type": ["float"])"},
           {"aten::_foreach_add_", R"("Input Dims": [)" + many + R"(], "Input type": ["TensorList"])"},
           {"aten::mm", R"("Input Dims": [[)" + huge + "," + huge + "],[" + huge + "," + huge +
                            R"(]], "Input type": ["float","float"])"},
           {"aten::mm", R"("Input Dims": [[-2,-3],[-3,5]], "Input type": ["float","float"])"},
           {"aten::bmm", R"("Input Dims": [[-5,-2,3],[5,3,4]], "Input type": ["float","float"])"},
           {"aten::mm", R"("Input Dims": [[2,3],[99,4]], "Input type": ["float","float"])"}}) {
    const std::filesystem::path path = write(trace_of({op(name, 0, 10, arguments), op(name, 10, 10, arguments)}));
    const TraceProfile profile = attribute(read_trace(path).front());
    for (const TracedOperator& each : profile.operators) {
      EXPECT_TRUE(is_missing(each.time.flops)) << arguments;
      EXPECT_TRUE(is_missing(each.bytes) || (each.bytes > 0 && each.bytes < 1e6)) << arguments;
    }
  }
}

TEST_F(HostileTraceTest, LongNamesAndMuchMemoryAreReadBackFromWhatIsKept) {
  std::vector<std::string> events{cpu_step(1, 0, 100), op("aten::mm", 0, 50),
                                  event("cpu_op", "aten::mm", "77", 77, 60, 5)};
  std::string text = event("cpu_op", "aten::gelu", "77", 77, 70, 5);
  text.replace(text.find(R"("tid": 77)"), 9, R"("tid": ")" + std::string(5'000, 't') + '"');
  events.push_back(text);
  for (int i = 1; i <= 9'000; ++i)
    events.push_back(R"({"ph": "i", "name": "[memory]", "pid": 77, "tid": 77, "ts": 5, "args": {"Bytes": )" +
                     std::to_string(std::int64_t{1} << 50) + R"(, "Addr": )" + std::to_string(i) +
                     R"(, "Device Type": 0, "Device Id": -1, "Total Allocated": 5}})");
  const TracedProcess process = attribute_all(read_trace(write(trace_of(events))).front());
  ASSERT_EQ(process.kept.size(), 1U);
  EXPECT_EQ(slice_count(unpack(process.kept.front().packed)), process.kept.front().slices);
}

TEST_F(HostileTraceTest, StepsOfAllDevicesTogetherAreLimited) {
  std::vector<std::string> events;
  for (int i = 0; i < 200; ++i) events.push_back(cpu_step(i, i * 10, 10));
  for (int device = 0; device < 51; ++device)
    events.push_back(event("kernel", "gemm", std::to_string(device), 7, 1, 1900,
                           R"("device": )" + std::to_string(device) + R"(, "stream": 7)"));
  EXPECT_EQ(problem_of(trace_of(events)), "has more than 10,000 steps");
}

// More blocks than are told apart: their work stays in its part of the step.
TEST_F(HostileTraceTest, ThousandsOfBlocksAreNoOptimiser) {
  std::vector<std::string> events;
  for (int i = 0; i < 12'000; ++i) {
    for (const char* name :
         {"aten::layer_norm", "aten::scaled_dot_product_attention", "aten::layer_norm", "aten::gelu"})
      events.push_back(op(name, static_cast<double>(events.size()), 1));
  }
  const TracedProcess process = attribute_all(read_trace(write(trace_of(events))).front());
  for (const AnatomyRow& row : process.anatomy) EXPECT_EQ(row.phase, StepPhase::forward);
}

TEST_F(HostileTraceTest, AGzipBombIsRefusedLongBeforeItEnds) {
  const std::filesystem::path bomb = folder.path() / "bomb.json.gz";
  const gzFile out = gzopen(bomb.c_str(), "wb9");
  ASSERT_NE(out, nullptr);
  gzputs(out, R"({"traceEvents": [)");
  std::string zeros;  // many values: one that is too long is refused anyway
  while (zeros.size() < 1 << 20) zeros += "0,";
  for (int i = 0; i < 300; ++i) gzwrite(out, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(out);
  std::int64_t unpacked = 0;
  try {
    TraceBytes bytes(bomb);
    for (std::string_view piece = bytes.next(); !piece.empty(); piece = bytes.next())
      unpacked += static_cast<std::int64_t>(piece.size());
    ADD_FAILURE() << "all of it was unpacked";
  } catch (const TraceError& error) {
    EXPECT_PRED2(holds, error.what(), "unpacks to more than 200 times its size");
  }
  EXPECT_GE(unpacked, 63 << 20) << "small files may compress as well as they like";
  EXPECT_LT(unpacked, 65 << 20);
  EXPECT_PRED2(holds, problem_of_file(bomb), "unpacks to more than 200 times its size");
}

TEST_F(HostileTraceTest, BrokenNsightTables) {
  const std::filesystem::path path = folder.path() / "report.sqlite";
  EXPECT_EQ(problem_of_nsight(*this, path, ""), "");
  EXPECT_PRED2(holds, problem_of_nsight(*this, path, "DROP TABLE StringIds"), "not an export of Nsight Systems");
  EXPECT_PRED2(holds,
               problem_of_nsight(*this, path, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN start TO begin"),
               "start");
  EXPECT_PRED2(holds, problem_of_nsight(*this, path, "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL"), "holds no kernel");
  EXPECT_PRED2(
      holds,
      problem_of_nsight(*this, path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 9223372036854775807, end = -5"),
      "impossible time");
  EXPECT_PRED2(holds, problem_of_nsight(*this, path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 5"),
               "ends before it begins");
  EXPECT_EQ(
      problem_of_nsight(*this, path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 'x', streamId = NULL"), "");
  // Cut off, and a file that only begins as SQLite does.
  EXPECT_EQ(problem_of_nsight(*this, path, ""), "");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_NE(problem_of_file(path), "");
  EXPECT_NE(problem_of(std::string("SQLite format 3\0", 16) + std::string(5'000, 'x')), "");
}

}  // namespace
}  // namespace stepladder
