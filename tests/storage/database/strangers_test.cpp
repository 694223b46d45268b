// Files that another program has changed, on purpose or not.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "../temporary_folder.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/database/run_store.h"
#include "storage/database/schema.h"
#include "storage/database/schema_check.h"
#include "storage/importers/importer.h"
#include "tests/importers/collecting_sink.h"

namespace stepladder {
namespace {

using Mode = RunStore::Mode;

std::string refusal_of_stranger(const std::filesystem::path& file, Mode mode = Mode::read_write) {
  return complaint<StorageError>([&] { RunStore::open(file, mode); });
}

// As another program would, without our limits.
void as_stranger(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &connection), SQLITE_OK);
  char* problem = nullptr;
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &problem), SQLITE_OK) << sql << ": " << problem;
  sqlite3_free(problem);
  sqlite3_close(connection);
}

void make_strange_project(const std::filesystem::path& file) {
  RunStore::open(file).insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 2}});
}

// What an import says that takes the runs of a file; empty if it takes all of them.
std::string refusal_of_import(const std::filesystem::path& file, CollectingSink& sink) {
  std::ifstream input(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(input), {}};
  MemoryInput project(bytes, file);
  return complaint<std::runtime_error>([&] {
    const Importer& importer = importer_for(project, {});
    EXPECT_EQ(importer.id, "stepladder");
    importer.read(project, {}, sink);
  });
}

struct Case {
  const char* sql;
  const char* said;
  const char* said_by_import = "";
};

const std::vector<Case>& changes_by_strangers() {
  static const std::vector<Case> cases = {
      {"CREATE TRIGGER t AFTER INSERT ON steps BEGIN DELETE FROM steps; END",
       "it has a trigger `t` that isn't Stepladder's"},
      {"CREATE TABLE own (x); CREATE TRIGGER t AFTER INSERT ON own BEGIN DELETE FROM steps; END",
       "it has a trigger `t` that isn't Stepladder's"},
      {"CREATE VIEW mine AS SELECT * FROM runs", "it has a view `mine` that isn't Stepladder's"},
      {"CREATE VIRTUAL TABLE words USING fts5(x)", "it has a virtual table `words` that isn't Stepladder's (and "},
      {"DROP VIEW IF EXISTS latest_steps; ALTER TABLE runs RENAME TO real_runs; CREATE VIEW runs AS WITH RECURSIVE "
       "n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT real_runs.* FROM real_runs, n",
       " isn't the one that Stepladder creates", "has something else in place of the table `runs`, which is not read"},
      {"ALTER TABLE runs ADD COLUMN big AS (hex(zeroblob(100000000)))",
       "its table `runs` isn't the one that Stepladder creates"},
      {"ALTER TABLE settings RENAME COLUMN value TO valu",
       "its table `settings` isn't the one that Stepladder creates"},
      {"DROP TABLE settings; CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL CHECK (length(value) > "
       "0)) WITHOUT ROWID",
       "its table `settings` isn't the one that Stepladder creates"},
      {"DROP TABLE summaries", "its table `summaries` is missing"},
      {"CREATE UNIQUE INDEX one ON runs(name)", "it has a unique index `one` that isn't Stepladder's"},
      {"CREATE INDEX slow ON runs(hex(zeroblob(length(name) * 1000000)))",
       "it has a computed index `slow` that isn't Stepladder's"},
      {"CREATE INDEX part ON runs(name) WHERE length(name) > 3",
       "it has a computed index `part` that isn't Stepladder's"},
      {"DROP INDEX runs_not_over; CREATE INDEX runs_not_over ON runs(name)",
       "its index `runs_not_over` isn't the one that Stepladder creates"},
      {"CREATE TABLE mine (run INTEGER REFERENCES runs(id) ON DELETE RESTRICT)",
       "it has a table `mine` that isn't Stepladder's and refers to other tables"},
      {"CREATE VIEW \"a\x1b[2J\" AS SELECT 1", "it has a view `a?[2j` that isn't Stepladder's"},
  };
  return cases;
}

