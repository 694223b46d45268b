#include "app/cli/profile/pass_command.h"

#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>

#include "app/cli/profile/call_report.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/format.h"
#include "app/open_store.h"
#include "storage/database/traces/pass_store.h"

namespace stepladder {
namespace {

struct PassOptions {
  std::vector<std::int64_t> ids;
  bool csv = false;
  bool removes = false;
};

std::vector<CallRow> rows_of(const StoredPasses& passes) {
  std::vector<CallTimes> times;
  for (const StoredCalls& each : passes.rows) {
    if (!each.ms.empty())
      times.push_back(
          {.computation = each.computation, .precision = each.precision, .warmup = each.warmup, .ms = each.ms});
  }
  return call_rows(std::move(times));
}

std::string head_of(const StoredPasses& passes) {
  return "passes " + std::to_string(passes.id) + ", " + passes.name + ": " + passes.model + ", batch " +
         std::to_string(passes.batch) + " x " + std::to_string(passes.seq) + " tokens, vocabulary " +
         std::to_string(passes.vocab) + ", on " + passes.hardware +
         (passes.threads > 0 ? ", " + std::to_string(passes.threads) + " threads" : "") +
         (passes.host.empty() ? "" : ", " + passes.host) + ", " + local_time_text(passes.measured_at) +
         (passes.is_synced ? "" : "; flagged no-sync");
}

Json json_of(const StoredPasses& passes) {
  return {{"id", passes.id},
          {"name", passes.name},
          {"measured_at", passes.measured_at},
          {"host", passes.host},
          {"hardware", passes.hardware},
          {"device", passes.device},
          {"model", passes.model},
          {"batch", passes.batch},
          {"seq", passes.seq},
          {"vocab", passes.vocab},
          {"threads", passes.threads > 0 ? Json(passes.threads) : Json()},
          {"flags", passes.is_synced ? Json::array() : Json::array({"no-sync"})}};
}

StoredPasses find(RunStore& store, std::int64_t id) {
  std::optional<StoredPasses> found = store.traces().passes().find(id);
  if (!found)
    throw UsageError("there are no passes " + std::to_string(id) + "; `stepladder profile passes` lists them");
  return std::move(*found);
}

int list(const CommonOptions& common) {
  std::optional<RunStore> store = open_to_read(common.database);
  const std::vector<StoredPasses> all = store ? store->traces().passes().list() : std::vector<StoredPasses>();
  if (common.json) {
    Json rows = Json::array();
    for (const StoredPasses& each : all) rows.push_back(json_of(each));
    print(rows);
  } else if (all.empty()) {
    std::cerr << "stepladder: there are no passes; `stepladder profile` times them\n";
  } else {
    std::vector<std::vector<std::string>> cells{{"passes", "name", "model", "batch", "hardware", "host", "measured"}};
    for (const StoredPasses& each : all)
      cells.push_back({std::to_string(each.id), each.name, each.model,
                       std::to_string(each.batch) + " x " + std::to_string(each.seq), each.hardware, each.host,
                       local_time_text(each.measured_at)});
    std::cout << table(cells, {true, false, false, true, false, false, false});
  }
  return exit_done;
}

int show(const StoredPasses& passes, const PassOptions& options, const CommonOptions& common) {
  const std::vector<CallRow> rows = rows_of(passes);
  if (common.json) {
    Json shown = json_of(passes);
    shown["rows"] = rows_json(rows, passes.is_synced);
    print(shown);
    return exit_done;
  }
  if (options.csv) {
    std::cout << rows_csv(rows);
    return exit_done;
  }
  std::cout << head_of(passes) << "\n\n" << rows_table(rows) << "\n";
  for (const std::string& lesson : lessons_of(rows)) std::cout << lesson << "\n";
  return exit_done;
}

struct ComparedRow {
  CallRow before, after;
  double factor() const { return before.median_ms / after.median_ms; }
  // Whether the means differ by more than twice the error of their difference.
  bool is_clear() const {
    const auto error = [](const CallRow& row) {
      return row.std_ms / std::sqrt(static_cast<double>(row.times.ms.size()));
    };
    return before.times.ms.size() > 2 && after.times.ms.size() > 2 &&
           std::fabs(before.mean_ms - after.mean_ms) > 2 * std::hypot(error(before), error(after));
  }
};

std::vector<ComparedRow> compared(const StoredPasses& before, const StoredPasses& after) {
  std::map<std::tuple<std::string, std::string, int>, CallRow> known;
  for (CallRow& row : rows_of(before))
    known.emplace(std::tuple(row.times.computation, row.times.precision, row.times.warmup), row);
  std::vector<ComparedRow> rows;
  for (CallRow& row : rows_of(after)) {
    const auto found = known.find(std::tuple(row.times.computation, row.times.precision, row.times.warmup));
    if (found != known.end()) rows.push_back({found->second, std::move(row)});
  }
  return rows;
}

// What makes the two hard to compare, in a sentence; empty: nothing.
std::string warning_of(const StoredPasses& before, const StoredPasses& after) {
  std::string differs;
  const auto add = [&](bool is_different, const char* what) {
    if (is_different) differs += (differs.empty() ? "" : ", ") + std::string(what);
  };
  add(before.model != after.model, "models");
  add(before.batch != after.batch || before.seq != after.seq, "batches");
  add(before.vocab != after.vocab, "vocabularies");
  add(before.is_synced != after.is_synced, "clocks (one is flagged no-sync)");
  return differs.empty() ? "" : "These have different " + differs + ", so the factors compare more than the machines.";
}

int compare(const StoredPasses& before, const StoredPasses& after, const CommonOptions& common) {
  const std::vector<ComparedRow> rows = compared(before, after);
  const std::string warning = warning_of(before, after);
  if (common.json) {
    Json list = Json::array();
    for (const ComparedRow& row : rows)
      list.push_back({{"computation", row.after.times.computation},
                      {"warmup", row.after.times.warmup},
                      {"precision", row.after.times.precision},
                      {"before_ms", row.before.median_ms},
                      {"after_ms", row.after.median_ms},
                      {"speedup", row.factor()},
                      {"is_clear", row.is_clear()}});
    print({{"before", json_of(before)}, {"after", json_of(after)}, {"rows", list}, {"warning", warning}});
    return exit_done;
  }
  std::cout << head_of(before) << "\n" << head_of(after) << "\n\n";
  std::vector<std::vector<std::string>> cells{
      {"computation", "warm-up", "precision", "before", "after", "speed-up", ""}};
  for (const ComparedRow& row : rows)
    cells.push_back({row.after.times.computation, std::to_string(row.after.times.warmup), row.after.times.precision,
                     milliseconds_text(row.before.median_ms), milliseconds_text(row.after.median_ms),
                     factor_text(row.factor()), row.is_clear() ? "" : "within the spread"});
  std::cout << table(cells, {false, true, false, true, true, true, false});
  if (rows.empty()) std::cout << "They have no row in common.\n";
  if (!warning.empty()) std::cout << warning << "\n";
  return exit_done;
}

int run(const PassOptions& options, const CommonOptions& common) {
  if (options.ids.empty()) return list(common);
  if (options.ids.size() > 2) throw UsageError("give one number to show it, or two to compare them");
  open_existing(common.database);
  RunStore store = options.removes ? RunStore::open(common.database) : open_existing(common.database);
  const StoredPasses first = find(store, options.ids.front());
  if (options.removes) {
    for (const std::int64_t id : options.ids) store.traces().passes().remove(find(store, id).id);
    return exit_done;
  }
  return options.ids.size() == 1 ? show(first, options, common)
                                 : compare(first, find(store, options.ids.back()), common);
}

}  // namespace

void add_pass_command(CLI::App& profile, CommonOptions& common, std::function<int()>& chosen) {
  const auto options = std::make_shared<PassOptions>();
  CLI::App* command = add_with_json(profile, common, "passes",
                                    "Kept results of `profile`: all, one by its number, or two compared row by row");
  command->add_option("passes", options->ids, "Numbers");
  command->add_flag("--csv", options->csv, "Print one as CSV");
  command->add_flag("--remove", options->removes, "Remove them");
  command->callback([options, &common, &chosen] { chosen = [options, &common] { return run(*options, common); }; });
}

}  // namespace stepladder
