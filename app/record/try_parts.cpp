// Takes a kept change apart: states with some of its parts, their runs, and what each part does. A run's log and its
// end are on the disk before the next one begins, so a killed program continues; the project gets all runs at the end,
// with the answer.
#include "app/record/try_parts.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "app/exit_status.h"
#include "app/host/held_folder.h"
#include "app/record/run_doubt.h"
#include "app/record/try_log.h"
#include "app/record/try_series.h"
#include "engine/files/files.h"
#include "storage/analysis/verdict/factorial.h"
#include "storage/content_hash.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// The lines of a text, each with its end.
std::vector<std::string> whole_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

// "-3,2" of a hunk's head.
std::pair<std::size_t, std::size_t> range_in(const std::string& head, char sign) {
  std::size_t begin = 0, count = 1;
  const std::size_t at = head.find(std::string(" ") + sign);
  if (at == std::string::npos) return {0, 0};
  const char* const end = head.data() + head.size();
  const auto [next, error] = std::from_chars(head.data() + at + 2, end, begin);
  if (error == std::errc() && next < end && *next == ',') std::from_chars(next + 1, end, count);
  return {begin, count};
}

struct TreeEntry {
  std::string mode, type, hash;
};
TreeEntry entry_of(const GitCheckout& store, const std::string& tree, const std::string& path) {
  const std::string line = store.git({"ls-tree", "--full-tree", tree, "--", ":(literal)" + path});
  TreeEntry entry;
  std::istringstream(line) >> entry.mode >> entry.type >> entry.hash;
  return entry.type == "tree" ? TreeEntry{} : entry;  // a folder is its files
}

bool is_file(const TreeEntry& entry) {
  return entry.mode == "100644" || entry.mode == "100755";
}

std::vector<ChangePart> hunks_of(const GitCheckout& store, const std::string& from, const std::string& to,
                                 const std::string& file) {
  ChangePart whole{.file = file, .where = file};
  const TreeEntry before = entry_of(store, from, file), after = entry_of(store, to, file);
  std::vector<ChangePart> hunks;
  bool is_new_line = false;
  for (const std::string& line :
       // Not `git diff`, whose hunks the user's settings change; this one is a setting of every command.
       whole_lines(
           store.git({"-c", "diff.suppressBlankEmpty=false", "diff-tree", "-r", "-p", "--unified=1", "--no-ext-diff",
                      "--no-textconv", "--no-color", "--no-renames", from, to, "--", ":(literal)" + file}))) {
    if (line.starts_with("@@ ")) {
      const auto [begin, count] = range_in(line, '-');
      ChangePart hunk{.file = file, .old_begin = count == 0 ? begin : begin - 1, .old_lines = count};
      hunk.where = file + ":" + std::to_string(range_in(line, '+').first);
      hunks.push_back(std::move(hunk));
      continue;
    }
    if (hunks.empty() || line.empty()) continue;
    if (line[0] == '\\' && is_new_line) hunks.back().lines.back().pop_back();
    is_new_line = line[0] == '+' || line[0] == ' ';
    if (is_new_line) hunks.back().lines.push_back(line.substr(1));
    (line[0] == '+' ? hunks.back().added : hunks.back().removed) += line[0] == '+' || line[0] == '-';
  }
  for (const ChangePart& hunk : hunks) whole.added += hunk.added, whole.removed += hunk.removed;
  if (hunks.empty() || !is_file(before) || !is_file(after) || before.mode != after.mode) return {whole};
  return hunks;
}

}  // namespace

std::vector<ChangePart> parts_of_change(const GitCheckout& store, const std::string& from, const std::string& to,
                                        std::size_t most) {
  std::vector<ChangePart> parts, files;
  for (const std::string& file :
       entries_of(store.git({"diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to}))) {
    const std::vector<ChangePart> hunks = hunks_of(store, from, to, file);
    ChangePart whole{.file = file, .where = file};
    for (const ChangePart& hunk : hunks) whole.added += hunk.added, whole.removed += hunk.removed;
    parts.insert(parts.end(), hunks.begin(), hunks.end());
    files.push_back(std::move(whole));
  }
  return parts.size() <= most ? parts : files;
}

std::string state_with(const GitCheckout& store, const std::string& from, const std::string& to,
                       const std::vector<ChangePart>& parts, const std::vector<bool>& chosen, const fs::path& scratch) {
  const GitCheckout state(store.top(), GitCheckout::Ours{.own_index = true});
  state.git({"read-tree", from});
  std::set<std::string> done;
  for (const ChangePart& part : parts) {
    if (!done.insert(part.file).second) continue;
    std::size_t on = 0, all = 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].file == part.file) ++all, on += chosen[i];
    if (on == 0) continue;
    TreeEntry entry = entry_of(store, to, part.file);
    if (on < all) {
      const std::vector<std::string> old =
          whole_lines(store.git({"cat-file", "-p", entry_of(store, from, part.file).hash}));
      std::string text;
      std::size_t at = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].file != part.file || !chosen[i]) continue;
        for (; at < std::min(parts[i].old_begin, old.size()); ++at) text += old[at];
        for (const std::string& line : parts[i].lines) text += line;
        at = parts[i].old_begin + parts[i].old_lines;
      }
      for (; at < old.size(); ++at) text += old[at];
      write_whole(scratch, text, private_file);
      entry.hash = first_line(store.git({"hash-object", "-w", "--no-filters", "--", scratch.string()}));
    }
    if (entry.hash.empty())
      state.git({"update-index", "--force-remove", "--", part.file});
    else  // which may be a folder where a file was
      state.git({"update-index", "--add", "--replace", "--cacheinfo", entry.mode + "," + entry.hash + "," + part.file});
  }
  return first_line(state.git({"write-tree"}));
}

