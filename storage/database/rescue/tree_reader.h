// Reads the rows of b-trees whose pages may be damaged, each page at most once. Inside storage/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/rescue/btree_page.h"
#include "storage/database/rescue/page_file.h"

namespace stepladder {

// The shape that records must have to be rows of a table: by this, a page is recognised whose place in the file is
// lost. Inside storage/ only.

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

struct RawRow {
  std::int64_t rowid = 0;
  std::vector<Value> values;  // until the next row
  std::string assembled;      // what they point into, of a row with overflow pages
  bool is_doubtful = false;   // an overflow page seems to be another's
};

class TreeReader {
 public:
  struct Uses {
    std::function<void(const RawRow&)> row;
    std::function<void()> damaged_row;
    std::function<void()> damaged_page;  // with everything below it
  };

  explicit TreeReader(PageFile& file);

  // The tree's rows in the order of its keys, as far as they are rows of `shape`; damage is reported where it is. Null:
  // no rows, only marks the pages as read.
  void read_tree(std::uint32_t root, const TableShape* shape, const Uses& uses);

  // Pages that no tree has led to. Each is taken for a page of that one of `shapes` that fits most of its rows. Call
  // after read_tree of all trees.
  void read_lost_pages(const std::vector<const TableShape*>& shapes,
                       const std::function<void(const TableShape&, const RawRow&)>& use);

 private:
  bool read_page(std::uint32_t number, int depth);  // false: not a page of this tree
  std::vector<std::optional<RawRow>> rows_of(const BtreePage& page, const TableShape& shape);

  PageFile& file_;
  std::vector<bool> read_;  // by page number
  const TableShape* shape_ = nullptr;
  const Uses* uses_ = nullptr;
};

}  // namespace stepladder
