// Changes values of a project as a stranger's own tool may: by SQL, without any of the schema's checks. The input is a
// list of changes: table, column, row, kind of change, value.
#pragma once

#include <sqlite3.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "storage/checksum.h"

namespace stepladder {

// The input's bytes from first to last; zeros behind its end.
class InputBytes {
 public:
  explicit InputBytes(std::string_view bytes) : bytes_(bytes) {}
  bool is_over() const { return bytes_.empty(); }
  std::size_t byte() {
    if (bytes_.empty()) return 0;
    const auto next = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return next;
  }
  std::string take(std::size_t most) {
    const std::string taken(bytes_.substr(0, most));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  template <class Number>
  Number number() {
    Number number{};
    const std::string bytes = take(sizeof number);
    std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }

 private:
  std::string_view bytes_;
};

struct Blob {
  std::string bytes;
};
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string, Blob>;

inline constexpr std::int64_t whole_numbers[] = {0,
                                                 1,
                                                 -1,
                                                 2,
                                                 3,
                                                 7,
                                                 24,
                                                 1'000'000'000,
                                                 0x7fff'ffff,
                                                 0x8000'0000,
                                                 -0x8000'0000LL,
                                                 1LL << 53,
                                                 1'000'000'000'000'000,
                                                 INT64_MAX,
                                                 INT64_MAX - 1,
                                                 INT64_MIN};
inline constexpr double real_numbers[] = {0.0,
                                          -0.0,
                                          0.5,
                                          1.0,
                                          -1.0,
                                          100.0,
                                          1e15,
                                          1.7e9,
                                          1e18,
                                          1e19,
                                          1e300,
                                          1e308,
                                          -1e308,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          5e-324,
                                          1e-310};
// What columns may hold, and what would be more than a value where it isn't checked.
inline constexpr std::string_view texts[] = {
    "",
    "x",
    " ",
    "1",
    "-1",
    "0x10",
    "NaN",
    "inf",
    "1e999",
    "null",
    "finished",
    "running",
    "queued",
    "launched",
    "import",
    "example",
    "cuda",
    "cpu",
    "bf16",
    "event",
    "lower",
    "higher",
    "loss",
    "val_loss",
    "dt_ms",
    "val/acc",
    "forward",
    "backward",
    "attention",
    "products",
    "idle",
    "name",
    "gpt2",
    "stop",
    "move",
    "<script>alert(1)</script>",
    "]]><b onload='alert(1)'>\"&lt;",
    "\x1b]0;title\x07\x1b[2J\x1b[31m",
    std::string_view("nul\0byte", 8),
    "\xff\xfe\x80",
    "\xed\xa0\x80",
    "\xf0\x9f",
    "\u202eright to left",
    "line\nfeed\r\nand more\n",
    "\n",
    "\t,\"';|",
    "=1+1",
    "%s%n%x",
    "../../x",
    "/dev/zero",
    "/dev/tty",
    ".",
    "-oProxyCommand=x",
    "$(id)",
    "$\\input{/etc/passwd}_^&#%~\\",
    "'; DROP TABLE runs; --",
    "{}",
    "[]",
    "[null]",
    "{\"a\":[1,{\"b\":2}]}",
    "\"x\"",
    "1e400",
    "{\"model\":1,\"batch\":\"x\",\"seq\":-1}",
    "{\"batch\":9223372036854775807,\"seq\":9223372036854775807,\"heads\":9223372036854775807,\"steps\":1e300}",
    "{\"model\":\"gpt2\",\"layers\":2147483647,\"d_model\":2147483647}",
    "{\"host\":[],\"hosts\":{},\"git\":1,\"argv\":null}",
    "{\"format\":1,\"panels\":[1],\"states\":[],\"runs\":{}}",
    "aten::addmm",
    "ampere_sgemm",
    "triton_poi_fused_gelu_add_0",
    "ncclKernel",
    "128x64 64x256",
    "0x0 0x0",
    "9223372036854775807x2 2x9223372036854775807",
    "99999999999999999999x1 x",
    "x x x",
    "-1x5 5x2",
    "NVIDIA H100 80GB HBM3",
    "journal 0123456789abcdef0123456789abcdef 0 1",
    "0123456789abcdef0123456789abcdef",
    "latest",
    "private: x",
    "view:mine",
    "view:",
    "checkpoints_to_remove"};

inline const std::vector<SqlValue>& hostile_values() {
  static const std::vector<SqlValue> values = [] {
    std::vector<SqlValue> all{std::monostate()};
    all.insert(all.end(), std::begin(whole_numbers), std::end(whole_numbers));
    all.insert(all.end(), std::begin(real_numbers), std::end(real_numbers));
    for (const std::string_view text : texts) all.emplace_back(std::string(text));
    for (const char letter : {'x', '\n', '['}) all.emplace_back(std::string(10'000, letter));
    for (const std::string_view bytes : {"", "\xff\xff\xff", "step 1 | loss 4.0 | dt 50ms\n", "\x1b[31m\r\r\r\n"})
      all.emplace_back(Blob{std::string(bytes)});
    all.emplace_back(Blob{std::string(100'000, 'a')});
    return all;
  }();
  return values;
}

inline const std::vector<const char*>& json_fragments() {
  static const std::vector<const char*> fragments{"null",
                                                  "true",
                                                  "false",
                                                  "0",
                                                  "-1",
                                                  "1",
                                                  "1.5",
                                                  "1e308",
                                                  "-1e308",
                                                  "5e-324",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551615",
                                                  "2147483648",
                                                  "\"\"",
                                                  "\"x\"",
                                                  "\"1\"",
                                                  "\"NaN\"",
                                                  "\"\\u0000\"",
                                                  "\"\\ud800\"",
                                                  "\"\\u001b[31m\"",
                                                  "\"<script>alert(1)</script>\"",
                                                  "[]",
                                                  "{}",
                                                  "[null]",
                                                  "[[[[[[[[]]]]]]]]",
                                                  "{\"a\":{\"a\":{\"a\":null}}}",
                                                  "[1,\"x\",{}]",
                                                  "{\"run\":1}",
                                                  "{\"run\":-1}",
                                                  "{\"run\":\"x\"}",
                                                  "\"/dev/zero\"",
                                                  "\"gpt2\"",
                                                  "\"auto\"",
                                                  "\"../../x\""};
  return fragments;
}

class ValueChanges {
 public:
  // Makes this sound file one without NOT NULL, and remembers its tables.
  explicit ValueChanges(const std::filesystem::path& sound) : sound_(sound) {
    Connection file(sound);
    file.execute("PRAGMA writable_schema = ON; PRAGMA synchronous = OFF");
    for (const Row& row :
         file.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")) {
      Table table{.name = text(row[0]), .sql = text(row[1])};
      for (const Row& column : file.rows("PRAGMA table_xinfo(" + table.name + ")"))
        if (text(column[6]) == "0") table.columns.push_back(text(column[1]));
      for (const Row& column : file.rows("PRAGMA table_info(" + table.name + ")"))
        if (text(column[5]) != "0") table.key += (table.key.empty() ? "" : ", ") + text(column[1]);
      table.rows = std::stoul(text(file.rows("SELECT count(*) FROM " + table.name)[0][0]));
      tables_.push_back(std::move(table));
    }
    file.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'");
  }

  // A changed copy, with its schema as it should be.
  void apply(InputBytes& input, const std::filesystem::path& copy) const {
    std::filesystem::copy_file(sound_, copy, std::filesystem::copy_options::overwrite_existing);
    Connection file(copy);
    file.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; BEGIN");
    for (int changes = 0; !input.is_over() && changes < 40; ++changes) change(file, input);
    file.execute("PRAGMA writable_schema = ON");
    for (const Table& table : tables_)
      file.run("UPDATE sqlite_master SET sql = ?1 WHERE name = ?2", {SqlValue(table.sql), SqlValue(table.name)});
    file.execute("COMMIT");
  }

 private:
  using Row = std::vector<SqlValue>;
  struct Table {
    std::string name, sql, key = {};
    std::vector<std::string> columns = {};
    std::size_t rows = 0;
  };

  class Connection {
   public:
    explicit Connection(const std::filesystem::path& file) { sqlite3_open(file.c_str(), &database_); }
    ~Connection() { sqlite3_close(database_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    void execute(const std::string& sql) { sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr); }
    // A statement that can't be carried out changes nothing.
    std::vector<Row> run(const std::string& sql, const Row& values) {
      sqlite3_stmt* statement = nullptr;
      if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) __builtin_trap();
      for (int i = 0; i < static_cast<int>(values.size()); ++i)
        bind(statement, i + 1, values[static_cast<std::size_t>(i)]);
      std::vector<Row> rows;
      while (sqlite3_step(statement) == SQLITE_ROW) {
        rows.emplace_back();
        for (int i = 0; i < sqlite3_column_count(statement); ++i) rows.back().push_back(value(statement, i));
      }
      sqlite3_finalize(statement);
      return rows;
    }
    std::vector<Row> rows(const std::string& sql) { return run(sql, {}); }

   private:
    static void bind(sqlite3_stmt* statement, int place, const SqlValue& value) {
      if (const auto* number = std::get_if<std::int64_t>(&value)) sqlite3_bind_int64(statement, place, *number);
      if (const auto* real = std::get_if<double>(&value)) sqlite3_bind_double(statement, place, *real);
      if (const auto* text = std::get_if<std::string>(&value))
        sqlite3_bind_text(statement, place, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
      if (const auto* blob = std::get_if<Blob>(&value))
        sqlite3_bind_blob(statement, place, blob->bytes.data(), static_cast<int>(blob->bytes.size()), SQLITE_TRANSIENT);
    }
    static SqlValue value(sqlite3_stmt* statement, int column) {
      const int type = sqlite3_column_type(statement, column);
      if (type == SQLITE_NULL) return std::monostate();
      if (type == SQLITE_FLOAT) return sqlite3_column_double(statement, column);
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
      std::string content(bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
      if (type == SQLITE_BLOB) return Blob{std::move(content)};
      return content;  // a number too: as the text that SQLite makes of it
    }

    sqlite3* database_ = nullptr;
  };

  static std::string text(const SqlValue& value) {
    if (const auto* content = std::get_if<std::string>(&value)) return *content;
    const auto* blob = std::get_if<Blob>(&value);
    return blob ? blob->bytes : "";
  }

  static SqlValue new_value(InputBytes& input) {
    const std::size_t kind = input.byte();
    if (kind < 192) return hostile_values()[kind % hostile_values().size()];
    if (kind < 208) return static_cast<std::int64_t>(static_cast<std::int8_t>(input.byte()));
    if (kind < 216) return input.number<std::int64_t>();
    if (kind < 224) return input.number<double>();
    if (kind < 240) return input.take(input.byte() % 64);
    return Blob{input.take(input.byte() % 64)};
  }

  static void replace_bytes(std::string& content, InputBytes& input) {
    const std::size_t offset = content.empty() ? 0 : (input.byte() | input.byte() << 8) % content.size();
    const std::string bytes = input.take(1 + input.byte() % 8);
    content.replace(offset, bytes.size(), bytes);
  }

  // Inside what only the right bytes lead to.
  static std::string changed_json(const std::string& content, InputBytes& input) {
    auto json = nlohmann::json::parse(content, nullptr, false);
    if (json.is_discarded()) return content;
    auto flat = json.flatten();
    if (flat.empty()) return content;
    const std::size_t wanted = input.byte() % flat.size();
    auto place = nlohmann::json::json_pointer(std::next(flat.begin(), static_cast<std::ptrdiff_t>(wanted)).key());
    for (std::size_t up = input.byte() % 4; up == 3 && !place.empty(); up = 0) place = place.parent_pointer();
    const auto& fragments = json_fragments();
    json[place] = nlohmann::json::parse(fragments[input.byte() % fragments.size()], nullptr, false);
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  static std::string changed_zlib(const std::string& content, InputBytes& input) {
    std::string plain(100'000, '\0');
    uLongf size = plain.size();
    if (uncompress(reinterpret_cast<Bytef*>(plain.data()), &size, reinterpret_cast<const Bytef*>(content.data()),
                   content.size()) != Z_OK)
      return content;
    plain.resize(size);
    replace_bytes(plain, input);
    std::string packed(compressBound(plain.size()), '\0');
    size = packed.size();
    compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
             plain.size());
    packed.resize(size);
    return packed;
  }

  static std::string changed_buckets(std::string content, InputBytes& input) {
    if (content.size() < 4) return content;
    content.resize(content.size() - 4);
    replace_bytes(content, input);
    const std::uint32_t checksum = crc32(content);
    return content.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  }

  static SqlValue mutated(const std::string& column, const SqlValue& before, InputBytes& input) {
    if (column == "packed") return Blob{changed_zlib(text(before), input)};
    if (column == "buckets") return Blob{changed_buckets(text(before), input)};
    std::string content = text(before);
    if (content.starts_with('{') || content.starts_with('[')) return changed_json(content, input);
    replace_bytes(content, input);
    if (std::holds_alternative<Blob>(before)) return Blob{content};
    return content;
  }

  void change(Connection& file, InputBytes& input) const {
    const Table& table = tables_[input.byte() % tables_.size()];
    const std::string& column = table.columns[input.byte() % table.columns.size()];
    const auto row = static_cast<std::int64_t>(input.byte() % table.rows);
    const std::string at = " FROM " + table.name + " LIMIT 1 OFFSET ?2";
    const std::string update = "UPDATE OR REPLACE " + table.name + " SET " + column + " = ?1";
    const std::string there = " WHERE (" + table.key + ") IN (SELECT " + table.key + at + ")";
    const std::size_t kind = input.byte() % 16;
    if (kind == 0) {
      file.run("DELETE FROM " + table.name + " WHERE ?1 AND (" + table.key + ") IN (SELECT " + table.key + at + ")",
               {SqlValue(std::int64_t{1}), SqlValue(row)});
    } else if (kind == 1) {
      file.run(update, {new_value(input)});
    } else if (kind <= 4) {
      std::string values, names;
      for (const std::string& each : table.columns) {
        names += (names.empty() ? "" : ", ") + each;
        values += (values.empty() ? "" : ", ") + (each == column ? "?1" : each);
      }
      file.run("INSERT OR IGNORE INTO " + table.name + " (" + names + ") SELECT " + values + at,
               {new_value(input), SqlValue(row)});
    } else if (kind <= 8) {
      const std::vector<Row> before =
          file.run("SELECT " + column + " FROM " + table.name + " WHERE ?1 LIMIT 1 OFFSET ?2",
                   {SqlValue(std::int64_t{1}), SqlValue(row)});
      if (!before.empty()) file.run(update + there, {mutated(column, before[0][0], input), SqlValue(row)});
    } else {
      file.run(update + there, {new_value(input), SqlValue(row)});
    }
  }

  std::filesystem::path sound_;
  std::vector<Table> tables_;
};

}  // namespace stepladder
