// Reads and judges a pool for the Record view on another thread. A stamp of files and sizes is taken before reading, so
// that a log that is written meanwhile causes another reading.
#include "app/desktop/models/record_view.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/record/pool_source.h"
#include "app/runs/run_filter.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

// Numbers of runs, or one name as it is.
std::vector<std::string> names_in(const std::string& text) {
  if (text.find_first_not_of("0123456789 ") != std::string::npos) return {text};
  std::istringstream words(text);
  std::vector<std::string> names;
  for (std::string word; words >> word;) names.push_back(word);
  return names;
}

// The user's own ones hide those that come with the program. One that can't be read is left out until it is asked for.
std::vector<RecordRule> all_rules(const std::filesystem::path& assets) {
  std::map<std::string, RecordRule> rules;
  for (const std::filesystem::path& folder : {assets / "rules", user_rules_folder()}) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() != ".json") continue;
      try {
        rules[it->path().stem().string()] = read_record_rule(it->path());
      } catch (const RuleError&) {
        continue;
      }
    }
  }
  std::vector<RecordRule> list;
  for (auto& [name, rule] : rules) list.push_back(std::move(rule));
  return list;
}

// The folders in `folder` that hold logs, by name.
std::vector<std::string> pools_within(const std::string& folder) {
  constexpr std::size_t most = 6;
  std::vector<std::string> pools;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    try {
      if (it->is_directory(error) && !it->is_symlink(error) && !log_files(it->path()).logs.empty())
        pools.push_back(it->path().string());
    } catch (const StorageError&) {
      continue;  // no log, or not to be read
    }
  }
  std::ranges::sort(pools);
  if (pools.size() > most) pools.resize(most);
  return pools;
}

// Changes whenever a log or the database is written, a log is added or goes.
std::size_t stamp_of(const RecordQuestion& question, const std::filesystem::path& database) {
  std::size_t stamp = 0;
  const auto add = [&stamp](std::size_t part) { stamp = stamp * 1'000'003 + part; };
  const auto add_file = [&](const std::filesystem::path& file) {
    std::error_code error;
    add(std::hash<std::string>{}(file.string()));
    add(static_cast<std::size_t>(std::filesystem::file_size(file, error)));
    add(static_cast<std::size_t>(std::filesystem::last_write_time(file, error).time_since_epoch().count()));
  };
  for (const std::string& name : {question.pool, question.baseline}) {
    std::error_code error;
    if (name.empty()) continue;
    if (std::filesystem::exists(name, error)) {
      try {
        for (const std::filesystem::path& file : log_files(name).logs) add_file(file);
      } catch (const StorageError&) {
        add(1);  // a folder without a log
      }
    } else {
      add_file(database);
      add_file(database.string() + "-wal");
    }
  }
  return stamp;
}

void judge(RecordView& view, const std::filesystem::path& database, const std::filesystem::path& assets) {
  if (!view.asked.rule.empty()) {
    view.rule = find_record_rule(view.asked.rule, assets);
  } else {
    const LogQuestion any;
    const SampleFigures found = figures_of(final_values(read_pool(names_in(view.asked.pool), any, database)));
    if (const RecordRule* nearest = nearest_rule(view.rules, any.metric, found.mean)) view.rule = *nearest;
  }
  const std::optional<RecordRule>& rule = view.rule;
  const LogQuestion question =
      rule ? LogQuestion{rule->metric, rule->final_line, !is_missing(rule->time_limit_s)} : LogQuestion{};
  const RecordPool pool = read_pool(names_in(view.asked.pool), question, database);
  std::optional<RecordPool> baseline;
  if (!view.asked.baseline.empty()) baseline = read_pool(names_in(view.asked.baseline), question, database);
  view.claim = judge_record(pool, baseline ? &*baseline : nullptr, rule, {.systems_only = view.asked.systems_only});
  const RecordRule none;
  for (const ArrivedRun& run : runs_as_they_arrived(pool, baseline ? &*baseline : nullptr, rule ? *rule : none))
    view.dots.push_back({std::filesystem::path(pool.logs[run.log].file).filename().string(), run.value, run.time_s,
                         rule ? run.p : missing});
}

}  // namespace

RecordView record_view(const RecordQuestion& question, const std::filesystem::path& database,
                       const std::filesystem::path& assets) {
  RecordView view{.asked = question};
  view.rules = all_rules(assets);
  try {
    view.published = read_published_records(assets / "records" / "modded-nanogpt.json");
  } catch (const std::exception& error) {
    view.published_problem = error.what();
  }
  if (question.pool.empty()) return view;
  view.stamp = stamp_of(question, database);  // before reading: what is written meanwhile is read again
  try {
    judge(view, database, assets);
  } catch (const std::exception& error) {  // UsageError, FilterError, RuleError, StorageError
    view.problem = error.what();
    view.instead = pools_within(question.pool);
  }
  return view;
}

bool RecordReader::update(std::shared_ptr<const RecordView>& into, const std::filesystem::path& database, bool is_shown,
                          std::chrono::milliseconds patience) {
  constexpr std::chrono::seconds between_checks(1);
  const bool is_new = asked_ != started_;
  const bool checks = is_shown && into && !into->asked.pool.empty() && Clock::now() >= next_check_;
  if ((is_new || checks) && !background_.is_pending()) {
    started_ = asked_;
    background_.start({.asked = {started_}, .data = {}},
                      [question = wanted_, database, is_new, before = into](JobControl&) {
                        if (!is_new && stamp_of(question, database) == before->stamp) return before;
                        return std::make_shared<const RecordView>(record_view(question, database, assets_folder()));
                      });
  }
  const RecordView* const before = into.get();
  if (!background_.take(into, patience)) return false;
  next_check_ = Clock::now() + between_checks;
  return into.get() != before && asked_ == started_;
}

}  // namespace stepladder
