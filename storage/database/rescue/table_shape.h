// The shape that records must have to be rows of a table: by this, a page is recognised whose place in the file is
// lost. Inside storage/ only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/rescue/btree_page.h"

namespace stepladder {

struct ShapeColumn {
  enum class Holds : unsigned char { numbers, text, anything };
  std::string name;
  Holds holds = Holds::anything;
  bool not_null = false;
  bool is_rowid = false;  // the record has NULL in its place
};

struct TableShape {
  std::string name;
  bool is_index = false;             // stored as one: WITHOUT ROWID
  std::vector<ShapeColumn> columns;  // as they are in a record, without computed ones
  std::size_t fewest_values = 0;     // rows that are older than a column lack it

  bool fits(const std::vector<Value>& values) const;
  std::size_t index_of(const std::string& column) const;  // columns.size() if there is no such column
};

// The tables of a database in the order in which they were created.
std::vector<TableShape> table_shapes(Database& database);

}  // namespace stepladder
