// `stepladder profile passes`: lists, shows, compares or removes kept call times. Tables, CSV and Markdown are
// app/profile/pass_report.h's, which the window shows too.
#include <iostream>
#include <memory>

#include "app/cli/profile/trace_commands.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/profile/pass_report.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {
namespace {

struct PassOptions {
  std::vector<std::int64_t> ids;
  bool csv = false, markdown = false;
  bool removes = false;
  Limit limit;
};

StoredPasses find(RunStore& store, std::int64_t id) {
  std::optional<StoredPasses> found = store.traces().passes().find(id);
  if (!found) throw NotFound(fmt::format("there are no passes {}; `stepladder profile passes` lists them", id));
  return std::move(*found);
}

std::string list_table(const std::vector<StoredPasses>& all) {
  std::vector<std::vector<std::string>> cells{{"passes", "name", "model", "batch", "hardware", "host", "measured"}};
  for (const StoredPasses& each : all)
    cells.push_back({std::to_string(each.id), each.name, each.model, fmt::format("{} x {}", each.batch, each.seq),
                     each.hardware, each.host, local_time_text(each.measured_at)});
  return table(cells, {true, false, false, true, false, false, false});
}

int list(const PassOptions& options, const CommonOptions& common) {
  std::optional<RunStore> store = open_to_list(common);
  std::vector<StoredPasses> all = store ? store->traces().passes().list() : std::vector<StoredPasses>();
  options.limit.keep_newest(all, "older result", common);
  return print_list(common, all, passes_json, "there are no passes; `stepladder profile` times them", list_table);
}

int show(const StoredPasses& passes, const PassOptions& options, const CommonOptions& common) {
  const std::vector<CallRow> rows = call_rows(passes);
  if (common.json) {
    print(passes_with_rows(passes, rows));
  } else if (options.csv) {
    std::cout << passes_csv(rows, nullptr);
  } else if (options.markdown) {
    std::cout << passes_markdown(passes, nullptr, nullptr);
  } else {
    std::cout << notes_text(head_of(passes)) << "\n";
    std::cout << table(rows_table(rows));
    std::cout << "\n";
    for (const std::string& sentence : sentences_of(passes, rows)) std::cout << notes_text(sentence);
  }
  return exit_done;
}

int compare(const StoredPasses& before, const StoredPasses& after, const PassOptions& options,
            const CommonOptions& common) {
  const PassComparison comparison = compare_passes(before, after);
  if (common.json) {
    print(comparison_json(before, after, comparison));
  } else if (options.csv) {
    std::cout << passes_csv({}, &comparison);
  } else if (options.markdown) {
    std::cout << passes_markdown(after, &before, &comparison);
  } else {
    std::cout << notes_text(head_of(before) + "\n" + head_of(after)) << "\n";
    std::cout << table(comparison_table(comparison));
    for (const std::string& sentence : comparison.sentences) std::cout << notes_text(sentence);
  }
  return exit_done;
}

int run(const PassOptions& options, const CommonOptions& common) {
  if (options.ids.empty()) return list(options, common);
  if (common.json + options.csv + options.markdown > 1)
    throw UsageError("--json, --csv and --markdown exclude each other");
  if (options.ids.size() > 2) throw UsageError("give one number to show it, or two to compare them");
  open_existing(common.database);
  RunStore store = options.removes ? RunStore::open(common.database) : open_existing(common.database);
  const StoredPasses first = find(store, options.ids.front());
  if (options.removes) {
    for (const std::int64_t id : options.ids) store.traces().passes().remove(find(store, id).id);
    if (common.json) print({{"removed", options.ids}});
    return exit_done;
  }
  return options.ids.size() == 1 ? show(first, options, common)
                                 : compare(first, find(store, options.ids.back()), options, common);
}

}  // namespace

void add_pass_command(CLI::App& profile, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<PassOptions>();
  CLI::App* command = add_with_json(profile, common, "passes",
                                    "Kept results of `profile`: all, one by its number, or two compared row by row");
  command->add_option("passes", options->ids, "Numbers");
  options->limit.add_to(*command, "List only the newest, this many");
  const auto choose = [options](const std::string& format) {
    options->csv = format == "csv";
    options->markdown = format == "md";
  };
  command->add_option_function<std::string>("--format", choose, "Print this instead of a table")
      ->check(one_of({"text", "csv", "md"}));
  command->add_flag("--csv", options->csv, "Print CSV")->group(hidden_group);
  command->add_flag("--markdown", options->markdown, "Print Markdown")->group(hidden_group);
  command->add_flag("--remove", options->removes, "Remove them");
  choose_if_parsed(*command, chosen, options, common, run);
}

}  // namespace stepladder
