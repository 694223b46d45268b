// Derives History's rows: filter, then sort, then group. They are kept until a choice or a run changes (`made_for`),
// since a project may have many thousand runs; a new choice must become a part of that text.
#include "app/panels/history/rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "app/desktop/models/project_metrics.h"
#include "app/launch/sweep_results.h"
#include "app/runs/run_filter.h"
#include "app/text/format.h"
#include "storage/analysis/file_grouping.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

// The groups that a run is in; what it lacks is an empty text.
std::vector<std::string> groups_of(const RunEntry& entry, const HistoryRows& list, const Workspace& workspace) {
  if (!list.group_value.empty()) {
    const auto& recipe = parsed_recipe(entry);
    const auto value = recipe.find(list.group_value);
    return {value == recipe.end() ? std::string() : value->second};
  }
  const auto or_none = [](std::string text, const char* none) { return text.empty() ? none : std::move(text); };
  switch (list.group) {
    case HistoryGroup::ladder: {
      const Ladder* ladder = entry.run.ladder ? workspace.ladder(*entry.run.ladder) : nullptr;
      return {ladder ? ladder->name + "  \xE2\x80\x93  " + local_time_text(ladder->created_at) : "no ladder"};
    }
    case HistoryGroup::stage:
      return {or_none(entry.run.stage, "baseline or no stage")};
    case HistoryGroup::hardware:
      return {or_none(entry.run.hardware, "unknown hardware")};
    case HistoryGroup::precision:
      return {or_none(entry.run.precision, "unknown precision")};
    case HistoryGroup::status:
      return {std::string(to_string(entry.run.status))};
    case HistoryGroup::tag:
      return entry.curation.tags.empty() ? std::vector<std::string>{"no tag"} : entry.curation.tags;
    default:
      return {""};
  }
}

// Lists forks beneath their parents, rungs beneath their baselines.
void add_tree(std::vector<HistoryRow>& rows, const std::vector<const RunEntry*>& sorted, const Workspace& workspace) {
  std::map<RunId, std::vector<const RunEntry*>> children;
  std::set<RunId> listed;
  for (const RunEntry* entry : sorted) listed.insert(entry->run.id);
  std::vector<const RunEntry*> roots;
  for (const RunEntry* entry : sorted) {
    RunId above = entry->run.parent.value_or(0);
    if (above == 0 && entry->run.ladder && (entry->run.rung > 0 || entry->run.repeat > 0)) {
      const std::vector<const RunEntry*> ladder = workspace.runs_of(*entry->run.ladder);
      if (!ladder.empty() && ladder.front() != entry) above = ladder.front()->run.id;
    }
    if (listed.contains(above)) {
      children[above].push_back(entry);
    } else {
      roots.push_back(entry);
    }
  }
  const std::function<void(const RunEntry*, int)> add = [&](const RunEntry* entry, int depth) {
    rows.push_back({.entry = entry, .depth = depth});
    auto below = children[entry->run.id];
    std::stable_sort(below.begin(), below.end(), [](const RunEntry* a, const RunEntry* b) {
      return std::pair(a->run.rung, a->run.repeat) < std::pair(b->run.rung, b->run.repeat);
    });
    if (depth < 40) {
      for (const RunEntry* child : below) add(child, depth + 1);
    }
  };
  for (const RunEntry* root : roots) add(root, 0);
}

std::set<std::string> recipe_names(const Workspace& workspace) {
  std::set<std::string> names;
  for (const RunEntry& entry : workspace.runs()) add_recipe_names(entry.run, names);
  return names;
}

std::set<std::string> metric_names(const Workspace& workspace) {
  std::set<std::string> names;
  if (!workspace.project_metrics) return names;
  for (const Metric& metric : workspace.project_metrics->names) names.insert(metric.name);
  return names;
}

std::vector<const RunEntry*> listed_runs(const HistoryRows& list, const Workspace& workspace) {
  std::vector<const RunEntry*> listed;
  for (const RunEntry& entry : workspace.runs())
    if (list.archived || !entry.curation.archived) listed.push_back(&entry);
  return listed;
}

