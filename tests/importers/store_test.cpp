// Reads stores that the trackers' own writers made, and compares them with the writers' input. By default those in
// tests/importers/stores; STEPLADDER_STORES names a folder of fresh ones (peer_stores_test.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "storage/database/database.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/importers/trackers/store_folder.h"
#include "tests/fuzz/framing.h"
#include "tests/importers/collecting_sink.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
using SortedJson = nlohmann::json;

fs::path stores() {
  const char* fresh = std::getenv("STEPLADDER_STORES");
  return fresh ? fs::path(fresh) : fs::path(STEPLADDER_SOURCE_DIR) / "tests/importers/stores";
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

double number(const SortedJson& value) {
  return value.is_string() ? std::strtod(value.get_ref<const std::string&>().c_str(), nullptr) : value.get<double>();
}

void expect_number(const SortedJson& row, const char* key, double value, double tolerance) {
  SCOPED_TRACE(std::string(key) + " of step " + row.at("step").dump());
  if (!row.contains(key)) {
    EXPECT_TRUE(is_missing(value)) << value;
    return;
  }
  const double expected = number(row.at(key));
  const bool as_special = std::isnan(expected) ? std::isnan(value) : value == expected;
  EXPECT_TRUE(!is_missing(value) && (as_special || std::fabs(value - expected) <= tolerance))
      << value << " should be " << expected;
}

void expect_runs(const CollectingSink& sink, const std::string& name) {
  const SortedJson expected = SortedJson::parse(bytes_of(stores() / (name + ".json")));
  ASSERT_EQ(sink.runs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const SortedJson& want = expected[i];
    const CollectingSink::Told& told = sink.runs[i];
    SCOPED_TRACE(name + ", run " + want.at("title").get<std::string>());
    EXPECT_EQ(told.run.title, want.at("title"));
    EXPECT_EQ(to_string(told.run.status), want.at("status"));
    EXPECT_EQ(told.ladder, want.value("ladder", ""));
    EXPECT_EQ(told.rung, want.value("rung", -1));
    EXPECT_EQ(told.run.recipe.empty() ? SortedJson::object() : SortedJson::parse(told.run.recipe), want.at("config"));
    const std::pair<const char*, double> times[] = {
        {"started_at", told.run.started_at}, {"ended_at", told.run.ended_at}, {"created_at", told.run.created_at}};
    for (const auto& [key, at] : times) {
      if (want.contains(key)) {
        EXPECT_NEAR(at, want.at(key).get<double>(), 1e-3) << key;
      }
    }
    const SortedJson& steps = want.at("steps");
    std::map<std::int64_t, StepRecord> newest;
    for (const StepRecord& record : told.steps) newest[record.step] = record;
    ASSERT_EQ(newest.size(), steps.size());
    for (const SortedJson& row : steps) {
      const StepRecord& record = newest[row.at("step").get<std::int64_t>()];
      EXPECT_EQ(record.step, row.at("step"));
      expect_number(row, "loss", record.loss, 0);
      expect_number(row, "val_loss", record.val_loss, 0);
      expect_number(row, "lr", record.lr, 0);
      expect_number(row, "grad_norm", record.grad_norm, 0);
      expect_number(row, "dt_ms", record.dt_ms, 1e-9);
      if (row.contains("at")) expect_number(row, "at", record.at, 1e-6);
      EXPECT_EQ(record.tokens, row.value("tokens", 0)) << record.step;
    }
  }
}

CollectingSink read(const Importer& importer, const fs::path& file) {
  CollectingSink sink;
  StoreFile input(file);
  EXPECT_TRUE(importer.recognises(input.head(), input.path())) << file;
  importer.read(input, {}, sink);
  return sink;
}

std::string refusal(const Importer& importer, std::string_view bytes) {
  CollectingSink sink;
  MemoryInput input(bytes);
  try {
    importer.read(input, {}, sink);
  } catch (const ImportError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  return names;
}

#define SKIP_WITHOUT(name) \
  if (!fs::exists(stores() / (name))) GTEST_SKIP() << (name) << " was not written here"

TEST(Stores, TensorBoardFolderWithHparamsAndARestart) {
  SKIP_WITHOUT("tb_simple");
  EXPECT_EQ(event_files_in(stores() / "tb_simple").size(), 2U);
  CollectingSink sink;
  read_event_folder(stores() / "tb_simple", sink);
  expect_runs(sink, "tb_simple");
  EXPECT_TRUE(sink.noted("train/accuracy"));
  EXPECT_TRUE(sink.noted("5 steps were logged more than once; the newer count"));
  ASSERT_EQ(sink.runs[0].steps.size(), 45U) << "what the restart replaces is an earlier attempt";
  EXPECT_EQ(sink.runs[0].steps[25].step, 25);
  EXPECT_EQ(sink.runs[0].steps[26].step, 25);
  EXPECT_NE(sink.runs[0].steps[25].loss, sink.runs[0].steps[26].loss);
}

TEST(Stores, TensorBoardTensorsOfEveryFloat) {
  SKIP_WITHOUT("tb_tensor");
  const CollectingSink sink = read(importers::tensorboard(), event_files_in(stores() / "tb_tensor").at(0));
  expect_runs(sink, "tb_tensor");
  EXPECT_TRUE(sink.noted("differences of the wall times"));
}

TEST(Stores, MlflowDatabase) {
  SKIP_WITHOUT("mlflow.db");
  const std::string before = bytes_of(stores() / "mlflow.db");
  const auto files = names_in(stores());
  const CollectingSink sink = read(importers::mlflow(), stores() / "mlflow.db");
  expect_runs(sink, "mlflow");
  EXPECT_TRUE(sink.runs[0].run.name.starts_with("mlflow "));
  EXPECT_EQ(sink.runs[0].run.changed, "what changed");
  EXPECT_TRUE(sink.noted("1 deleted run"));
  EXPECT_EQ(bytes_of(stores() / "mlflow.db"), before);
  EXPECT_EQ(names_in(stores()), files);
}

TEST(Stores, MlflowFolder) {
  SKIP_WITHOUT("mlruns");
  ASSERT_TRUE(is_mlflow_folder(stores() / "mlruns"));
  CollectingSink sink;
  read_mlflow_folder(stores() / "mlruns", sink);
  expect_runs(sink, "mlruns");
}

TEST(Stores, ALinkInMlflowsFolderIsNotReadButNoted) {
  SKIP_WITHOUT("mlruns");
  TemporaryFolder folder;
  fs::copy(stores() / "mlruns", folder.path() / "mlruns", fs::copy_options::recursive);
  std::ofstream(folder.path() / "secret") << "of the reader";
  std::vector<fs::path> params;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "mlruns"))
    if (entry.path().filename() == "params") params.push_back(entry.path());
  ASSERT_EQ(params.size(), 4U);
  for (const fs::path& of_run : params) fs::create_symlink(folder.path() / "secret", of_run / "taken");
  CollectingSink sink;
  read_mlflow_folder(folder.path() / "mlruns", sink);
  ASSERT_EQ(sink.runs.size(), 4U);
  for (const auto& told : sink.runs) EXPECT_EQ(told.run.recipe.find("of the reader"), std::string::npos);
  EXPECT_TRUE(sink.noted("left out 1 link"));
}

