// Hides the names of folders, host and user wherever they are, also in errors of libraries; a kept word too many does
// harm, a hidden one too many none.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "app/cli/setup/gpu_check.h"
#include "app/host/environment.h"
#include "app/text/format.h"
#include "storage/importers/journal/journal_reader.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class Anonymous {
 public:
  explicit Anonymous(const fs::path& scratch) {
    std::error_code unknown;
    hide(scratch, "(scratch)");
    if (const char* home = std::getenv("HOME")) hide(home, "~");
    hide(fs::current_path(unknown), "(here)");
    hide(fs::temp_directory_path(unknown), "(temporary)");
    const passwd* const user = ::getpwuid(::getuid());
    if (user) hide(user->pw_dir, "~");
    std::ranges::sort(hidden_, [](const Hidden& a, const Hidden& b) {
      return a.text.size() > b.text.size();
    });  // the innermost first
    hide_word(this_host(), "(host)");
    if (user) hide_word(user->pw_name, "(user)");
    for (const char* variable : {"USER", "LOGNAME"})
      if (const char* name = std::getenv(variable)) hide_word(name, "(user)");
  }

  Json operator()(Json json) const {
    if (json.is_string()) return text(json.get<std::string>());
    if (!json.is_structured()) return json;  // of which nlohmann's loop would be the value itself
    for (Json& each : json) each = (*this)(std::move(each));
    return json;
  }

 private:
  struct Hidden {
    std::string text;
    std::string by;
    bool is_word;  // else a path
  };
  // As it is written, and where links lead.
  void hide(const fs::path& path, const char* by) {
    std::error_code unknown;
    for (const fs::path& each : {path, fs::weakly_canonical(path, unknown)})
      if (each.string().size() > 1) hidden_.push_back({each.string(), by, false});
  }
  // Not "root" or "gpu", which are words of other texts too.
  void hide_word(const std::string& name, const char* by) {
    constexpr std::size_t shortest = 3;
    if (name.size() >= shortest && name != "root" && name != "localhost") hidden_.push_back({name, by, true});
  }

  std::string text(std::string text) const {
    const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    for (const auto& [hidden, by, is_word] : hidden_) {
      for (std::size_t at = text.find(hidden); at != std::string::npos; at = text.find(hidden, at)) {
        const std::size_t end = at + hidden.size();
        const bool is_begun = is_word && at > 0 && is_letter(text[at - 1]);
        if (is_begun || (end < text.size() && is_letter(text[end]))) {
          at = end;
          continue;
        }
        text.replace(at, hidden.size(), by);
        at += by.size();
      }
    }
    return without_folders(std::move(text));
  }

  // Of a path, also below a folder with a name of ours, only a file's name is kept.
  static std::string without_folders(const std::string& text) {
    std::string kept;
    for (std::size_t at = 0; at < text.size();) {
      const bool is_begun = text[at] == '/' && at + 1 < text.size() && text[at + 1] != '/' && begins_path(kept);
      if (!is_begun) {
        kept += text[at++];
        continue;
      }
      std::size_t end = std::min(text.find_first_of(" \t\n\"'`,;:()<>|=", at), text.size());
      while (text[end - 1] == '.') --end;  // of the sentence
      const std::string name = fs::path(text.substr(at, end - at)).filename().string();
      static const std::set<std::string> files = {".cpp", ".cu", ".cuh", ".h", ".py", ".json", ".csv", ".db"};
      const bool is_file = name.find(".so", 1) != std::string::npos || files.contains(fs::path(name).extension());
      const bool has_begin = kept.ends_with(")") || kept.ends_with("~");
      if (end == at + 1)  // a slash between words
        kept += '/';
      else
        kept += (has_begin ? "" : "(folder)") + (is_file ? "/" + name : std::string());
      at = end;
    }
    return kept;
  }
  static bool begins_path(const std::string& before) {
    if (before.empty() || before.ends_with("~")) return true;
    for (const char* folder : {"(scratch)", "(here)", "(temporary)"})
      if (before.ends_with(folder)) return true;
    const auto last = static_cast<unsigned char>(before.back());
    return std::isspace(last) ||
           std::string_view("\"'`,;:(<>|=").find(static_cast<char>(last)) != std::string_view::npos;
  }

  std::vector<Hidden> hidden_;
};

std::string rungs_text(const Json& rungs, const char* times) {
  std::vector<std::vector<std::string>> rows = {{"stage", "status", "step time", times}};
  for (const Json& rung : rungs) {
    const double bytes = number_in(rung, "peak_memory_bytes"), over = number_in(rung, "over_whole");
    rows.push_back({text_in(rung, "stage"), text_in(rung, "status"), milliseconds_text(number_in(rung, "dt_ms_median")),
                    rung.contains("over_whole") ? factor_text(over)
                    : is_missing(bytes)         ? "-"
                                                : bytes_text(bytes)});
  }
  return table(rows, {false, false, true, true});
}

}  // namespace

Json without_names(Json document, const fs::path& scratch) {
  return Anonymous(scratch)(std::move(document));
}

std::string gpu_check_text(const Json& document, const fs::path& out) {
  std::vector<std::vector<std::string>> rows = {{"part", "result", "time", "what"}};
  std::string notes, tables;
  for (const Json& part : document["parts"]) {
    const std::string id = text_in(part, "id");
    rows.push_back({id, text_in(part, "result"), duration_text(part["seconds"].get<double>()), text_in(part, "title")});
    for (const Json& problem : part["problems"]) notes += id + ", failed: " + problem.get<std::string>() + "\n";
    for (const Json& note : part["notes"]) notes += id + ": " + note.get<std::string>() + "\n";
    if (const std::string why = text_in(part, "skipped"); !why.empty()) notes += id + ", skipped: " + why + "\n";
    const Json& figures = part["figures"];
    if (id == "rungs" && figures.contains("rungs")) tables += "\n" + rungs_text(figures["rungs"], "peak memory");
    if (id == "kernels" && figures.contains("steps"))
      tables += "\n" + rungs_text(figures["steps"], "of the whole step");
  }
  return table(rows, {false, false, true, false}) + tables + (notes.empty() ? "" : "\n" + notes_text(notes)) + "\n" +
         notes_text(out.string() +
                    " has all of it, without names of this machine, its user or their folders: attach "
                    "it to a bug report. Nothing was sent anywhere.");
}

}  // namespace stepladder
