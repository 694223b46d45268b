// Cuts bytes into checksummed lines and parses them into events, piece by piece. A bad line stops the reader (is_stuck)
// until the caller gives it up, because a file on NFS may show zeros that are filled in later. good() is the only safe
// place to continue from.
#include "storage/importers/journal/journal_reader.h"

#include <limits>

#include "storage/records.h"

namespace stepladder {
namespace {

constexpr std::size_t worth_moving = 1 << 20;

bool parse(std::string_view text, JournalEvent& event) {
  if (nests_deep(text, deepest_journal_json)) return false;
  event.fields = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!event.fields.is_object()) return false;
  event.kind = text_in(event.fields, "e");
  return !event.kind.empty();
}

}  // namespace

bool JournalReader::next(JournalEvent& event) {
  if (in_damage_) skip_damage();
  while (!stuck_ && !in_damage_) {
    const std::string_view rest = std::string_view(bytes_).substr(begin_);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      stuck_ = rest.size() > longest_line;
      return false;
    }
    const std::string_view line = rest.substr(0, end);
    if (line.size() > longest_line || !journal_checksum_holds(line)) {
      stuck_ = true;
      return false;
    }
    const bool is_event = parse(line.substr(0, line.size() - journal_checksum_size), event);
    drop(end + 1);
    if (is_event) return true;
    ++malformed_;
  }
  return false;
}

void JournalReader::skip() {
  if (!stuck_) return;
  stuck_ = false;
  skip_damage();
}

void JournalReader::skip_damage() {
  const std::string_view rest = std::string_view(bytes_).substr(begin_);
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  // Zeros that were never filled may have a good line behind them.
  const std::size_t zero = line.rfind('\0');
  const std::size_t gone = zero != std::string_view::npos && zero + 1 < line.size() ? zero + 1
                           : end == std::string_view::npos                          ? rest.size()
                                                                                    : end + 1;
  in_damage_ = gone > 0 ? !ends_damage(rest[gone - 1]) : in_damage_;
  skipped_ += gone;
  drop(gone);
}

void JournalReader::drop(std::size_t size) {
  begin_ += size;
  good_ += size;
  if (begin_ < worth_moving && begin_ < bytes_.size()) return;
  bytes_.erase(0, begin_);
  begin_ = 0;
}

double number_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  double number = missing;
  return found != object.end() && number_of(*found, number) ? number : missing;
}

bool number_of(const Json& value, double& number) {
  if (value.is_number()) {
    number = value.get<double>();
    return true;
  }
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "NaN")
    number = std::numeric_limits<double>::quiet_NaN();
  else if (text == "Infinity")
    number = std::numeric_limits<double>::infinity();
  else if (text == "-Infinity")
    number = -std::numeric_limits<double>::infinity();
  else
    return false;
  return true;
}

}  // namespace stepladder
