// The cells and rows of the Profile view's tables. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/icicle.h"
#include "app/panels/profile/tables.h"

namespace stepladder {

inline constexpr float table_cell_size = 13.5f;

struct TableHead {
  std::string name;
  float width;  // 0: the rest
  bool is_right;
  int column = -1;  // of a TableSort; -1: it isn't sorted by this one
};

// Ends with ImGui::EndTable(); false: there is no room.
bool begin_table(const char* name, const std::vector<TableHead>& heads, TableSort& sort, int frozen_rows = 1);

// Begins a row that can be clicked, in its first cell. Of a row without slices only the names are marked.
void begin_row(std::size_t number, const SliceChoice& row, TableUse& use);

void left_text(const std::string& text, const ImVec4& colour, ImFont* font = nullptr);
void left_cell(const std::string& text, const ImVec4& colour, ImFont* font = nullptr);
void right_cell(const std::string& text, const ImVec4* colour = nullptr, ImFont* font = nullptr);
void kind_text(OperatorKind kind);  // its name beside its colour, or the colour alone if there is little room

std::string change_text(double ms, double whole_ms);  // "-1.20", "=" if it is almost nothing of the whole
// Less time is good; a small change has no colour, nor has one that is no verdict.
const ImVec4& change_colour(double ms, double whole_ms, bool is_verdict);

// What a row is sorted by: a number, or a text.
struct TableSortKey {
  double number = missing;
  std::string text = {};
};

// Unknown numbers are last, either way.
template <class Rows, class KeyOf>
void sort_rows(Rows& rows, const TableSort& sort, const KeyOf& key_of) {
  if (sort.column < 0) return;
  std::vector<std::pair<TableSortKey, typename Rows::value_type>> keyed;
  keyed.reserve(rows.size());
  for (auto& row : rows) keyed.emplace_back(key_of(row), row);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& one, const auto& other) {
    const TableSortKey &a = one.first, &b = other.first;
    if (is_missing(a.number) != is_missing(b.number)) return is_missing(b.number);
    if (!is_missing(a.number)) return sort.descending ? a.number > b.number : a.number < b.number;
    return sort.descending ? a.text > b.text : a.text < b.text;
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = keyed[i].second;
}

}  // namespace stepladder
