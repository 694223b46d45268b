// The History view's columns: all of them, those shown, and those that fit. UI thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/desktop/models/run_columns.h"

namespace stepladder {

inline constexpr std::size_t most_columns_shown = 64;

// What the listed runs have, which the default columns follow.
struct ListedValues {
  std::vector<std::string>
      differing;                // names of recipe values that differ between them, each in its own way, but for seeds
  std::set<std::string> empty;  // ids of default columns without any value
  std::set<std::string> repeating;  // whose text all runs share, or repeats the end of their names: not on the screen

  bool operator==(const ListedValues&) const = default;
};

struct HistoryColumns {
  std::vector<std::string> shown;  // in order, after the name
  std::vector<RunColumn> known;    // all that can be shown, but for metrics'
  std::uint64_t known_for = 0;
  bool has_tags = false;                     // of any run
  std::int64_t units_of = 0;                 // ProjectMetrics::reading that `metrics` have their units of
  std::map<std::string, RunColumn> metrics;  // those that were asked for, by id

  void update(const Workspace& workspace);
  const RunColumn* find(const std::string& id);  // null if there is no such column; valid until update
  bool shows(const std::string& id) const;
  void add(const std::string& id);  // a metric's column after the run's name and other metrics, others last
  void remove(const std::string& id);
  void move(const std::string& id, int places);  // to the right; to the left if negative
  std::vector<MetricFigure> figures();           // that the shown columns have

  // All columns that are shown: those that the user chose; else the default ones that have values and, after the usual
  // ones up to the factor, the first values of the recipe that differ.
  std::vector<const RunColumn*> wanted(const ListedValues& listed);
  bool is_default() const;  // whether the user chose none

  // The columns of a table of this width: all that the user chose, and the table scrolls if it is too narrow for them;
  // of the default columns, only those that fit. A few go so that names are whole, others only if there is no room.
  std::vector<const RunColumn*> fit(float width, float name_width, const ListedValues& listed);  // in pixels
  std::vector<std::string> left_out;  // titles of the columns that the last fit has hidden
};

float least_name_width();                                                            // in pixels
float wanted_width(const std::vector<const RunColumn*>& columns, float name_width);  // of the table, in pixels

void draw_left_out_columns(const HistoryColumns& columns);

}  // namespace stepladder
