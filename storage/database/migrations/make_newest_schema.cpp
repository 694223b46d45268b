// A program of the build: writes a header with the newest schema, as the migrations leave it in an empty file. SQLite
// reads the whole schema again after each added column, so replaying them takes 30 ms, and this text 2.
#include <sqlite3.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "storage/database/schema.h"

int main(int, char** arguments) {
  sqlite3* database = nullptr;
  const bool is_open = sqlite3_open(":memory:", &database) == SQLITE_OK;
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> closed_at_end(database, sqlite3_close);
  if (!is_open) return 1;
  std::ofstream header(arguments[1]);
  header << "#pragma once\n\nnamespace stepladder::migration {\n\ninline constexpr const char* newest_schema =\n";
  // A literal for each object: compilers needn't take one of 64 KiB.
  const auto write_object = [](void* file, int, char** values, char**) {
    *static_cast<std::ofstream*>(file) << "    R\"sql(" << values[0] << ";)sql\"\n";
    return 0;
  };
  char* error = nullptr;
  const auto run = [&](const char* sql, auto take) {
    return sqlite3_exec(database, sql, take, &header, &error) == SQLITE_OK;
  };
  for (const char* step : stepladder::migrations())
    if (!run(step, nullptr)) break;
  if (error ||
      !run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'", +write_object)) {
    std::fprintf(stderr, "the newest schema: %s\n", error);
    return 1;
  }
  header << "    ;\n\n}  // namespace stepladder::migration\n";
  return header.flush() ? 0 : 1;
}
