// Recognises files whose schema another program has changed: its triggers, views and expressions would run inside our
// statements. Inside storage/ only.
#pragma once

#include <string>
#include <vector>

#include "storage/database/database.h"

namespace stepladder {

// One entry of sqlite_master; automatic indices, which have no text, aren't listed.
struct SchemaObject {
  std::string name;  // in lower case
  std::string text;  // its definition without what doesn't count: comments, spaces, quotes and the case of names
};

// Reads no other table.
std::vector<SchemaObject> schema_objects(Database& database);

// A sentence's part for each object that may not be there, is missing, or isn't as `expected`: "it has a trigger `t`
// that isn't Stepladder's". Allowed are other plain tables that don't refer to ours, and plain indices that aren't
// unique.
std::vector<std::string> strange_objects(const std::vector<SchemaObject>& found,
                                         const std::vector<SchemaObject>& expected);

// A definition without what doesn't count.
std::string normalised_definition(const std::string& sql);

}  // namespace stepladder
