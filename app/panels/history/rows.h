// The rows of the History view: the runs that pass the filter, sorted and grouped. UI thread.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/panels/history/columns.h"

namespace stepladder {

enum class HistoryGroup { none, ladder, tree, stage, hardware, precision, status, tag };
const std::vector<std::string>& history_group_names();  // in that order, then come the values of recipes

// A line of the table: a run, or the head of a group.
struct HistoryRow {
  const RunEntry* entry = nullptr;  // null: a head
  std::string head;
  std::size_t runs = 0;  // of a group
  std::string figures;   // of a group: mean and range of its losses and of the numbers that the table is sorted by
  int depth = 0;
};

struct HistoryRows {
  // The user's choices.
  std::array<char, 1024> filter{};
  std::string sorted_by = "created";
  bool ascending = false;
  HistoryGroup group = HistoryGroup::none;
  std::string group_value;  // the name of a value of the recipe, which the runs are grouped by instead; empty: none
  bool archived = false;    // whether archived runs are shown too
  std::set<std::string> folded;
  RunId baseline = 0;

  // Derived from these; again when they, or a run, have changed.
  std::vector<HistoryRow> rows;
  std::size_t matching = 0;
  std::set<RunId> listed;        // the runs that pass the filter, in folded groups too
  std::size_t longest_name = 0;  // of theirs, in bytes
  ListedValues shape;            // of theirs
  std::string filter_problem;    // why the filter can't be applied; then no run is listed
  std::vector<MetricFigure> filter_figures;
  std::string made_for;
  std::map<RunId, SpeedDoubt> doubts;  // of drawn rows only, see doubt_of

  const SpeedDoubt& doubt_of(const RunEntry& entry, const Workspace& workspace);

  void update(HistoryColumns& columns, const Workspace& workspace);
};

}  // namespace stepladder
