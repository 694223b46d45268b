// Walks trees depth first and marks each page that it has read, so damage can't make it read a page twice or loop. A
// page counts for a table only if at least half of its rows fit; the same rule assigns lost pages, which must fit one
// table best.
#include "storage/database/rescue/tree_reader.h"

#include <algorithm>
#include <utility>

#include "storage/bounded_text.h"

namespace stepladder {
namespace {

constexpr int deepest_tree = 20;  // SQLite's own limit

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = text.front() == '\0' ? 0 : utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

TreeReader::TreeReader(PageFile& file) : file_(file), read_(file.pages() + std::size_t{1}) {
  bool whole = false;
  for (const std::uint32_t page : file.pages_without_rows(whole))
    if (page < read_.size()) read_[page] = true;
}

void TreeReader::read_tree(std::uint32_t root, const TableShape* shape, const Uses& uses) {
  shape_ = shape;
  uses_ = &uses;
  if (!read_page(root, 0)) uses.damaged_page();
}

std::vector<std::optional<RawRow>> TreeReader::rows_of(const BtreePage& page, const TableShape& shape) {
  std::vector<std::optional<RawRow>> rows(page.cells.size());
  if (page.kind == PageKind::inner_table) return rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!page.cells[i]) continue;
    const Cell& cell = *page.cells[i];
    RawRow row{.rowid = cell.rowid};
    std::string_view payload = cell.local;
    if (cell.overflow != 0) {
      const auto rest =
          file_.overflow(cell.overflow, cell.payload_bytes - static_cast<std::int64_t>(cell.local.size()));
      row.assembled = std::string(cell.local) + rest.content;
      row.is_doubtful = !rest.ends_there;
      payload = row.assembled;
    }
    if (std::ssize(payload) != cell.payload_bytes || !parse_record(payload, row.values) || !shape.fits(row.values))
      continue;
    for (const Value& value : row.values)
      if (cell.overflow != 0 && value.kind == Value::Kind::text && !is_utf8(value.bytes)) row.is_doubtful = true;
    rows[i] = std::move(row);  // a long text keeps its place when it is moved
  }
  return rows;
}

bool TreeReader::read_page(std::uint32_t number, int depth) {
  if (number == 0 || number >= read_.size() || read_[number] || depth > deepest_tree) return false;
  const std::string bytes = file_.page(number);
  const auto page = parse_btree_page(bytes, number == 1);
  if (!page || (shape_ && is_of_index(page->kind) != shape_->is_index)) return false;
  if (depth > 0 && page->cells.empty()) return false;
  const bool has_rows = shape_ && page->kind != PageKind::inner_table;
  const auto rows = has_rows ? rows_of(*page, *shape_) : std::vector<std::optional<RawRow>>(page->cells.size());
  const auto good = std::ranges::count_if(rows, [](const auto& row) { return row.has_value(); });
  if (has_rows && 2 * good < std::ssize(rows)) return false;
  read_[number] = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_inner(page->kind) && (!page->cells[i] || !read_page(page->cells[i]->child, depth + 1)))
      uses_->damaged_page();
    if (rows[i])
      uses_->row(*rows[i]);
    else if (has_rows)
      uses_->damaged_row();
  }
  if (is_inner(page->kind) && !read_page(page->last_child, depth + 1)) uses_->damaged_page();
  return true;
}

void TreeReader::read_lost_pages(const std::vector<const TableShape*>& shapes,
                                 const std::function<void(const TableShape&, const RawRow&)>& use) {
  if (shapes.empty()) return;
  for (std::uint32_t number = 1; number < read_.size(); ++number) {
    if (read_[number]) continue;
    const std::string bytes = file_.page(number);
    const auto page = parse_btree_page(bytes, number == 1);
    if (!page || page->cells.empty()) continue;
    const TableShape* best = nullptr;
    std::vector<std::optional<RawRow>> rows;
    std::ptrdiff_t most = (std::ssize(page->cells) - 1) / 2;  // less than half isn't enough
    for (const TableShape* shape : shapes) {
      if (is_of_index(page->kind) != shape->is_index) continue;
      auto found = rows_of(*page, *shape);
      const auto good = std::ranges::count_if(found, [](const auto& row) { return row.has_value(); });
      if (good == most && best) best = nullptr;  // it could be of two tables
      if (good <= most) continue;
      most = good;
      best = shape;
      rows = std::move(found);
    }
    if (!best) continue;
    read_[number] = true;
    for (const auto& row : rows)
      if (row) use(*best, *row);
  }
}

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
    std::ranges::stable_sort(columns, [](const Column& a, const Column& b) {
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
  const auto found = std::ranges::find_if(columns, [&](auto& it) { return it.name == column; });
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
