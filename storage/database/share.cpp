// A shared copy keeps what is listed here; everything else is dropped, including what later versions add.
#include "storage/database/share.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/run_rows.h"
#include "storage/database/schema.h"
#include "storage/json_values.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// The part of a table that is kept: all its numbers, and these columns of its texts and bytes.
struct KeptTable {
  std::string_view table;
  std::vector<std::string_view> texts;
};
const KeptTable kept_tables[] = {
    {"ladders", {"name", "source", "source_path", "notes", "uid"}},
    {"runs",
     {"name", "stage", "title", "changed", "status", "reason", "source", "source_path", "device", "hardware",
      "precision", "sync", "recipe", "environment", "attention", "uid"}},
    {"steps", {}},
    {"superseded_steps", {}},
    {"nan_steps", {}},
    {"summaries", {}},
    {"overviews", {}},
    {"overview_chunks", {"quantity", "buckets"}},
    {"lanes", {"throttle_reason"}},
    {"samples", {"text"}},
    {"curation", {"tags", "note"}},
    {"profiles", {}},
    {"operators", {"part", "name", "shapes"}},
    {"metrics", {"name", "unit", "direction", "section", "field"}},
    {"metric_values", {}},
    {"superseded_metric_values", {}},
    {"metric_figures", {}},
    {"metric_overviews", {"buckets"}},
    {"traces", {"name", "source_path", "format", "hardware", "precision"}},
    {"trace_steps", {}},
    {"trace_kinds", {"kind"}},
    {"trace_operators", {"part", "name", "shapes", "launcher"}},
    {"trace_anatomy", {"phase", "part", "known_by"}},
    {"passes", {"name", "hardware", "device", "model"}},
    {"pass_calls", {"computation", "precision"}},
    {"settings", {"key", "value"}},
};
const KeptTable console_table{"console", {"text"}};  // if asked

// Texts that somebody or some program wrote freely.
struct FreeTexts {
  std::string_view table, key;
  std::vector<std::string_view> columns;
};
const FreeTexts free_texts[] = {
    {"ladders", "id", {"name", "source_path", "notes"}},
    {"runs", "id", {"name", "title", "changed", "reason", "source_path", "recipe"}},
    {"curation", "run_id", {"note"}},
    {"traces", "id", {"name", "source_path"}},
    {"passes", "id", {"name"}},
};

constexpr std::size_t shortest_host = 3;  // that is looked for in texts
constexpr std::string_view private_mark = "private:";

bool is_separator(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("\"'`=,;()[]{}<>|").find(c) != std::string_view::npos;
}

// The last part of a path or address; any other word as it is.
std::string_view last_part(std::string_view word) {
  const auto is_slash = [](char c) { return c == '/' || c == '\\'; };
  const bool is_rooted = !word.empty() && (is_slash(word.front()) || word.front() == '~');
  const auto slashes = std::ranges::count_if(word, is_slash);
  const auto has = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (!(is_rooted && slashes > 1) && !(word.starts_with('~') && slashes > 0) && !has(":/") && !has(":\\") &&
      !has("../"))
    return word;
  while (!word.empty() && is_slash(word.back())) word.remove_suffix(1);
  return word.substr(word.find_last_of("/\\") + 1);
}

bool is_marked(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return false;
  const std::string_view start = text.substr(begin, private_mark.size());
  return std::equal(start.begin(), start.end(), private_mark.begin(), private_mark.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

// The longest name first, since another may be a part of it.
struct LongestFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};
using Hosts = std::set<std::string, LongestFirst>;

std::string without_hosts(std::string text, const Hosts& hosts) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (const std::string& host : hosts) {
    for (std::size_t at = text.find(host); at != std::string::npos; at = text.find(host, at)) {
      const std::size_t end = at + host.size();
      const bool is_whole = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
      if (is_whole) text.replace(at, host.size(), "***");
      at += is_whole ? 3 : 1;
    }
  }
  return text;
}

// Each text in a JSON value, by `change`, with its name: that of the member, or in a list the text before it, since
// that may be an option.
using ChangeText = std::function<std::string(const std::string& name, const std::string& text)>;
void change_texts(Json& json, const ChangeText& change, const std::string& name = {}) {
  if (json.is_string()) json = change(name, json.get<std::string>());
  std::string before;
  if (json.is_array())
    for (Json& each : json) {
      const std::string own = each.is_string() ? each.get<std::string>() : "";
      change_texts(each, change, std::exchange(before, own));
    }
  if (json.is_object())
    for (const auto& member : json.items()) change_texts(member.value(), change, member.key());
}

class Removal {
 public:
  Removal(Database& database, const ShareOptions& options) : database_(database), options_(options) {}