TEST(Strangers, are_refused_with_a_sentence_that_names_them_and_the_way_out) {
  for (const Case& each : changes_by_strangers()) {
    SCOPED_TRACE(each.sql);
    TemporaryFolder folder;
    const auto file = folder / "a.stepladder";
    make_strange_project(file);
    as_stranger(file, each.sql);
    for (const Mode mode : {Mode::read_write, Mode::read_only}) {
      const std::string said = refusal_of_stranger(file, mode);
      EXPECT_EQ(said.find(file.string() + " was changed by another program: "), 0u) << said;
      EXPECT_NE(said.find(each.said), std::string::npos) << said;
      EXPECT_TRUE(said.ends_with(". Import it to take its runs into your own file.")) << said;
    }
  }
}

// Figures that follow from no step.
TEST(Strangers, cached_figures_that_they_wrote_are_not_believed) {
  TemporaryFolder folder;
  const auto file = folder / "a.stepladder";
  const auto figures = [&](Mode mode) {
    RunStore store = RunStore::open(file, mode);
    const stepladder::Run run = store.runs().at(0);
    const std::vector<double> all{store.summary(run).loss_last, store.runs_with_summaries().at(0).summary.dt_ms_median,
                                  store.metrics().of_run(run.id).at(0).figures.last};
    return all;
  };
  std::vector<StepRecord> steps;
  for (int i = 1; i <= 50; ++i) steps.push_back({.step = i, .loss = 5 - 0.01 * i, .dt_ms = 100});
  {
    RunStore store = RunStore::open(file);
    const RunId run = store.insert_finished({.name = "r"}, steps);
    store.metrics().describe(run, {.name = "acc"});
    store.metrics().append(run, "acc", std::vector<MetricPoint>{{1, 0.25}, {2, 0.5}});
    store.metrics().of_run(run);
  }
  const std::vector<double> true_ones = figures(Mode::read_write);
  EXPECT_NEAR(true_ones[0], 4.5, 1e-9);
  EXPECT_EQ(true_ones[1], 100);
  const auto count = [&](const char* sql) { return Database(file, Database::Mode::read_only).integer(sql); };
  ASSERT_EQ(count("SELECT count(*) FROM summaries"), 1);
  ASSERT_EQ(count("SELECT count(*) FROM metric_figures"), 1);
  for (const char* sql :
       {"UPDATE summaries SET dt_ms_median = 1, loss_last = 0.5", "UPDATE summaries SET nan_mask = 0, dt_ms_median = 1",
        "UPDATE metric_figures SET last = 0.99", "UPDATE metric_figures SET format = 1, last = 0.99"}) {
    as_stranger(file, sql);
    EXPECT_EQ(figures(Mode::read_only), true_ones) << sql;
    EXPECT_EQ(figures(Mode::read_write), true_ones) << sql;
  }
  // Another file has other seals, but those of a run.
  std::filesystem::copy_file(file, folder / "b.stepladder");
  std::filesystem::rename(folder / "b.stepladder", file);
  EXPECT_EQ(figures(Mode::read_write), true_ones);
}

TEST(Strangers, the_way_out_is_an_import_of_their_plain_tables) {
  for (const Case& each : changes_by_strangers()) {
    SCOPED_TRACE(each.sql);
    TemporaryFolder folder;
    const auto file = folder / "a.stepladder";
    make_strange_project(file);
    as_stranger(file, each.sql);
    CollectingSink sink;
    EXPECT_EQ(refusal_of_import(file, sink), each.said_by_import);
    if (*each.said_by_import) continue;
    ASSERT_EQ(sink.runs.size(), 1u);
    EXPECT_EQ(sink.runs[0].run.name, "r");
    ASSERT_EQ(sink.runs[0].steps.size(), 1u);
    EXPECT_EQ(sink.runs[0].steps[0].loss, 2);
  }
}