std::optional<TrySeriesRunner::PartRuns> TrySeriesRunner::run_parts(const Try& it, const std::vector<ChangePart>& parts,
                                                                    const std::vector<std::string>& flags) {
  PartRuns runs{.cells = fractional_design(flags.empty() ? parts.size() : flags.size())};
  ContentHash hash;  // of what the runs that are there were for
  hash.take(std::to_string(runs.cells.size()));
  for (const std::string& flag : flags) hash.take('\0' + flag);
  for (const ChangePart& part : parts) hash.take('\0' + part.where);
  const std::string name = fmt::format("parts-{}-{}", it.number, hash.text().substr(0, 12));
  for (std::size_t run = 0; run < runs.cells.size(); ++run) {
    const std::string file = name + fmt::format("-{:02}", run + 1);
    MeasuredCommand command{
        .log = folder_ / "runs" / (file + ".log"),
        .state = folder_ / ".state" / (file + ".json"),
        .command = plan_.command,
        .folder = {},
        .environment = {{"STEPLADDER_TRY", std::to_string(it.number)},
                        {"STEPLADDER_RUN", std::to_string(1000 * it.number + std::int64_t(run) + 1)},
                        {"STEPLADDER_SEED", std::to_string(run + 1)}}};
    if (!is_begun(command)) {
      wait_until_quiet();
      const std::string tree = tree_with(it, parts, runs.cells[run]);
      if (!prepare(command, tree, "", it.commit, TryTrees::Leftovers::removed)) return {};
      for (std::size_t i = 0; i < flags.size(); ++i) {
        std::istringstream words(runs.cells[run][i] ? flags[i] : "");
        for (std::string word; words >> word;) command.command.push_back(word);
      }
    }
    report_(fmt::format("run {} of {}", run + 1, runs.cells.size()));
    const auto end = run_command(command);
    if (!end) return {};
    Outcome outcome = outcome_of(read_logged_run(command.log), *end);
    runs.values.push_back(is_missing(outcome.value) ? missing : utility(outcome.value));
    runs.commands.push_back(std::move(command));
    runs.ends.push_back(*end);
    runs.outcomes.push_back(std::move(outcome));
  }
  return runs;
}

// Flags, which are no parts of the state, leave it as it was tried.
std::string TrySeriesRunner::tree_with(const Try& it, const std::vector<ChangePart>& parts, const PartSet& cell) const {
  if (parts.empty()) return it.tree;
  const std::string& before = tries_[std::size_t(it.parent)].tree;
  return state_with(trees_->store(), before, it.tree, parts, cell, folder_ / ".state" / "part");
}

Json TrySeriesRunner::effect_json(const Try& it, double gain, const Interval& ci95) const {
  const TryAnswer shown = is_missing(gain) ? TryAnswer{} : answer_of(it, {.gain = gain, .ci95 = ci95}, 0);
  return {{"difference", number(shown.difference)},
          {"factor", takes_time(plan_.figure) ? number(shown.factor) : Json()},
          {"ci95", shown.ci95.known() ? Json{shown.ci95.low, shown.ci95.high} : Json()}};
}

std::vector<LoadedRun> TrySeriesRunner::loaded_parts(const Try& it, const PartRuns& runs) const {
  std::vector<LoadedRun> loaded;
  for (std::size_t i = 0; i < runs.cells.size(); ++i) {
    loaded.push_back(loaded_from(read_logged_run(runs.commands[i].log)));
    const Run row = row_of(it, "", runs.ends[i], "");
    loaded.back().run.started_at = row.started_at;
    loaded.back().run.ended_at = row.ended_at;
  }
  return loaded;
}

std::string TrySeriesRunner::doubt_of_part(std::size_t part, const PartRuns& runs,
                                           std::span<const LoadedRun> loaded) const {
  std::vector<MeasuredRun> with, without;
  for (std::size_t i = 0; i < runs.cells.size(); ++i)
    if (!is_missing(runs.values[i])) (runs.cells[i][part] ? with : without).push_back(loaded[i].measured());
  return doubt_of(without, with, load_run_context(store_).hardware, takes_time(plan_.figure)).reason;
}

