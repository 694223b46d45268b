// Parses b-tree pages, cells and records of SQLite's file format from bytes that may be damaged. Each length is checked
// against the page before it is used; a bad cell is reported by itself and leaves the others readable.
#include "storage/database/rescue/btree_page.h"

#include <bit>

#include "storage/database/rescue/byte_file.h"

namespace stepladder {
namespace {

constexpr std::size_t file_header_size = 100;
constexpr std::size_t most_values = 200;  // columns of a table

// Moves `bytes` behind the number; nullopt if it ends too early.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 9 && i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value = i == 8 ? value << 8 | byte : value << 7 | (byte & 0x7f);
    if (i == 8 || byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

// The number of a payload's bytes that are in its cell.
std::size_t local_bytes(std::uint64_t payload, std::size_t usable, PageKind kind) {
  const std::size_t most = kind == PageKind::leaf_table ? usable - 35 : (usable - 12) * 64 / 255 - 23;
  if (payload <= most) return static_cast<std::size_t>(payload);
  const std::size_t least = (usable - 12) * 32 / 255 - 23;
  const std::size_t local = least + static_cast<std::size_t>((payload - least) % (usable - 4));
  return local <= most ? local : least;
}

std::optional<Cell> parse_cell(std::string_view bytes, std::size_t usable, PageKind kind) {
  Cell cell;
  if (is_inner(kind)) {
    if (bytes.size() < 4) return std::nullopt;
    cell.child = big_endian_u32(bytes, 0);
    bytes.remove_prefix(4);
    if (kind == PageKind::inner_table) return cell;  // its key is that of a row below
  }
  constexpr std::uint64_t most_payload = 64 << 20;  // as for every connection
  const auto payload = take_varint(bytes);
  if (!payload || *payload < 2 || *payload > most_payload) return std::nullopt;
  cell.payload_bytes = static_cast<std::int64_t>(*payload);
  if (kind == PageKind::leaf_table) {
    const auto rowid = take_varint(bytes);
    if (!rowid) return std::nullopt;
    cell.rowid = static_cast<std::int64_t>(*rowid);
  }
  const std::size_t local = local_bytes(*payload, usable, kind);
  if (bytes.size() < local) return std::nullopt;
  cell.local = bytes.substr(0, local);
  if (local == *payload) return cell;
  if (bytes.size() < local + 4) return std::nullopt;
  cell.overflow = big_endian_u32(bytes, local);
  return cell;
}

// Bytes of a value of this serial type; nullopt for the two reserved ones.
std::optional<std::uint64_t> value_bytes(std::uint64_t type) {
  constexpr std::uint64_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
  if (type < 10) return sizes[type];
  if (type < 12) return std::nullopt;
  return (type - 12) / 2;
}

Value parse_value(std::uint64_t type, std::string_view bytes) {
  if (type == 0) return {};
  if (type >= 12) return {.kind = type % 2 == 0 ? Value::Kind::blob : Value::Kind::text, .bytes = bytes};
  if (type >= 8) return {.kind = Value::Kind::integer, .integer = type == 9 ? 1 : 0};
  std::uint64_t bits = (static_cast<unsigned char>(bytes[0]) & 0x80) != 0 ? ~std::uint64_t{0} : 0;
  for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
  if (type == 7) return {.kind = Value::Kind::real, .real = std::bit_cast<double>(bits)};
  return {.kind = Value::Kind::integer, .integer = static_cast<std::int64_t>(bits)};
}

}  // namespace

std::optional<BtreePage> parse_btree_page(std::string_view bytes, bool is_first_page_of_file) {
  const std::size_t header = is_first_page_of_file ? file_header_size : 0;
  BtreePage page{.kind = static_cast<PageKind>(bytes[header])};
  switch (page.kind) {
    case PageKind::inner_index:
    case PageKind::inner_table:
    case PageKind::leaf_index:
    case PageKind::leaf_table:
      break;
    default:
      return std::nullopt;
  }
  const std::size_t count = big_endian_u16(bytes, header + 3);
  const std::size_t pointers = header + (is_inner(page.kind) ? 12 : 8);
  const std::size_t cells_begin = pointers + 2 * count;
  if (cells_begin > bytes.size()) return std::nullopt;
  if (is_inner(page.kind)) page.last_child = big_endian_u32(bytes, header + 8);
  bool any = count == 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = big_endian_u16(bytes, pointers + 2 * i);
    page.cells.push_back(
        at < cells_begin || at >= bytes.size() ? std::nullopt : parse_cell(bytes.substr(at), bytes.size(), page.kind));
    any = any || page.cells.back().has_value();
  }
  if (!any) return std::nullopt;
  return page;
}

bool parse_record(std::string_view payload, std::vector<Value>& values) {
  values.clear();
  std::string_view types = payload;
  const auto header = take_varint(types);
  if (!header || *header > payload.size() || *header < payload.size() - types.size()) return false;
  types = types.substr(0, static_cast<std::size_t>(*header) - (payload.size() - types.size()));
  std::string_view rest = payload.substr(static_cast<std::size_t>(*header));
  while (!types.empty()) {
    const auto type = take_varint(types);
    if (!type) return false;
    const auto size = value_bytes(*type);
    if (!size || *size > rest.size() || values.size() == most_values) return false;
    values.push_back(parse_value(*type, rest.substr(0, static_cast<std::size_t>(*size))));
    rest.remove_prefix(static_cast<std::size_t>(*size));
  }
  return rest.empty();
}

}  // namespace stepladder