// The listed runs that pass a filter. Throws FilterError if it can't be parsed, or if its metrics haven't been read.
std::vector<const RunEntry*> passing(const std::string& text, HistoryRows& list, const Workspace& workspace) {
  constexpr const char* reading = "Reading metrics...";
  RunContext context;
  context.hardware = workspace.hardware;
  context.factor = [&](RunId run) {
    const RunEntry* entry = workspace.find(run);
    return entry ? cell_value("factor", *entry, {&workspace, list.baseline}) : missing;
  };
  for (const RunEntry& entry : workspace.runs()) {
    context.repeats.add(entry.run);
    context.curations.emplace(entry.run.id, entry.curation);
  }
  const FigureTable none;
  const FigureTable& metrics = workspace.project_metrics ? workspace.project_metrics->table : none;
  bool asked_for_metrics = false;
  try {
    const RunFilter filter(text, {.recipe = [&] { return recipe_names(workspace); },
                                  .metrics =
                                      [&] {
                                        asked_for_metrics = true;
                                        return metric_names(workspace);
                                      }});
    list.filter_figures = filter.figures();
    for (const MetricFigure& figure : list.filter_figures)
      if (!metrics.has(figure)) throw FilterError(reading);
    std::vector<const RunEntry*> found = listed_runs(list, workspace);
    std::erase_if(found,
                  [&](const RunEntry* entry) { return !filter.accepts(entry->run, entry->summary, context, metrics); });
    return found;
  } catch (const FilterError&) {
    if (asked_for_metrics && !workspace.project_metrics) throw FilterError(reading);
    throw;
  }
}

// None while the filter can't be applied, so that nothing acts on runs that nobody asked for.
std::vector<const RunEntry*> matching_runs(HistoryRows& list, const Workspace& workspace) {
  list.filter_problem.clear();
  list.filter_figures.clear();
  try {
    return passing(list.filter.data(), list, workspace);
  } catch (const FilterError& error) {
    list.filter_problem = error.why;
    return {};
  }
}

// Sorts by the chosen column: pinned runs first, then numbers, then words; last, in either direction, NaN and what is
// missing.
std::vector<const RunEntry*> sorted(const std::vector<const RunEntry*>& found, const HistoryRows& list,
                                    HistoryColumns& columns, const Workspace& workspace) {
  const ColumnContext context{&workspace, list.baseline};
  const RunColumn* chosen = columns.find(list.sorted_by);
  const RunColumn column = chosen ? *chosen : RunColumn{.id = list.sorted_by, .kind = ColumnKind::text};
  const bool by_text = column.kind != ColumnKind::number;
  struct Keyed {
    const RunEntry* entry;
    double value;
    std::string text;
    int place;
  };
  std::vector<Keyed> keyed;
  for (const RunEntry* entry : found) {
    Keyed key{.entry = entry, .value = by_text ? missing : cell_value(column, *entry, context), .text = {}, .place = 0};
    if (is_missing(key.value)) key.text = cell_text(column, *entry, context);
    const bool has_none = key.text.empty() || (!by_text && (key.text == "-" || key.text == "..."));
    key.place = !std::isnan(key.value) ? 0 : !is_missing(key.value) ? 2 : has_none ? 3 : 1;
    keyed.push_back(std::move(key));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& first, const Keyed& second) {
    if (first.entry->curation.pinned != second.entry->curation.pinned) return first.entry->curation.pinned;
    if (first.place != second.place) return first.place < second.place;
    const Keyed& a = list.ascending ? first : second;
    const Keyed& b = list.ascending ? second : first;
    if (a.place == 0 && a.value != b.value) return a.value < b.value;
    return a.text != b.text ? a.text < b.text : a.entry->run.id < b.entry->run.id;
  });
  std::vector<const RunEntry*> entries;
  entries.reserve(keyed.size());
  for (const Keyed& key : keyed) entries.push_back(key.entry);
  return entries;
}

// ", loss 3.05 (2.99 - 3.20)": the mean over the group's runs and, of several, their range; empty if none has a value.
std::string figure_text_of(const std::vector<const RunEntry*>& runs, const RunColumn& column,
                           const ColumnContext& context) {
  std::vector<double> values;
  for (const RunEntry* entry : runs) values.push_back(cell_value(column, *entry, context));
  const SweptFigure figure = figure_of(values);
  if (figure.runs == 0) return "";
  const auto text = [&](double value) {
    return column.id.find("loss") != std::string::npos ? loss_text(value) : compact_in_unit(value);
  };
  const std::string range = figure.low < figure.high ? " (" + text(figure.low) + " - " + text(figure.high) + ")" : "";
  return ", " + column.title + " " + text(figure.mean) + range;
}

std::string figures_of(const std::vector<const RunEntry*>& runs, const HistoryRows& list, HistoryColumns& columns,
                       const ColumnContext& context) {
  std::string text;
  for (const std::string& id : {std::string("val_loss_last"), std::string("loss_last"), list.sorted_by}) {
    const RunColumn* column = columns.find(id);
    if (!column || column->kind != ColumnKind::number || id == "created" || id == "id") continue;
    if (text.empty() || id == list.sorted_by) text += figure_text_of(runs, *column, context);
    if (id == list.sorted_by) break;
  }
  return text;
}

