#include "storage/csv.h"

#include <algorithm>

#include "storage/errors.h"
#include "storage/wording.h"

namespace stepladder {

const std::vector<std::string_view>& CsvFields::split(std::string_view line, char separator) {
  fields_.clear();
  unquoted_.clear();
  unquoted_.reserve(line.size());  // views of it stay valid
  for (std::size_t at = 0;;) {
    const std::size_t first = std::min(line.find_first_not_of(' ', at), line.size());
    if (first == line.size() || line[first] != '"') {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      fields_.push_back(line.substr(at, end - at));
      if (end == line.size()) return fields_;
      at = end + 1;
      continue;
    }
    const std::size_t begin = unquoted_.size();
    bool quoted = true;
    for (at = first + 1; at < line.size() && (quoted || line[at] != separator); ++at) {
      if (line[at] != '"') {
        unquoted_ += line[at];
      } else if (quoted && at + 1 < line.size() && line[at + 1] == '"') {
        unquoted_ += line[at++];
      } else {
        quoted = !quoted;
      }
    }
    fields_.push_back(std::string_view(unquoted_).substr(begin));
    if (at >= line.size()) return fields_;
    ++at;
  }
}

namespace {

// Looks behind the apostrophes at the beginning, which the writer may have added itself.
bool looks_like_formula(std::string_view text) {
  const std::size_t first = text.find_first_not_of('\'');
  return text.size() > 1 && first != std::string_view::npos &&
         std::string_view("=+-@\t\r\n").find(text[first]) != std::string_view::npos;
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_number<double>(text).has_value();
}

}  // namespace

std::string guard_formula(std::string_view text) {
  return (looks_like_formula(text) && !is_number(text) ? "'" : "") + std::string(text);
}

std::string_view unguard_formula(std::string_view field) {
  return field.starts_with('\'') && looks_like_formula(field) ? field.substr(1) : field;
}

CsvFile::CsvFile(const std::filesystem::path& file, std::string_view columns) : file_(file), input_(file) {
  if (!input_) throw StorageError(file.string() + " " + input_.why());
  if (!next_line()) return;  // an empty table
  if (line_ != columns) refuse("does not name the columns " + std::string(columns));
  columns_ = splitter_.split(line_).size();
}

bool CsvFile::next_line() {
  while (std::getline(input_, line_)) {
    ++number_;
    if (line_.ends_with('\r')) line_.pop_back();
    if (!line_.empty() && line_.front() != '#') return true;
  }
  return false;
}

bool CsvFile::next() {
  if (!next_line()) return false;
  fields_ = &splitter_.split(line_);
  if (fields_->size() != columns_) refuse(fmt::format("has {} fields instead of {}", fields_->size(), columns_));
  return true;
}

void CsvFile::refuse(const std::string& why) const {
  throw StorageError(fmt::format("{}, line {}, {}", file_.string(), number_, why));
}

}  // namespace stepladder