TEST(Strangers, what_stands_in_place_of_a_table_is_not_imported) {
  for (const char* sql :
       {"ALTER TABLE steps RENAME TO other; CREATE VIEW steps AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + "
        "1 FROM n) SELECT 1 AS run_id, i AS step FROM n",
        "DROP TABLE curation; CREATE VIRTUAL TABLE curation USING fts5(run_id, deleted_at)"}) {
    SCOPED_TRACE(sql);
    TemporaryFolder folder;
    make_strange_project(folder / "a.stepladder");
    as_stranger(folder / "a.stepladder", std::string("DROP VIEW latest_steps; ") + sql);
    CollectingSink sink;
    EXPECT_TRUE(refusal_of_import(folder / "a.stepladder", sink).starts_with("has something else in place of"));
    EXPECT_TRUE(sink.runs.empty());
  }
}

TEST(Strangers, plain_tables_and_indices_of_the_user_may_stay) {
  TemporaryFolder folder;
  const auto file = folder / "a.stepladder";
  make_strange_project(file);
  as_stranger(file,
              "CREATE TABLE our_lab (name TEXT PRIMARY KEY, cores INTEGER); CREATE INDEX by_name ON runs(name COLLATE "
              "NOCASE, id DESC); ANALYZE");
  EXPECT_EQ(refusal_of_stranger(file), "");
  EXPECT_EQ(refusal_of_stranger(file, Mode::read_only), "");
}

TEST(Strangers, files_of_every_earlier_version_open) {
  for (std::size_t version = 0; version <= migrations().size(); ++version) {
    SCOPED_TRACE(version);
    TemporaryFolder folder;
    const auto file = folder / "a.stepladder";
    {
      Database database(file, Database::Mode::read_write);
      Transaction whole(database);
      for (std::size_t i = 0; i < version; ++i) database.execute(migrations()[i]);
      database.execute("PRAGMA application_id = " + std::to_string(application_id) +
                       "; PRAGMA user_version = " + std::to_string(version));
      whole.commit();
    }
    EXPECT_EQ(refusal_of_stranger(file), "");
    EXPECT_EQ(refusal_of_stranger(file, Mode::read_only), "");
  }
}

