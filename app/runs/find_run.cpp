// Resolves the words that name runs, for every command and the Record view. What is written in numbers is never taken
// for a name's beginning, so that a mistyped number finds nothing.
#include "app/runs/find_run.h"

#include <algorithm>
#include <set>

#include "app/exit_status.h"
#include "app/runs/bin.h"
#include "app/runs/loaded_runs.h"
#include "app/runs/run_filter.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "3-5"; the first may be the greater.
std::optional<std::pair<RunId, RunId>> range_in(const std::string& word) {
  const std::size_t dash = word.find('-');
  if (dash == std::string::npos || !is_number(word.substr(0, dash)) || !is_number(word.substr(dash + 1)))
    return std::nullopt;
  return std::pair(std::stoll(word.substr(0, dash)), std::stoll(word.substr(dash + 1)));
}

bool is_filter(const std::string& word) {
  return word.find_first_of("=<>~") != std::string::npos;
}

NotFound no_such_run(const std::string& sentence, const std::string& word, const std::string& hint = {}) {
  return NotFound(sentence, {.code = "no-such-run", .argument = "run", .value = word, .hint = hint});
}

// The newest for `latest`, else the item of this name, else the only one whose name begins so. Nullopt if there is
// none. `items`: oldest first. `what` is "run" or "ladder".
template <class Item>
std::optional<Item> find_named(const std::vector<Item>& items, const std::string& word, const std::string& what) {
  if (word == "latest" && !items.empty()) return items.back();  // whatever an import is called
  std::vector<const Item*> named, begun;
  for (const Item& item : items) {
    if (item.name == word) named.push_back(&item);
    if (!word.empty() && !is_number(word) && item.name.starts_with(word)) begun.push_back(&item);
  }
  const std::vector<const Item*>& found = named.empty() ? begun : named;
  if (found.size() > 1)
    throw UsageError(std::to_string(found.size()) + " " + what + "s" +
                         (named.empty() ? " begin with '" : " are called '") + word + "'",
                     {.code = "ambiguous-" + what,
                      .argument = what,
                      .value = word,
                      .hint = "give its number, such as " + std::to_string(found.back()->id)});
  return found.empty() ? std::nullopt : std::optional(*found.front());
}

std::vector<Run> runs_among(RunStore& store, Among among) {
  if (among == Among::listed) return store.runs();
  std::vector<Run> runs;
  for (BinnedRun& binned : runs_in_bin(store)) runs.push_back(std::move(binned.run));
  std::ranges::sort(runs, {}, &Run::id);
  return runs;
}

class Resolver {
 public:
  Resolver(RunStore& store, Among among) : store_(store), among_(among), runs_(runs_among(store, among)) {}

  std::vector<Run> find(const std::string& word) {
    for (const Run& run : runs_)
      if (std::to_string(run.id) == word) return {run};
    if (const auto range = range_in(word); range && !is_name(word)) return in_range(word, range->first, range->second);
    if (is_filter(word) && !is_name(word)) {
      std::vector<Run> runs = filtered(word);
      if (runs.empty()) throw no_such_run("no run" + in_bin() + " matches '" + word + "'", word);
      return runs;
    }
    if (word.find(',') != std::string::npos && !is_name(word)) return in_list(word);
    if (std::optional<Run> run = find_named(runs_, word, "run")) return {std::move(*run)};
    refuse(word);
  }

 private:
  std::string in_bin() const { return among_ == Among::binned ? " in the bin" : ""; }
  bool is_name(const std::string& word) const {
    return std::ranges::any_of(runs_, [&](const Run& run) { return run.name == word; });
  }

  std::vector<Run> filtered(const std::string& word) const {
    try {
      return filtered_runs(store_, word, among_);
    } catch (const FilterError& error) {
      throw UsageError("run: " + error.why, {.code = "invalid-filter", .argument = "run", .value = word});
    }
  }

  std::vector<Run> in_range(const std::string& word, RunId first, RunId last) const {
    if (last < first) throw UsageError(word + " ends before it begins", {.argument = "run", .value = word});
    std::vector<Run> runs;
    std::vector<RunId> there;
    for (const Run& run : runs_) {
      if (run.id < first || run.id > last) continue;
      runs.push_back(run);
      there.push_back(run.id);
    }
    if (std::ssize(runs) == last - first + 1) return runs;
    throw no_such_run(
        word + " has " + std::to_string(last - first + 1) + " numbers, and " +
            (there.empty() ? "there is no such run" + in_bin()
                           : "only " + list_text(there) + (there.size() > 1 ? " are runs" : " is a run") + in_bin()),
        word, among_ == Among::binned ? "`stepladder bin` lists them" : "`stepladder runs` lists them");
  }

  std::vector<Run> in_list(const std::string& word) {
    std::vector<Run> runs;
    for (std::size_t begin = 0, end = 0; begin <= word.size(); begin = end + 1) {
      end = std::min(word.find(',', begin), word.size());
      for (Run& run : find(word.substr(begin, end - begin))) runs.push_back(std::move(run));
    }
    return runs;
  }