TEST(Stores, Trackio) {
  SKIP_WITHOUT("ladder.db");
  const CollectingSink sink = read(importers::trackio(), stores() / "ladder.db");
  expect_runs(sink, "ladder");
}

TEST(Stores, WandbFolder) {
  SKIP_WITHOUT("wandb");
  ASSERT_EQ(wandb_files_in(stores() / "wandb").size(), 2U);
  CollectingSink sink;
  read_wandb_folder(stores() / "wandb", {}, sink);
  expect_runs(sink, "wandb");
  EXPECT_EQ(sink.runs[0].run.params, 124439808);
  EXPECT_EQ(sink.runs[1].run.reason, "the program ended with exit status 1");
}

TEST(Stores, FoldersThatAreStores) {
  SKIP_WITHOUT("tb_simple");
  SKIP_WITHOUT("mlruns");
  SKIP_WITHOUT("wandb");
  const std::pair<const char*, std::size_t> folders[] = {{"tb_simple", 1}, {"mlruns", 4}, {"wandb", 2}};
  for (const auto& [name, runs] : folders) {
    CollectingSink sink;
    ASSERT_TRUE(is_store_folder(stores() / name)) << name;
    read_store_folder(stores() / name, {}, sink);
    EXPECT_EQ(sink.runs.size(), runs) << name;
  }
  EXPECT_FALSE(is_store_folder(stores()));

  TemporaryFolder folder;
  for (const char* run : {"base", "fast/second"}) {
    fs::create_directories(folder.path() / run);
    fs::copy(stores() / "tb_tensor", folder.path() / run);
  }
  ASSERT_TRUE(is_store_folder(folder.path()));
  CollectingSink logs;
  read_store_folder(folder.path(), {}, logs);
  ASSERT_EQ(logs.runs.size(), 2U);
  EXPECT_TRUE(logs.runs[1].run.title.ends_with("fast/second"));
  EXPECT_EQ(logs.runs[1].rung, 1);
  std::ofstream(folder.path() / "train.log") << "step 1 | loss 3\n";
  EXPECT_FALSE(is_store_folder(folder.path())) << "the log would be passed over";
}