  std::map<std::string, std::int64_t> all() {
    Transaction transaction(database_);
    collect_hosts();
    count("runs_in_bin",
          "DELETE FROM runs WHERE hidden <> 0 OR id IN (SELECT run_id FROM curation WHERE deleted_at IS NOT NULL)",
          "UPDATE runs SET parent_id = NULL WHERE parent_id IN (SELECT id FROM runs WHERE hidden <> 0 OR id IN (SELECT "
          "run_id FROM curation WHERE deleted_at IS NOT NULL))");
    database_.execute("DELETE FROM ladders WHERE NOT EXISTS (SELECT 1 FROM runs WHERE ladder_id = ladders.id)");
    database_.execute(
        "UPDATE runs SET status = 'interrupted', reason = 'it was still running when this copy was made' "
        "WHERE status IN ('queued', 'running')");
    database_.execute("UPDATE runs SET owner_pid = NULL, owner_start = NULL, owner_boot = NULL");
    count("settings", "DELETE FROM settings WHERE key <> 'highest_run'");
    clear_what_is_not_listed();
    for_texts("runs", "id", "environment", "environments", kept_environment);
    count("private_notes",
          "UPDATE curation SET note = NULL WHERE note IS NOT NULL AND ',' || replace(lower(tags), ' ', '') || ',' LIKE "
          "'%,private,%'");
    for_texts("curation", "run_id", "tags", "private_notes", public_tags);
    for (const auto& [table, column] : {std::pair{"curation", "note"}, {"ladders", "notes"}})
      for_texts(table, std::string_view(table) == "ladders" ? "id" : "run_id", column, "private_notes",
                without_private_part);
    for (const FreeTexts& texts : free_texts)
      for (const std::string_view column : texts.columns)
        for_texts(texts.table, texts.key, column, "paths_hosts_and_secrets", [&](const std::string& text) {
          return column == "recipe" ? public_json(text) : column == "source_path" ? file_name(text) : public_text(text);
        });
    transaction.commit();
    return std::move(removed_);
  }

 private:
  void count(const std::string& kind, const std::string& deletion, const std::string& before = {}) {
    if (!before.empty()) database_.execute(before);
    database_.run(deletion);
    if (const std::int64_t rows = database_.changes(); rows > 0) removed_[kind] += rows;
  }

  void collect_hosts() {
    const auto add = [&](const std::string& host) {
      if (host.size() >= shortest_host && host != "localhost") hosts_.insert(host);
    };
    char here[256] = "";
    if (::gethostname(here, sizeof here - 1) == 0) add(here);
    for (const char* const sql :
         {"SELECT alias FROM machines", "SELECT alias FROM far_runs", "SELECT DISTINCT host FROM passes",
          "SELECT DISTINCT host FROM traces WHERE host IS NOT NULL"})
      for (Statement rows(database_, sql); rows.step();) add(rows.text(0));
    for (Statement rows(database_, "SELECT DISTINCT environment FROM runs"); rows.step();) {
      Json json = Json::parse(rows.text(0), nullptr, false);
      if (!json.is_object()) continue;
      for (const char* const name : {"host", "hosts", "machine"})
        if (json.contains(name))
          change_texts(json[name], [&](const std::string&, const std::string& host) { return add(host), host; });
    }
  }

