// `stepladder edit`: what people add to runs, as the window's History does. All of the runs are changed, or none.
#include <iostream>
#include <memory>
#include <set>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct EditOptions {
  std::vector<std::string> runs;
  std::optional<std::string> name, note;
  std::vector<std::string> tags, untags;
  bool pins = false, unpins = false, archives = false, unarchives = false;

  bool changes_nothing() const {
    return !name && !note && tags.empty() && untags.empty() && !pins && !unpins && !archives && !unarchives;
  }
};

CurationChange change_of(const EditOptions& options) {
  CurationChange change{.note = options.note};
  for (const std::string& words : options.tags)
    for (const std::string& tag : tags_from(words)) change.added_tags.push_back(tag);
  for (const std::string& words : options.untags)
    for (const std::string& tag : tags_from(words)) change.removed_tags.push_back(tag);
  if (options.pins || options.unpins) change.pinned = options.pins;
  if (options.archives || options.unarchives) change.archived = options.archives;
  return change;
}

int edit(const EditOptions& options, const CommonOptions& common) {
  if (options.changes_nothing())
    throw UsageError(
        "nothing to change; give --name, --note, --tag, --untag, --pin, --unpin, --archive or --unarchive");
  if (options.name && options.name->empty()) throw UsageError("--name: the name is empty");
  std::set<std::string> added;
  for (const auto& [option, texts] : {std::pair("--tag", &options.tags), std::pair("--untag", &options.untags)})
    for (const std::string& text : *texts) {
      const std::vector<std::string> tags = tags_from(text);
      if (tags.empty())
        throw UsageError(std::string(option) + ": '" + text + "' has no tag", {.argument = option, .value = text});
      for (const std::string& tag : tags)
        if (texts == &options.tags)
          added.insert(tag);
        else if (added.contains(tag))
          throw UsageError("--untag: '" + tag + "' is also given to --tag",
                           {.code = "conflicting-options", .argument = "--untag", .value = tag});
    }
  RunStore store = open_existing(common.database);
  std::vector<Run> runs = find_runs(store, options.runs);
  if (options.name && runs.size() > 1)
    throw UsageError("--name: " + std::to_string(runs.size()) + " runs can't have one name; name one run");
  const CurationChange change = change_of(options);
  std::int64_t changed = 0;
  store.in_one_transaction([&] {
    for (const Run& run : runs) {
      const CurationChange undoes = store.curation().change(run.id, change);
      changed += !undoes.empty() || (options.name && *options.name != run.name);
      if (options.name) store.rename_run(run.id, *options.name);
    }
  });
  if (!common.json) {
    std::cout << (changed == 0 ? "Nothing to change" : "Changed " + plural(changed, "run")) << "\n";
    return exit_done;
  }
  const RunContext context = load_run_context(&store);
  print(json_list(runs,
                  [&](const Run& run) { return run_json(store.existing_run(run.id), store.summary(run), context); }));
  return exit_done;
}

}  // namespace

Subcommand edit_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<EditOptions>();
  CLI::App* command = add_with_json(app, common, "edit", "Change names, tags, notes, pins and the archive of runs");
  command->add_option("runs", options->runs, runs_help)->required();
  command->add_option("--name", options->name, "New name of one run")->check(new_name());
  command->add_option("--tag", options->tags, "Add tags, separated by commas")->expected(1)->take_all();
  command->add_option("--untag", options->untags, "Remove tags")->expected(1)->take_all();
  command->add_option("--note", options->note, "Replace the note; \"\" removes it");
  CLI::Option* pin = command->add_flag("--pin", options->pins, "List them before others in the window");
  command->add_flag("--unpin", options->unpins, "No longer")->excludes(pin);
  CLI::Option* archive = command->add_flag("--archive", options->archives, "Hide them in the window's lists");
  command->add_flag("--unarchive", options->unarchives, "No longer")->excludes(archive);
  return {command, [options, &common] { return edit(*options, common); }};
}

}  // namespace stepladder