// Finding each run's rows by reading the whole table took so long that the file was taken for damaged.
TEST(Stores, ManyRunsWithoutAnIndexAreRead) {
  TemporaryFolder folder;
  constexpr int runs = 20'000;
  {
    Database database(folder / "mlflow.db", Database::Mode::read_write);
    Transaction whole(database);
    database.execute(
        "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);"
        "CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER, "
        "lifecycle_stage "
        "TEXT, experiment_id INTEGER);"
        "CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER);"
        "CREATE TABLE latest_metrics (key TEXT, run_uuid TEXT);"
        "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
        "CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
        "INSERT INTO experiments VALUES (1, 'e');"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) INSERT INTO runs SELECT 'run' || "
        "i, "
        "'n' || i, 'FINISHED', 1000 + i, 2000 + i, 'active', 1 FROM n;"
        "INSERT INTO params SELECT 'lr', run_uuid, run_uuid FROM runs;"
        "INSERT INTO metrics SELECT 'loss', 2.5, start_time, run_uuid, 1, 0 FROM runs;"
        "INSERT INTO metrics SELECT 'loss', 2.25, end_time, run_uuid, 2, 0 FROM runs");
    whole.commit();
  }
  const CollectingSink sink = read(importers::mlflow(), folder / "mlflow.db");
  ASSERT_EQ(sink.runs.size(), std::size_t{runs});
  EXPECT_EQ(sink.runs.back().run.title, "n20000");
  ASSERT_EQ(sink.runs.back().steps.size(), 2u);
  EXPECT_EQ(sink.runs.back().steps[1].loss, 2.25);
  EXPECT_EQ(sink.runs.back().rung, runs - 1);
  EXPECT_NE(sink.runs.back().run.recipe.find("run20000"), std::string::npos);
}

// Each importer recognises only its own store.
TEST(Stores, AreToldApart) {
  SKIP_WITHOUT("mlflow.db");
  const fs::path mlflow = stores() / "mlflow.db";
  const fs::path trackio = stores() / "ladder.db";
  const fs::path wandb = wandb_files_in(stores() / "wandb").at(0);
  const fs::path events = event_files_in(stores() / "tb_tensor").at(0);
  const std::pair<Importer, fs::path> owners[] = {{importers::mlflow(), mlflow},
                                                  {importers::trackio(), trackio},
                                                  {importers::wandb(), wandb},
                                                  {importers::tensorboard(), events}};
  for (const auto& [importer, own] : owners)
    for (const fs::path& file : {mlflow, trackio, wandb, events}) {
      StoreFile input(file);
      EXPECT_EQ(importer.recognises(input.head(), input.path()), file == own) << importer.id << " and " << file;
    }
}

TEST(StoresCutShort, KeepWhatIsWhole) {
  const std::pair<Importer, fs::path> files[] = {
      {importers::tensorboard(), event_files_in(stores() / "tb_tensor").at(0)},
      {importers::wandb(), wandb_files_in(stores() / "wandb").at(0)}};
  for (const auto& [importer, file] : files) {
    const std::string whole = bytes_of(file);
    std::size_t steps_before = 0;
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      CollectingSink sink;
      MemoryInput input(std::string_view(whole).substr(0, size));
      try {
        importer.read(input, {}, sink);
      } catch (const ImportError&) {
        EXPECT_EQ(steps_before, 0U) << importer.id << " refuses " << size << " bytes";
        continue;
      }
      ASSERT_EQ(sink.runs.size(), 1U);
      EXPECT_GE(sink.runs[0].steps.size(), steps_before);
      steps_before = sink.runs[0].steps.size();
    }
    EXPECT_GE(steps_before, 20U) << importer.id;
  }
  const std::string events = bytes_of(files[0].second);
  CollectingSink sink;
  MemoryInput input(std::string_view(events).substr(0, events.size() - 3));
  importers::tensorboard().read(input, {}, sink);
  EXPECT_EQ(sink.runs.at(0).steps.size(), 23U);
  EXPECT_TRUE(sink.noted("in the middle of a record"));
}

