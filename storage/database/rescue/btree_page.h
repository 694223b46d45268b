// Pages of SQLite's b-trees (https://sqlite.org/fileformat2.html#b_tree_pages), read without SQLite, since it gives up
// a whole tree where one of its pages is damaged. Nothing is trusted: every offset is checked. Inside storage/ only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stepladder {

enum class PageKind : unsigned char { inner_index = 0x02, inner_table = 0x05, leaf_index = 0x0a, leaf_table = 0x0d };

// A table WITHOUT ROWID is an index tree: its inner pages hold rows as well.
constexpr bool is_of_index(PageKind kind) {
  return kind == PageKind::inner_index || kind == PageKind::leaf_index;
}
constexpr bool is_inner(PageKind kind) {
  return kind == PageKind::inner_index || kind == PageKind::inner_table;
}

struct Cell {
  std::uint32_t child = 0;  // of an inner page: the subtree before this cell
  std::int64_t rowid = 0;
  std::int64_t payload_bytes = 0;
  std::string_view local;      // the payload's beginning, all of it if there is no overflow page
  std::uint32_t overflow = 0;  // the first page of its rest
};

struct BtreePage {
  PageKind kind{};
  std::vector<std::optional<Cell>> cells;  // in the order of keys; nullopt: damaged
  std::uint32_t last_child = 0;            // of an inner page
};

// `bytes` is a whole page, without its reserved bytes, and must outlive the result. nullopt: not a page of a b-tree.
std::optional<BtreePage> parse_btree_page(std::string_view bytes, bool is_first_page_of_file);

struct Value {
  enum class Kind : unsigned char { null, integer, real, text, blob } kind = Kind::null;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view bytes;
};

// The values of a record, into `values`; false if it is damaged.
bool parse_record(std::string_view payload, std::vector<Value>& values);

}  // namespace stepladder