std::optional<Json> TrySeriesRunner::take_apart(std::int64_t number, const std::vector<std::string>& flags) {
  if (number < 1 || number >= std::ssize(tries_) || tries_[std::size_t(number)].verdict != to_string(TryVerdict::kept))
    throw UsageError("only a kept try can be taken apart; `stepladder try log` lists them");
  if (tries_.back().verdict.empty())
    throw UsageError("try " + std::to_string(tries_.back().number) +
                     " hasn't been measured to the end; `stepladder try -m` goes on with it, or gives it up if the "
                     "checkout has changed");
  if (!wait_for_left_runs()) return {};
  Try& it = tries_[std::size_t(number)];
  std::vector<ChangePart> parts;
  if (flags.empty()) parts = parts_of_change(trees_->store(), tries_[std::size_t(it.parent)].tree, it.tree, most_parts);
  const std::size_t count = flags.empty() ? parts.size() : flags.size();
  if (count < 2 || count > most_parts)
    throw UsageError("try " + std::to_string(number) + " has " + plural(std::int64_t(count), "part") + "; from 2 to " +
                     std::to_string(most_parts) + " can be told apart");
  const auto runs = run_parts(it, parts, flags);
  if (!runs) return {};
  const FactorialAnswer answer = fit_factorial(runs->cells, runs->values, runs_for(it).noise);
  const std::vector<std::size_t> dropped = droppable_parts(answer);
  const std::vector<LoadedRun> loaded = loaded_parts(it, *runs);
  Json list = Json::array(), pairs = Json::array(), droppable = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const PartEffect& effect = answer.parts[i];
    const Interval& ci95 = effect.ci95;
    const bool is_droppable = std::ranges::find(dropped, i) != dropped.end();
    Json json{{"part", i + 1}, {"what", flags.empty() ? parts[i].where : flags[i]}};
    json["added"] = flags.empty() ? Json(parts[i].added) : Json();
    json["removed"] = flags.empty() ? Json(parts[i].removed) : Json();
    json.update(effect_json(it, effect.gain, ci95));
    const bool is_better = ci95.known() && ci95.low > 0;
    const std::string doubt = is_better ? doubt_of_part(i, *runs, loaded) : "";
    json["verdict"] = is_better                       ? doubt.empty() ? "better" : "cannot-tell"
                      : ci95.known() && ci95.high < 0 ? "worse"
                      : is_droppable                  ? "no-effect"
                                                      : "cannot-tell";
    json["reason"] = text_or_null(doubt);
    if (is_droppable) droppable.push_back(i + 1);
    list.push_back(std::move(json));
  }
  for (const PairEffect& pair : answer.pairs) {
    Json others = Json::array();
    for (const auto& [a, b] : pair.others) others.push_back({a + 1, b + 1});
    pairs.push_back({{"parts", {pair.a + 1, pair.b + 1}}, {"or", others}});
    pairs.back().update(effect_json(it, pair.gain, pair.ci95));
  }
  const auto failed = std::ranges::count_if(runs->values, [](double v) { return is_missing(v); });
  const Json json{{"try", number},
                  {"metric", metric()},
                  {"by", flags.empty() ? "patch" : "flags"},
                  {"parts", list},
                  {"pairs", pairs},
                  {"droppable", droppable},
                  {"runs", runs->cells.size()},
                  {"failed_runs", failed}};
  store_parts(it, parts, *runs, json);
  if (far_ && !series_.is_open()) far_->remove();
  return json;
}

void TrySeriesRunner::store_parts(Try& it, const std::vector<ChangePart>& parts, const PartRuns& runs,
                                  const Json& shown) {
  std::set<std::string> stored;
  for (const Run& run : store_->runs()) stored.insert(run.source_path);
  for (std::size_t i = 0; i < runs.cells.size(); ++i) {
    const MeasuredCommand& command = runs.commands[i];
    if (stored.contains(command.log.string())) continue;
    std::string chosen;
    for (std::size_t part = 0; part < runs.cells[i].size(); ++part)
      if (runs.cells[i][part]) chosen += (chosen.empty() ? "" : ",") + std::to_string(part + 1);
    Try state = it;
    state.tree = tree_with(it, parts, runs.cells[i]);
    const Outcome& outcome = runs.outcomes[i];
    const Run row = row_of(state, fmt::format("try {}, {}", it.number, chosen.empty() ? "no part" : "parts " + chosen),
                           runs.ends[i], outcome.error);
    std::map<std::string, double> printed;
    if (!is_missing(outcome.value) && plan_.figure.by == FigureBy::metric)
      printed[plan_.figure.metric.metric] = outcome.value;
    const RunPatch patch = patch_of_runs(state);  // before the project is locked
    store_logged_run(*store_, read_logged_run(command.log), row, command.log, printed,
                     [&](RunId id) { store_->recordings().keep_patch(id, patch); });
  }
  Json answer = Json::parse(it.answer);
  answer["parts"] = shown;
  it.answer = answer.dump();
  store_->tries().save(series_.ladder, it);
}

}  // namespace stepladder