// Adds a head for each group, with its runs beneath it unless it is folded. A run with two tags is in both groups.
// Ladders are in the order of their runs, the others in that of their values.
void add_groups(HistoryRows& list, HistoryColumns& columns, const std::vector<const RunEntry*>& entries,
                const Workspace& workspace) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const RunEntry*>> groups;
  for (const RunEntry* entry : entries) {
    for (const std::string& name : groups_of(*entry, list, workspace)) {
      if (!groups.contains(name)) order.push_back(name);
      groups[name].push_back(entry);
    }
  }
  if (!list.group_value.empty() || list.group != HistoryGroup::ladder)
    std::ranges::stable_sort(order, [](const std::string& a, const std::string& b) {
      return a.empty() != b.empty() ? b.empty() : value_before(a, b);
    });
  for (const std::string& name : order) {
    const std::string head = list.group_value.empty() ? name
                             : name.empty()           ? "no " + list.group_value
                                                      : list.group_value + " = " + name;
    list.rows.push_back({.head = head,
                         .runs = groups[name].size(),
                         .figures = figures_of(groups[name], list, columns, {&workspace, list.baseline})});
    if (list.folded.contains(head)) continue;
    for (const RunEntry* entry : groups[name]) list.rows.push_back({.entry = entry, .depth = 1});
  }
}

// What the default columns follow. Of recipes with very many differing values, those come first that the most runs
// have.
ListedValues shape_of(const std::vector<const RunEntry*>& runs, const ColumnContext& context) {
  ListedValues shape;
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::string> of_all;  // each run's value: equal columns are one (batch, batch_size)
  std::map<std::string, std::size_t> having;
  for (const RunEntry* entry : runs) {
    for (const auto& [name, value] : parsed_recipe(*entry)) {
      if (differs_between_repeats(name) || name == "log_family") continue;
      values[name].insert(value);
      of_all[name] += std::to_string(entry->run.id) + " " + value + "\n";
      ++having[name];
    }
  }
  std::set<std::string> shown;
  for (const auto& [name, different] : values)
    if (different.size() > 1 && shown.insert(of_all[name]).second) shape.differing.push_back(name);
  std::ranges::stable_sort(shape.differing, std::greater{}, [&](const std::string& name) { return having[name]; });
  for (const RunColumn& column : measured_columns()) {
    if (!column.at_first || column.kind == ColumnKind::spark || column.kind == ColumnKind::status) continue;
    const auto is_empty = [&](const RunEntry* run) {
      return column.kind == ColumnKind::number ? is_missing(cell_value(column, *run, context))
                                               : cell_text(column, *run, context).empty();
    };
    if (std::ranges::all_of(runs, is_empty)) shape.empty.insert(column.id);
    const auto repeats = [&](const RunEntry* run) {
      const std::string text = cell_text(column, *run, context);
      return text == cell_text(column, *runs.front(), context) || run->run.name.ends_with(text);
    };
    if (column.kind == ColumnKind::text && runs.size() > 1 && std::ranges::all_of(runs, repeats))
      shape.repeating.insert(column.id);
  }
  return shape;
}

}  // namespace

const std::vector<std::string>& history_group_names() {
  static const std::vector<std::string> names{"none",     "ladder",    "lineage", "stage",
                                              "hardware", "precision", "status",  "tag"};
  return names;
}

const SpeedDoubt& HistoryRows::doubt_of(const RunEntry& entry, const Workspace& workspace) {
  const auto [known, is_new] = doubts.try_emplace(entry.run.id);
  if (is_new) known->second = speed_doubt(entry, workspace.hardware);
  return known->second;
}

void HistoryRows::update(HistoryColumns& columns, const Workspace& workspace) {
  std::string wanted = std::string(filter.data()) + '\n' + sorted_by + (ascending ? "+" : "-") +
                       std::to_string(static_cast<int>(group)) + group_value + (archived ? "a" : "") + "/" +
                       std::to_string(workspace.version) + "/" + std::to_string(baseline) + "/" +
                       std::to_string(workspace.project_metrics ? workspace.project_metrics->reading : 0);
  for (const std::string& head : folded) wanted += '\n' + head;
  if (wanted == made_for) return;
  made_for = std::move(wanted);
  rows.clear();
  doubts.clear();
  const std::vector<const RunEntry*> found = matching_runs(*this, workspace);
  matching = found.size();
  listed.clear();
  longest_name = 0;
  for (const RunEntry* entry : found) {
    listed.insert(entry->run.id);
    longest_name = std::max(longest_name, entry->run.name.size());
  }
  const std::vector<const RunEntry*> entries = sorted(found, *this, columns, workspace);
  if (filter_problem.empty()) shape = shape_of(found, {&workspace, baseline});  // else the columns stay
  if (group_value.empty() && group == HistoryGroup::tree) return add_tree(rows, entries, workspace);
  if (!group_value.empty() || group != HistoryGroup::none) return add_groups(*this, columns, entries, workspace);
  for (const RunEntry* entry : entries) rows.push_back({.entry = entry});
}

}  // namespace stepladder
