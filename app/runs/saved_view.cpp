// Reads and writes saved views. The text may come from a stranger's project, so depth and number of runs are limited,
// and fields of a wrong type get their defaults. Runs are found in the states by their form, {"run": ID}.
#include "app/runs/saved_view.h"

#include <set>
#include <utility>

namespace stepladder {
namespace {

using nlohmann::json;

constexpr int format = 1;
constexpr int deepest = 32;  // nested values
constexpr std::size_t most_runs = 100'000;

bool is_reference(const json& value) {
  return value.is_object() && value.size() == 1 && value.contains("run") && value["run"].is_number_integer();
}

// Calls `use` for every reference to a run.
void for_references(json& value, const std::function<void(json&)>& use) {
  if (is_reference(value)) return use(value);
  if (value.is_structured())
    for (json& inner : value) for_references(inner, use);
}

template <class Value>
Value taken(const json& from, const char* name, Value otherwise) {
  const auto found = from.find(name);
  if (found == from.end()) return otherwise;
  try {
    return found->get<Value>();
  } catch (const json::exception&) {  // of another version
    return otherwise;
  }
}

}  // namespace

json run_reference(RunId run) {
  return run == 0 ? json() : json{{"run", run}};
}

RunId run_in(const json& reference) {
  return is_reference(reference) ? reference["run"].get<RunId>() : 0;
}

std::vector<RunId> runs_in(const SavedView& view) {
  std::set<RunId> found;
  for (const auto& [panel, state] : view.states) {
    json copy = state;
    for_references(copy, [&](json& reference) { found.insert(run_in(reference)); });
  }
  return {found.begin(), found.end()};
}

void renumber(SavedView& view, const FindRun& find) {
  std::map<RunId, RunId> numbers;
  std::vector<ViewRun> left;
  for (ViewRun& run : view.runs) {
    const std::optional<RunId> found = find(run);
    if (!found) continue;
    numbers[run.id] = *found;
    run.id = *found;
    left.push_back(std::move(run));
  }
  view.runs = std::move(left);
  for (auto& [panel, state] : view.states)
    for_references(state, [&](json& reference) {
      const auto found = numbers.find(run_in(reference));
      reference = found == numbers.end() ? json() : run_reference(found->second);
    });
}

std::string text_of(const SavedView& view) {
  json runs = json::array();
  for (const ViewRun& run : view.runs) {
    json written{{"id", run.id}, {"name", run.name}, {"selected", run.selected}};
    if (!run.uid.empty()) written["uid"] = run.uid;
    runs.push_back(std::move(written));
  }
  const json all{
      {"format", format}, {"panels", view.panels}, {"states", view.states}, {"selects", view.selects}, {"runs", runs}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

SavedView saved_view_from(const std::string& text) {
  bool is_too_deep = false;
  const json::parser_callback_t check_event = [&](int depth, json::parse_event_t, json&) {
    is_too_deep = is_too_deep || depth > deepest;
    return !is_too_deep;
  };
  const json read = json::parse(text, check_event, false);
  if (is_too_deep) throw ViewError("it is nested too deeply");
  if (!read.is_object()) throw ViewError("it isn't JSON of a view");
  if (taken(read, "format", 0) > format) throw ViewError("a newer version of Stepladder saved it");
  if (!read.contains("states") || !read["states"].is_object()) throw ViewError("it has no states of views");
  SavedView view{.panels = taken(read, "panels", std::vector<std::string>{}),
                 .states = {},
                 .selects = taken(read, "selects", false),
                 .runs = {}};
  for (const auto& [panel, state] : read["states"].items()) view.states[panel] = state;
  const auto runs = read.find("runs");
  if (runs == read.end() || !runs->is_array()) return view;
  for (const json& run : *runs) {
    if (!run.is_object() || view.runs.size() == most_runs) continue;
    view.runs.push_back({.id = taken(run, "id", RunId{0}),
                         .uid = taken(run, "uid", std::string()),
                         .name = taken(run, "name", std::string()),
                         .selected = taken(run, "selected", false)});
  }
  return view;
}

}  // namespace stepladder
