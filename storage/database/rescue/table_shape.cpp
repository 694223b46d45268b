#include "storage/database/rescue/table_shape.h"

#include <algorithm>

namespace stepladder {
namespace {

ShapeColumn::Holds held_by(const std::string& type) {
  if (type == "TEXT") return ShapeColumn::Holds::text;
  if (type == "BLOB" || type.empty()) return ShapeColumn::Holds::anything;
  return ShapeColumn::Holds::numbers;
}

bool fits_column(const ShapeColumn& column, const Value& value) {
  using Kind = Value::Kind;
  if (column.is_rowid) return value.kind == Kind::null;
  if (value.kind == Kind::null) return !column.not_null;
  switch (column.holds) {
    case ShapeColumn::Holds::numbers:
      return value.kind == Kind::integer || value.kind == Kind::real;
    case ShapeColumn::Holds::text:
      return value.kind == Kind::text || value.kind == Kind::blob;
    case ShapeColumn::Holds::anything:
      return true;
  }
  return false;
}

TableShape shape_of(Database& database, const std::string& name, const std::string& sql) {
  struct Column {
    ShapeColumn shape;
    std::int64_t key;  // its place in the primary key; 0: not in it
    bool has_default;
  };
  TableShape table{.name = name, .is_index = sql.find("WITHOUT ROWID") != std::string::npos};
  std::vector<Column> columns;
  Statement rows(database,
                 "SELECT name, upper(type), \"notnull\", dflt_value, pk FROM pragma_table_xinfo(?) "
                 "WHERE hidden IN (0, 3) ORDER BY cid",
                 name);
  while (rows.step()) {
    Column& column = columns.emplace_back();
    column.shape = {.name = rows.text(0), .holds = held_by(rows.text(1)), .not_null = rows.integer(2) != 0};
    column.has_default = !rows.is_null(3);
    column.key = rows.integer(4);
    column.shape.is_rowid = !table.is_index && column.key == 1 && rows.text(1) == "INTEGER";
    if (table.is_index && column.key > 0) column.shape.not_null = true;
  }
  // A table WITHOUT ROWID is stored with its key first.
  if (table.is_index) {
    std::stable_sort(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
      return (a.key == 0 ? 1'000 : a.key) < (b.key == 0 ? 1'000 : b.key);
    });
  }
  for (const Column& column : columns) {
    table.columns.push_back(column.shape);
    if ((column.shape.not_null && !column.has_default) || column.key > 0) table.fewest_values = table.columns.size();
  }
  return table;
}

}  // namespace

bool TableShape::fits(const std::vector<Value>& values) const {
  if (values.size() < fewest_values || values.size() > columns.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!fits_column(columns[i], values[i])) return false;
  return true;
}

std::size_t TableShape::index_of(const std::string& column) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](auto& it) { return it.name == column; });
  return static_cast<std::size_t>(found - columns.begin());
}

std::vector<TableShape> table_shapes(Database& database) {
  std::vector<TableShape> tables;
  Statement rows(database,
                 "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL ORDER BY rowid");
  while (rows.step()) tables.push_back(shape_of(database, rows.text(0), rows.text(1)));
  return tables;
}

}  // namespace stepladder