TEST(StoresDamaged, LoseOnlyTheirDamagedRecords) {
  std::string bytes = bytes_of(wandb_files_in(stores() / "wandb").at(0));
  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  CollectingSink sink;
  MemoryInput input(bytes);
  importers::wandb().read(input, {}, sink);
  EXPECT_TRUE(sink.noted("damaged"));
  EXPECT_GE(sink.runs.at(0).steps.size(), 10U);

  bytes = bytes_of(event_files_in(stores() / "tb_tensor").at(0));
  bytes[bytes.size() - 8] = static_cast<char>(~bytes[bytes.size() - 8]);  // in the last payload
  CollectingSink events;
  MemoryInput event_input(bytes);
  importers::tensorboard().read(event_input, {}, events);
  EXPECT_TRUE(events.noted("wrong checksum"));
  EXPECT_EQ(events.runs.at(0).steps.size(), 23U);
}

TEST(StoresDamaged, AreRefusedWithASentence) {
  EXPECT_NE(refusal(importers::tensorboard(), "").find("no training metrics"), std::string::npos);
  EXPECT_NE(refusal(importers::tensorboard(), "short").find("shorter"), std::string::npos);
  EXPECT_NE(refusal(importers::tensorboard(), std::string(4096, 'x')).find("checksum"), std::string::npos);
  EXPECT_NE(refusal(importers::wandb(), "").find(":W&B"), std::string::npos);
  EXPECT_NE(refusal(importers::wandb(), std::string(":W&B\xe1\xbe\x09", 7)).find("version 9"), std::string::npos);
  EXPECT_NE(refusal(importers::wandb(), std::string(":W&B\xe1\xbe\0", 7)).find("holds no run"), std::string::npos);
  EXPECT_NE(refusal(importers::mlflow(), std::string("SQLite format 3\0", 16)).find("from a file"), std::string::npos);
}

// Records with right checksums: a step beyond all numbers isn't one, and the next one is counted from those before.
TEST(StoresDamaged, AWandbStepOutOfRangeIsCounted) {
  const auto field = [](int number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const std::string highest = std::string("\x08") + std::string(8, '\xff') + "\x7f";  // field 1: 2^63 - 1
  const std::string loss = field(1, field(1, "loss") + std::string("\x82\x01\x03", 3) + "2.5");
  const std::string history = field(2, field(2, highest) + loss);
  CollectingSink sink;
  const std::string bytes = WandbFile::join({history, history});
  MemoryInput input(bytes);
  importers::wandb().read(input, {}, sink);
  ASSERT_EQ(sink.runs.size(), 1U);
  ASSERT_EQ(sink.runs[0].steps.size(), 2U);
  EXPECT_EQ(sink.runs[0].steps[1].step, sink.runs[0].steps[0].step + 1);
}

// A database with changes in a log beside it is read with them; log and folder stay unchanged.
TEST(Stores, DatabaseWithALogBesideIt) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "live.db";
  Database writer(file, Database::Mode::read_write);
  writer.use_write_ahead_log();
  writer.execute(
      "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);"
      "INSERT INTO metrics VALUES (1, '2026-01-01T00:00:00', 'a', 1, '{\"loss\": \"NaN\", \"dt_ms\": 12}'),"
      "                           (2, '2026-01-01T00:00:01', 'a', 2, '{\"loss\": 2.5}')");
  const auto files = names_in(folder.path());
  const std::string log = bytes_of(file.string() + "-wal");
  ASSERT_FALSE(log.empty());
  const CollectingSink sink = read(importers::trackio(), file);
  ASSERT_EQ(sink.runs.size(), 1U);
  ASSERT_EQ(sink.runs[0].steps.size(), 2U);
  EXPECT_TRUE(std::isnan(sink.runs[0].steps[0].loss));
  EXPECT_FALSE(is_missing(sink.runs[0].steps[0].loss));
  EXPECT_EQ(sink.runs[0].steps[0].dt_ms, 12);
  EXPECT_EQ(sink.runs[0].steps[1].loss, 2.5);
  EXPECT_EQ(names_in(folder.path()), files);
  EXPECT_EQ(bytes_of(file.string() + "-wal"), log);
}

// A file that could run forever or fill the memory isn't a store.
TEST(StoresHostile, ViewsAndComputedColumnsAreNoTables) {
  TemporaryFolder folder;
  const fs::path view = folder.path() / "view.db";
  Database(view, Database::Mode::read_write)
      .execute(
          "CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
          "SELECT i AS id, '' AS timestamp, 'a' AS run_name, i AS step, '{}' AS metrics FROM n");
  const fs::path computed = folder.path() / "computed.db";
  Database(computed, Database::Mode::read_write)
      .execute(
          "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER,"
          "metrics TEXT AS (hex(zeroblob(900000000))))");
  for (const fs::path& file : {view, computed}) {
    StoreFile input(file);
    EXPECT_FALSE(importers::trackio().recognises(input.head(), input.path())) << file;
  }
}

}  // namespace
}  // namespace stepladder
