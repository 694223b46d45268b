#include "app/record/published_records.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "storage/errors.h"

namespace stepladder {
namespace {

std::int64_t day_of(const std::string& date) {
  int year = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(date.c_str(), "%4d-%2u-%2u", &year, &month, &day) != 3) throw StorageError("has no date " + date);
  const std::chrono::year_month_day parsed{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!parsed.ok()) throw StorageError("has no date " + date);
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::sys_days(parsed).time_since_epoch()).count();
}

}  // namespace

double PublishedRecords::total_factor() const {
  return records.empty() ? missing : records.front().minutes / records.back().minutes;
}

PublishedRecords read_published_records(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw StorageError(file.string() + " cannot be read");
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    PublishedRecords published{.title = json.at("title"), .source = json.at("source"), .read = json.at("read")};
    for (const nlohmann::json& note : json.at("notes")) published.notes.push_back(note);
    // The time of a record by the rules that later ones are timed by.
    std::map<int, double> retimed;
    for (const nlohmann::json& it : json.at("retimed")) retimed[it.at("n")] = it.at("minutes");
    double before = missing;
    for (const nlohmann::json& it : json.at("records")) {
      PublishedRecord record{.number = it.at("n"), .minutes = it.at("minutes"), .date = it.at("date")};
      if (!it.at("what").is_null()) record.what = it.at("what");
      record.day_s = day_of(record.date);
      if (!(record.minutes > 0)) throw StorageError("has a record without minutes");
      record.factor = before / record.minutes;
      before = retimed.contains(record.number) ? retimed[record.number] : record.minutes;
      published.records.push_back(std::move(record));
    }
    return published;
  } catch (const nlohmann::json::exception& error) {
    throw StorageError(file.string() + " isn't a history of records: " + error.what());
  } catch (const StorageError& error) {
    throw StorageError(file.string() + " " + error.what());
  }
}

}  // namespace stepladder