  void clear_what_is_not_listed() {
    Database fresh{Database::InMemory()};
    prepare_schema(fresh);
    const auto tables_of = [](Database& database) {
      std::vector<std::string> tables;
      for (Statement rows(
               database,
               "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
           rows.step();)
        tables.push_back(rows.text(0));
      return tables;
    };
    const std::vector<std::string> own = tables_of(fresh);
    for (const std::string& table : tables_of(database_)) {
      const KeptTable* const kept = listed(table);
      if (std::ranges::find(own, table) == own.end()) {
        count("other_tables", "DELETE FROM " + quoted(table));
        database_.execute("DROP TABLE " + quoted(table));
      } else if (!kept) {
        count(table, "DELETE FROM " + quoted(table));
      } else {
        clear_columns(*kept);
      }
    }
  }

  void clear_columns(const KeptTable& kept) {
    std::vector<std::string> others;
    for (Statement rows(database_,
                        "SELECT name, upper(type) FROM pragma_table_info('" + std::string(kept.table) + "')");
         rows.step();) {
      const bool is_text = rows.text(1) == "TEXT" || rows.text(1) == "BLOB" || rows.text(1).empty();
      if (is_text && std::ranges::find(kept.texts, rows.text(0)) == kept.texts.end()) others.push_back(rows.text(0));
    }
    for (const std::string& column : others)
      count(std::string(kept.table) + "." + column, "UPDATE " + std::string(kept.table) + " SET " + quoted(column) +
                                                        " = NULL WHERE " + quoted(column) + " IS NOT NULL");
  }

  const KeptTable* listed(const std::string& table) const {
    if (options_.with_output && table == console_table.table) return &console_table;
    const auto* const found = std::find_if(std::begin(kept_tables), std::end(kept_tables),
                                           [&](const KeptTable& each) { return each.table == table; });
    return found == std::end(kept_tables) ? nullptr : found;
  }

  static std::string quoted(const std::string& name) {
    std::string all = "\"";
    for (const char c : name) all += c == '"' ? "\"\"" : std::string(1, c);
    return all + "\"";
  }

  // Replaces the texts that `change` changes.
  void for_texts(std::string_view table, std::string_view key, std::string_view column, const std::string& kind,
                 const std::function<std::string(const std::string&)>& change) {
    const std::string name(column), of(table), by(key);
    std::vector<std::pair<std::int64_t, std::string>> changed;
    for (Statement rows(database_, "SELECT " + by + ", " + name + " FROM " + of + " WHERE " + name + " IS NOT NULL");
         rows.step();) {
      const std::string before = rows.text(1);
      if (std::string after = change(before); after != before) changed.emplace_back(rows.integer(0), std::move(after));
    }
    for (const auto& [id, text] : changed) {
      database_.run("UPDATE " + of + " SET " + name + " = ? WHERE " + by + " = ?", text, id);
    }
    if (!changed.empty()) removed_[kind] += std::ssize(changed);
  }

  // A run's figures need what its log printed; all else describes the machine.
  static std::string kept_environment(const std::string& text) {
    const Json before = Json::parse(text, nullptr, false);
    Json after = Json::object();
    for (const char* const name : printed_names)
      if (before.is_object() && before.contains(name)) after[name] = before[name];
    return after.empty() ? "" : json_text(after);
  }

  // The tags without `private` and those that begin with "private:".
  static std::string public_tags(const std::string& tags) {
    std::string left;
    for (std::size_t begin = 0; begin <= tags.size();) {
      const std::size_t end = std::min(tags.find(',', begin), tags.size());
      const std::string tag = tags.substr(begin, end - begin);
      begin = end + 1;
      if (!is_marked(tag) && !is_marked(tag + ":")) left += (left.empty() ? "" : ",") + tag;
    }
    return left;
  }

  std::string public_text(const std::string& text, const std::string& name = {}) const {
    const std::string open = options_.without_secrets ? options_.without_secrets(name, text) : text;
    return without_hosts(without_paths(open), hosts_);
  }
  std::string file_name(const std::string& path) const {
    return without_hosts(path.substr(path.find_last_of("/\\") + 1), hosts_);
  }
  std::string public_json(const std::string& text) const {
    Json json = Json::parse(text, nullptr, false);
    if (!json.is_structured()) return public_text(text);
    bool is_changed = false;
    change_texts(json, [&](const std::string& name, const std::string& before) {
      std::string after = before.starts_with('/') ? file_name(before) : public_text(before, name);
      is_changed = is_changed || after != before;
      return after;
    });
    return is_changed ? json_text(json) : text;
  }

  Database& database_;
  const ShareOptions& options_;
  Hosts hosts_;
  std::map<std::string, std::int64_t> removed_;
};

// The whole copy that the shared one is made from, gone afterwards.
class WholeCopy {
 public:
  WholeCopy(Database& database, const fs::path& out)
      : file_(out.string() + "." + random_uid().substr(0, 8) + ".whole") {
    back_up(database, file_);
  }
  ~WholeCopy() {
    std::error_code ignored;
    for (const char* const ending : {"", "-journal", "-wal", "-shm"}) fs::remove(file_.string() + ending, ignored);
  }
  WholeCopy(const WholeCopy&) = delete;
  WholeCopy& operator=(const WholeCopy&) = delete;

  const fs::path& file() const { return file_; }

 private:
  fs::path file_;
};

}  // namespace

std::string without_paths(std::string_view text) {
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && !is_separator(text[end])) ++end;
    all += last_part(text.substr(begin, end - begin));
    if (end < text.size()) all += text[end++];
    begin = end;
  }
  return all;
}

std::string without_private_part(std::string_view note) {
  for (std::size_t begin = 0; begin < note.size();) {
    if (is_marked(note.substr(begin))) return std::string(note.substr(0, begin == 0 ? 0 : begin - 1));
    begin = std::min(note.find('\n', begin), note.size() - 1) + 1;
  }
  return std::string(note);
}

SharedCopy share(Database& database, const fs::path& out, const ShareOptions& options) {
  refuse_existing(out);
  const WholeCopy whole(database, out);
  SharedCopy shared;
  {
    Database copy(whole.file(), Database::Mode::read_write);
    copy.execute("PRAGMA synchronous = OFF");  // nobody reads it after a crash
    shared.removed = Removal(copy, options).all();
    back_up(copy, out);
  }
  shared.contents = contents_of(out);
  return shared;
}

}  // namespace stepladder
