// The parts that all followed stores share: files that stay open while they grow, marks that notice a replaced file,
// facts merged into the known run, and the search for new stores. Positions are JSON that a later version must still
// read.
#include "storage/importers/growing_source.h"

#include <algorithm>
#include <cstdio>

#include "storage/checksum.h"
#include "storage/folder_watch.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds silent_after(60);
constexpr std::int64_t marked_bytes = 4096;  // at the start and at the end of what was read

std::string checksum_of(const RegularFile& file, std::int64_t begin, std::int64_t end) {
  const std::string bytes = file.read_at(begin, static_cast<std::size_t>(end - begin));
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", std::ssize(bytes) == end - begin ? crc32(bytes) : 0);
  return digits;
}

// Adds the members of one JSON object, given as text, to another.
void add_members(const std::string& news, std::string& known) {
  const Json from = Json::parse(news, nullptr, false);
  if (!from.is_object() || from.empty()) return;
  Json to = object_in(known);
  for (const auto& [name, value] : from.items())
    if (to.contains(name) || to.size() < most_settings) to[name] = value;
  known = json_text(to);
}

}  // namespace

GrowingSource::GrowingSource(std::string format, fs::path path, const std::string& run)
    : format_(std::move(format)),
      path_(std::move(path)),
      source_(format_ + " " + path_.string() + (run.empty() ? "" : " " + run)) {}

// "mlflow /data/my runs/mlflow.db ID": the run's id, which has no slash, follows only a database's path.
fs::path path_of_source(std::string_view source) {
  const fs::path whole = source.substr(std::min(source.size(), source.find(' ') + 1));
  std::error_code error;
  if (fs::exists(whole, error)) return whole;
  const std::string text = whole.string();
  for (std::size_t end = text.rfind(' '); end != std::string::npos && end > 0; end = text.rfind(' ', end - 1))
    if (fs::is_regular_file(text.substr(0, end), error)) return text.substr(0, end);
  return whole;
}

bool GrowingSource::has_changed() {
  std::string now = stamp_of(files());
  for (const auto& [path, file] : held_) now += std::to_string(file->size()) + (file->is_at(path) ? "\n" : " gone\n");
  return now != std::exchange(stamp_, now);
}

const RegularFile* GrowingSource::hold(const fs::path& path, std::int64_t bytes) {
  std::error_code error;
  std::unique_ptr<RegularFile>& file = held_[path];
  if (file && file->size() == bytes && !file->is_at(path) && fs::exists(path, error)) file.reset();
  if (!file) file = std::make_unique<RegularFile>(path);
  if (*file) return file.get();
  held_.erase(path);
  return nullptr;
}

void GrowingSource::let_silent_go() {
  std::erase_if(held_, [](const auto& held) {
    std::error_code error;
    return held.second->is_at(held.first) && quiet_since(fs::last_write_time(held.first, error)) > silent_after;
  });
}

std::vector<fs::path> GrowingSource::held_files() const {
  std::vector<fs::path> files;
  for (const auto& [path, file] : held_) files.push_back(path);
  return files;
}

std::string stamp_of(const std::vector<fs::path>& files) {
  std::string stamp;
  for (const fs::path& file : files) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) continue;
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    stamp += file.filename().string() + " " + std::to_string(size) + " " + std::to_string(time) + "\n";
  }
  return stamp;
}

Json mark_of(const RegularFile& file, std::int64_t bytes) {
  return {{"bytes", bytes},
          {"head", checksum_of(file, 0, std::min(bytes, marked_bytes))},
          {"tail", checksum_of(file, std::max<std::int64_t>(0, bytes - marked_bytes), bytes)}};
}

std::string replaced_since(const RegularFile& file, const Json& mark) {
  if (!mark.is_object()) return {};
  const std::int64_t bytes = mark.value("bytes", std::int64_t{0});
  if (file.size() < bytes) return "is shorter than it was";
  return mark_of(file, bytes) == mark ? "" : "has another content than it had";
}

std::int64_t add_facts(const ForeignRun& news, Run& run) {
  const Run& from = news.run;
  for (std::string Run::*text : {&Run::title, &Run::stage, &Run::changed, &Run::hardware})
    if (!(from.*text).empty()) run.*text = from.*text;
  for (double Run::*at : {&Run::created_at, &Run::started_at, &Run::ended_at})
    if (!is_missing(from.*at)) run.*at = from.*at;
  add_members(from.environment, run.environment);
  const std::int64_t tokens_per_sample = fill_from_config(news.config, run);
  if (run.params > 0) run.model_flops_per_token = 6.0 * static_cast<double>(run.params);
  return tokens_per_sample;
}

std::string_view writer_delay(std::string_view format) {
  if (format == "tensorboard") return "TensorBoard's writer holds values back for up to 120 s";
  if (format == "wandb") return "W&B's writer holds values back for some seconds";
  return {};
}

}  // namespace stepladder
