// Compares a file's schema with ours as normalised text. Triggers, views, computed columns and expressions of strangers
// would run inside our statements, so they are refused by name; plain extra tables and indices are tolerated.
#include "storage/database/schema_check.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr char separator = '\x1f';

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80) != 0;
}

// The end of a comment that begins at `at`, or `at` if there is none.
std::size_t after_comment(std::string_view sql, std::size_t at) {
  const bool is_line = sql.substr(at, 2) == "--";
  if (!is_line && sql.substr(at, 2) != "/*") return at;
  const std::size_t end = is_line ? sql.find('\n', at) : sql.find("*/", at + 2);
  return end == std::string_view::npos ? sql.size() : end + (is_line ? 1 : 2);
}

// Moves behind a name or text in quotes; a doubled quote inside is one of its characters.
std::string take_quoted(std::string_view sql, std::size_t& at) {
  const char end = sql[at] == '[' ? ']' : sql[at];
  std::string content;
  for (++at; at < sql.size(); ++at) {
    if (sql[at] != end) {
      content += sql[at];
    } else if (end != ']' && at + 1 < sql.size() && sql[at + 1] == end) {
      content += sql[at++];
    } else {
      ++at;
      break;
    }
  }
  return content;
}

// Names and keywords in lower case without quotes, texts with theirs, everything else character by character.
std::vector<std::string> words_of(std::string_view sql) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < sql.size();) {
    const char c = sql[at];
    if (const std::size_t after = after_comment(sql, at); after != at) {
      at = after;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '\'') {
      words.push_back("'" + take_quoted(sql, at));
    } else if (c == '"' || c == '`' || c == '[') {
      words.push_back(lower_case(take_quoted(sql, at)));
    } else if (in_word(c)) {
      const std::size_t first = at;
      while (at < sql.size() && in_word(sql[at])) ++at;
      words.push_back(lower_case(sql.substr(first, at - first)));
    } else {
      words.emplace_back(1, c);
      ++at;
    }
  }
  return words;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == separator)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

// The kind of an object is what its text creates; SQLite ignores the column `type` too.
struct Kind {
  std::string words;       // "virtual table"
  std::string name;        // as in the text
  std::size_t after_name;  // the next word
};

Kind kind_of(const std::vector<std::string>& words) {
  const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string(); };
  std::size_t at = word(0) == "create" ? 1 : 0;
  if (word(at) == "temp" || word(at) == "temporary") ++at;
  Kind kind{word(at++), "", 0};
  if (kind.words == "virtual" || kind.words == "unique") kind.words += " " + word(at++);
  if (word(at) == "if") at += 3;  // "if not exists"
  kind.name = word(at);
  kind.after_name = at + 1;
  return kind;
}

// A name from a stranger's file, for a sentence.
std::string shown(const std::string& name) {
  constexpr std::size_t most = 60;
  std::string text;
  for (const char c : name.substr(0, most)) text += c >= ' ' && c < '\x7f' ? c : '?';
  return "`" + text + (name.size() > most ? "..." : "") + "`";
}

bool is_plain_index(const std::vector<std::string>& words, std::size_t on) {
  // on TABLE ( NAME [collate NAME] [asc|desc], ... )
  for (std::size_t i = on; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_name = !word.empty() && in_word(word[0]);
    const bool opens = word == "(" && i == on + 2;
    const bool closes = word == ")" && i + 1 == words.size();
    if (!is_name && !opens && !closes && word != ",") return false;
  }
  return true;
}

// The reason why an object that isn't ours is not allowed; empty if it is.
std::string refusal(const SchemaObject& object) {
  const std::vector<std::string> words = split(object.text);
  const Kind kind = kind_of(words);
  if (lower_case(kind.name) != object.name) return "its list of tables names " + shown(object.name) + " wrongly";
  const std::string stranger = " " + shown(object.name) + " that isn't Stepladder's";
  if (kind.words == "table") {
    if (std::ranges::find(words, "references") == words.end()) return {};
    return "it has a table" + stranger + " and refers to other tables";
  }
  if (kind.words == "index") return is_plain_index(words, kind.after_name) ? "" : "it has a computed index" + stranger;
  if (kind.words == "unique index") return "it has a unique index" + stranger;
  if (kind.words == "trigger" || kind.words == "view" || kind.words == "virtual table")
    return "it has a " + kind.words + stranger;
  return "it has an object" + stranger;
}

}  // namespace

std::string normalised_definition(const std::string& sql) {
  std::string text;
  for (const std::string& word : words_of(sql)) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::vector<SchemaObject> schema_objects(Database& database) {
  return read_all(Statement(database, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"),
                  [](const Statement& row) {
                    return SchemaObject{lower_case(row.text(0)), normalised_definition(row.text(1))};
                  });
}

std::vector<std::string> strange_objects(const std::vector<SchemaObject>& found,
                                         const std::vector<SchemaObject>& expected) {
  std::map<std::string_view, const SchemaObject*> missing;
  for (const SchemaObject& object : expected) missing[object.name] = &object;
  std::vector<std::string> strange, others;
  for (const SchemaObject& object : found) {
    const auto own = missing.find(object.name);
    if (own == missing.end()) {
      if (std::string why = refusal(object); !why.empty()) others.push_back(std::move(why));
      continue;
    }
    if (own->second->text != object.text)
      strange.push_back("its " + kind_of(split(own->second->text)).words + " " + shown(object.name) +
                        " isn't the one that Stepladder creates");
    missing.erase(own);
  }
  for (const auto& [name, object] : missing) {
    const std::string kind = kind_of(split(object->text)).words;
    if (kind != "index") strange.push_back("its " + kind + " " + shown(std::string(name)) + " is missing");
  }
  strange.insert(strange.end(), others.begin(), others.end());
  return strange;
}

}  // namespace stepladder