TEST(Strangers, an_older_file_with_a_table_whose_name_is_needed_says_what_to_do) {
  for (const auto& [version, name] : {std::pair<std::size_t, std::string>{16, "machines"},
                                      {16, "Far_Runs"},
                                      {12, "metrics"},
                                      {9, "machines"},
                                      {3, "curation"}}) {
    SCOPED_TRACE(name + " in version " + std::to_string(version));
    TemporaryFolder folder;
    const auto file = folder / "a.stepladder";
    {
      Database database(file, Database::Mode::read_write);
      Transaction whole(database);
      for (std::size_t i = 0; i < version; ++i) database.execute(migrations()[i]);
      database.execute("PRAGMA application_id = " + std::to_string(application_id) +
                       "; PRAGMA user_version = " + std::to_string(version));
      database.execute("CREATE TABLE " + name + " (of_mine TEXT); INSERT INTO " + name + " VALUES ('kept')");
      whole.commit();
    }
    const std::string refusal = refusal_of_stranger(file);
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    EXPECT_NE(refusal.find("`" + lower + "`"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("RENAME TO my_" + lower), std::string::npos) << refusal;
    {
      Database database(file, Database::Mode::read_write);
      EXPECT_EQ(database.integer("PRAGMA user_version"), static_cast<std::int64_t>(version));
      EXPECT_EQ(database.integer("SELECT count(*) FROM " + name + " WHERE of_mine = 'kept'"), 1);
      database.execute("ALTER TABLE " + lower + " RENAME TO my_" + lower);
    }
    EXPECT_EQ(refusal_of_stranger(file), "") << "it opens once the table has another name";
    EXPECT_EQ(Database(file, Database::Mode::read_only).integer("SELECT count(*) FROM my_" + lower), 1);
  }
}

TEST(Strangers, an_older_file_with_a_trigger_is_not_brought_up_to_date) {
  TemporaryFolder folder;
  const auto file = folder / "a.stepladder";
  {
    Database database(file, Database::Mode::read_write);
    database.execute(migrations()[0]);
    database.execute("PRAGMA user_version = 1; PRAGMA application_id = " + std::to_string(application_id));
  }
  as_stranger(file, "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM runs; END");
  EXPECT_NE(refusal_of_stranger(file).find("a trigger `t`"), std::string::npos);
  EXPECT_EQ(Database(file, Database::Mode::read_only).integer("PRAGMA user_version"), 1);
}

TEST(Strangers, a_definition_is_compared_without_what_does_not_count) {
  EXPECT_EQ(normalised_definition("CREATE TABLE \"T\" ( a INTEGER, -- first\n [B] TEXT DEFAULT 'x''Y' /* c */ )"),
            normalised_definition("create table t(A integer,`b` text default 'x''Y')"));
  EXPECT_NE(normalised_definition("CREATE TABLE t (a DEFAULT 'x')"),
            normalised_definition("CREATE TABLE t (a DEFAULT 'X')"));
  EXPECT_NE(normalised_definition("CREATE TABLE t (a b)"), normalised_definition("CREATE TABLE t (ab)"));
  EXPECT_NE(normalised_definition("CREATE TABLE t (a DEFAULT 'x')"),
            normalised_definition("CREATE TABLE t (a DEFAULT x)"));
}

TEST(Strangers, counts_and_steps_beyond_any_real_one_are_bounded) {
  const TemporaryFolder folder;
  const auto file = folder / "f.db";
  make_strange_project(file);
  as_stranger(
      file,
      "INSERT INTO steps (run_id, step, loss) VALUES (1, 9223372036854775807, 1), (1, -9223372036854775807, 1), "
      "(1, 1000000000000000, 1); UPDATE runs SET planned_steps = 9223372036854775807, tokens_per_step = "
      "-9223372036854775808; UPDATE summaries SET last_step = 9223372036854775807, steps = 9223372036854775807");
  RunStore store = RunStore::open(file);
  const stepladder::Run run = store.existing_run(1);
  EXPECT_EQ(run.planned_steps, 1'000'000'000'000'000);
  EXPECT_EQ(run.tokens_per_step, -1'000'000'000'000'000);
  EXPECT_EQ(store.series(1).step, (std::vector<std::int64_t>{1, 1'000'000'000'000'000}));
  EXPECT_EQ(store.summary(run).last_step, 1'000'000'000'000'000);
  EXPECT_EQ(store.excerpt(1, 10).step.front(), 1);
  EXPECT_EQ(store.recorded_steps(1).last_step, 1'000'000'000'000'000);
}

TEST(Strangers, numbers_of_a_recipe_are_bounded) {
  const stepladder::Run run{
      .recipe = R"({"batch":9223372036854775807,"heads":9223372036854775807,"devices":-9223372036854775808})"};
  const RecipeFacts facts = recipe_facts(run);
  EXPECT_EQ(facts.batch * facts.heads, 1'000'000'000'000'000'000);
  EXPECT_EQ(facts.devices, 1);
}

TEST(Strangers, texts_in_the_place_of_times_end_a_reading) {
  const TemporaryFolder folder;
  const auto file = folder / "f.db";
  make_strange_project(file);
  as_stranger(file,
              "INSERT INTO lanes (run_id, at, step) VALUES (1, 1.0, 1), (1, 'x', 2); "
              "DELETE FROM summaries");
  RunStore store = RunStore::open(file);
  EXPECT_EQ(store.recordings().system_metrics(1).size(), 1u);
  EXPECT_EQ(store.summary(store.existing_run(1)).steps, 1);
}

TEST(Strangers, what_no_measurement_gives_is_0_where_a_time_must_be) {
  const TemporaryFolder folder;
  const auto file = folder / "f.db";
  make_strange_project(file);
  as_stranger(
      file,
      "INSERT INTO profiles VALUES (1, 1.0, 1); INSERT INTO operators (run_id, part, name, shapes, calls, self_ms) "
      "VALUES (1, '', 'a', '', 1, 9e999), (1, '', 'b', '', 1, 2), (1, '', 'c', '', 'x', -9e999)");
  const StepProfile profile = RunStore::open(file).recordings().profile(1);
  ASSERT_EQ(profile.operators.size(), 3u);
  for (const OperatorTime& each : profile.operators) EXPECT_EQ(each.self_ms, each.name == "b" ? 2 : 0) << each.name;
}

// Twenty pages, each of which names the next one a hundred times: 100^20 rows.
TEST(Strangers, a_file_whose_pages_repeat_without_end_is_damaged_and_takes_no_memory) {
  TemporaryFolder folder;
  const auto file = folder / "a.stepladder";
  {
    RunStore store = RunStore::open(file);
    for (int run = 0; run < 200; ++run)
      store.create_run({.name = std::string(100, 'x'), .status = RunStatus::finished});
  }
  int root = 0;
  std::size_t page_size = 0;
  {
    Database database(file, Database::Mode::read_only);
    root = static_cast<int>(database.integer("SELECT rootpage FROM sqlite_master WHERE name = 'runs'"));
    page_size = static_cast<std::size_t>(database.integer("PRAGMA page_size"));
  }
  std::ifstream input(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(input), {}};
  const auto u16 = [&](std::size_t at) {
    return static_cast<unsigned char>(bytes[at]) << 8 | static_cast<unsigned char>(bytes[at + 1]);
  };
  const auto put_page = [&](std::size_t at, std::uint32_t page) {
    for (int i = 0; i < 4; ++i) bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(page >> (24 - 8 * i));
  };
  const std::size_t top = static_cast<std::size_t>(root - 1) * page_size;
  ASSERT_EQ(bytes[top], 5) << "the table of runs should have an inner page";
  const int cells = u16(top + 3);
  ASSERT_GT(cells, 20);
  std::uint32_t leaf = 0;
  for (int i = 0; i < 4; ++i)
    leaf = leaf << 8 | static_cast<unsigned char>(
                           bytes[top + static_cast<std::size_t>(u16(top + 12)) + static_cast<std::size_t>(i)]);
  const std::string inner = bytes.substr(top, page_size);
  std::uint32_t pages = static_cast<std::uint32_t>(bytes.size() / page_size);
  for (int level = 0; level < 12; ++level) {
    const std::size_t base = level == 0 ? top : bytes.size();
    if (level > 0) bytes += inner, ++pages;
    const std::uint32_t next = level == 11 ? leaf : pages + 1;
    for (int cell = 0; cell < cells; ++cell)
      put_page(base + static_cast<std::size_t>(u16(base + 12 + 2 * static_cast<std::size_t>(cell))), next);
    put_page(base + 8, next);
  }
  put_page(28, pages);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  const std::string said = complaint<StorageError>([&] { RunStore::open(file, Mode::read_only).runs(); });
  EXPECT_EQ(said, file.string() + " is damaged: reading it would never end");
}

TEST(Strangers, a_long_statement_over_a_sound_file_is_not_cut_short) {
  TemporaryFolder folder;
  const auto file = folder / "a.stepladder";
  {
    RunStore store = RunStore::open(file);
    std::vector<StepRecord> steps;
    for (int step = 1; step <= 20'000; ++step) steps.push_back({.step = step, .loss = 1.0 / step, .dt_ms = 1});
    store.insert_finished({.name = "r"}, steps);
  }
  Database database(file, Database::Mode::read_write);
  EXPECT_EQ(database.integer("SELECT count(*) FROM (SELECT loss, row_number() OVER (ORDER BY loss) FROM latest_steps)"),
            20'000);
  EXPECT_EQ(database.text("PRAGMA integrity_check"), "ok");
  EXPECT_NE(
      complaint<StorageError>([&] {
        database.integer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
      }).find("would never end"),
      std::string::npos);
  EXPECT_EQ(database.integer("SELECT count(*) FROM steps"), 20'000) << "the next statement has its own time";
}

TEST(Opening, a_new_file_can_be_read_by_its_owner_only) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  store.create_ladder({.name = "l"});
  for (const char* ending : {"", "-wal", "-shm"}) {
    struct stat status {};
    ASSERT_EQ(stat((file.string() + ending).c_str(), &status), 0) << ending;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << ending;
  }
}

TEST(Opening, a_path_that_is_too_long_is_said_to_be) {
  TemporaryFolder folder;
  auto file = folder.path();
  while (file.string().size() < 400) file /= std::string(40, 'd');
  const std::size_t rest = 504 - file.string().size() - 1;
  { RunStore::open(file / std::string(rest, 'f')).create_ladder({.name = "l"}); }
  const auto longer = file / std::string(rest + 1, 'f');
  const std::string said = refusal_of_stranger(longer);
  EXPECT_EQ(said, "the database's path has 505 bytes, of which SQLite takes at most 504; choose a shorter one: " +
                      longer.string());
  EXPECT_FALSE(std::filesystem::exists(longer));
}

TEST(Strangers, ALogOfHolesHoldsNobodyUp) {
  const TemporaryFolder folder;
  make_strange_project(folder / "a.db");
  const std::filesystem::path log = folder / "a.db-wal";
  std::ofstream(log) << "x";
  std::filesystem::resize_file(log, std::uintmax_t{500} << 30);
  EXPECT_NE(refusal_of_stranger(folder / "a.db").find("nearly all holes"), std::string::npos);
}

// SQLite would remove the file that the end of such a journal names.
TEST(Strangers, AJournalThatNamesAnotherFileRemovesNothing) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "a.db", victim = folder / "victim";
  make_strange_project(file);
  std::ofstream(victim) << "precious";
  const auto big_endian = [](std::size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  const std::string magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8), name = victim.string();
  std::size_t sum = 0;
  for (const char c : name) sum += static_cast<std::size_t>(static_cast<signed char>(c));
  std::string head = magic + big_endian(0) + big_endian(0) + big_endian(std::filesystem::file_size(file) / 1024) +
                     big_endian(512) + big_endian(1024);
  head.resize(512);
  for (const Mode mode : {Mode::read_write, Mode::read_only}) {
    std::ofstream(file.string() + "-journal", std::ios::binary)
        << head << big_endian((1u << 30) / 1024 + 1) << name << big_endian(name.size()) << big_endian(sum & 0xffffffff)
        << magic;
    EXPECT_NE(refusal_of_stranger(file, mode).find("a.db-journal would remove another file"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(victim));
  }
  std::filesystem::remove(file.string() + "-journal");
  for (const char* ending : {"-wal", "-shm", "-journal"}) {
    const std::filesystem::path beside = file.string() + ending;
    std::filesystem::remove(beside);
    std::filesystem::create_hard_link(victim, beside);
    EXPECT_NE(refusal_of_stranger(file).find("is also another file by a hard link"), std::string::npos) << ending;
    EXPECT_EQ(std::filesystem::file_size(victim), 8u);
    std::filesystem::remove(beside);
  }
  std::filesystem::create_symlink(victim, file.string() + "-journal");
  EXPECT_NE(refusal_of_stranger(file).find("is not a regular file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(victim));
}

}  // namespace
}  // namespace stepladder