  [[noreturn]] void refuse(const std::string& word) {
    if (among_ == Among::binned)
      throw no_such_run("the bin has no run '" + word + "'", word, "`stepladder bin` lists them");
    for (const Run& run : runs_among(store_, Among::binned))
      if (std::to_string(run.id) == word || run.name == word)
        throw no_such_run("run " + std::to_string(run.id) + " is in the bin", word,
                          "`stepladder restore " + std::to_string(run.id) + "` brings it back");
    const std::string before_at = word.substr(0, word.rfind('@'));
    for (const Run& run : runs_)
      if (before_at != word && (std::to_string(run.id) == before_at || run.name == before_at))
        throw UsageError("'" + word + "' is not a run",
                         {.code = "invalid-value",
                          .argument = "run",
                          .value = word,
                          .hint = "RUN@STEP is a checkpoint: train --fork and export take one"});
    throw no_such_run("there is no run " + (word.empty() ? "''" : word), word,
                      word == "ladder" ? "`stepladder ladder show` shows one" : "`stepladder runs` lists them");
  }

  RunStore& store_;
  const Among among_;
  const std::vector<Run> runs_;
};

}  // namespace

std::string list_text(std::vector<RunId> ids) {
  std::ranges::sort(ids);
  std::string text;
  for (std::size_t i = 0, end = 0; i < ids.size(); i = end) {
    for (end = i + 1; end < ids.size() && ids[end] == ids[end - 1] + 1;) ++end;
    text += (i ? "," : "") + std::to_string(ids[i]) + (end > i + 1 ? "-" + std::to_string(ids[end - 1]) : "");
  }
  return text;
}

std::vector<Run> find_runs(RunStore& store, const std::vector<std::string>& words, Among among) {
  Resolver resolver(store, among);
  std::vector<Run> runs;
  std::set<RunId> taken;
  for (const std::string& word : words)
    for (Run& run : resolver.find(word))
      if (taken.insert(run.id).second) runs.push_back(std::move(run));
  return runs;
}

std::vector<RunId> ids_of(std::span<const Run> runs) {
  std::vector<RunId> ids;
  for (const Run& run : runs) ids.push_back(run.id);
  return ids;
}

Run find_run(RunStore& store, const std::string& word) {
  std::vector<Run> runs = find_runs(store, {word});
  if (runs.size() > 1)
    throw UsageError("'" + word + "' names " + std::to_string(runs.size()) + " runs",
                     {.argument = "run", .value = word, .hint = "name one"});
  return std::move(runs.front());
}

bool is_for_several(const std::string& word) {
  return range_in(word) || is_filter(word) || word.find(',') != std::string::npos;
}

Ladder find_ladder(RunStore& store, const std::string& word) {
  const std::vector<Ladder> ladders = store.ladders();
  for (const Ladder& ladder : ladders)
    if (std::to_string(ladder.id) == word) return ladder;
  if (std::optional<Ladder> ladder = find_named(ladders, word, "ladder")) return std::move(*ladder);
  throw NotFound(
      ladders.empty() ? "there is no ladder yet" : "there is no ladder " + (word.empty() ? "''" : word),
      {.code = "no-such-ladder", .argument = "ladder", .value = word, .hint = "`stepladder ladders` lists them"});
}

std::pair<Run, std::optional<std::int64_t>> find_fork(RunStore& store, const std::string& text) {
  const auto at = text.rfind('@');
  if (at == std::string::npos) return {find_run(store, text), std::nullopt};
  const auto step = parse_number<std::int64_t>(text.substr(at + 1));
  if (!step) {
    try {
      return {find_run(store, text), std::nullopt};  // a name with an @ in it
    } catch (const UsageError&) {
      throw UsageError("'" + text.substr(at + 1) + "' is not a step",
                       {.code = "invalid-value",
                        .argument = "run",
                        .value = text,
                        .hint = "RUN@STEP is a checkpoint, such as 12@400"});
    }
  }
  return {find_run(store, text.substr(0, at)), step};
}

ProjectNames project_names(RunStore* store) {
  return {.recipe =
              [store] {
                std::set<std::string> found;
                if (store)
                  for (const Run& run : store->runs()) add_recipe_names(run, found);
                return found;
              },
          .metrics =
              [store] {
                std::set<std::string> found;
                if (store)
                  for (const Metric& metric : store->metrics().all_names()) found.insert(metric.name);
                return found;
              }};
}

std::vector<Run> filtered_runs(RunStore& store, const std::string& expression, Among among) {
  const RunFilter filter(expression, project_names(&store));
  const RunContext context = load_run_context(&store);
  const FigureTable metrics = store.metrics().table(filter.figures());
  std::vector<Run> runs;
  for (Run& run : runs_among(store, among))
    if (filter.accepts(run, store.summary(run), context, metrics)) runs.push_back(std::move(run));
  return runs;
}

}  // namespace stepladder
