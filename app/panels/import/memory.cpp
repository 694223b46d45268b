#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/panels/import/parts.h"

namespace stepladder {

namespace {

using SortedJson = nlohmann::json;

constexpr std::size_t most_corrections = 50;

std::string folder_of(const ImportPreview& import) {
  if (import.runs.empty()) return {};
  return std::filesystem::path(import.runs.front().run.source_path).parent_path().string();
}

std::string format_of(const ImportPreview& import) {
  return import.formats.empty() ? std::string() : import.formats.front();
}

}  // namespace

std::string ImportMemory::text() const {
  SortedJson list = SortedJson::array();
  for (const Correction& it : corrections) {
    list.push_back({{"folder", it.folder},
                    {"format", it.format},
                    {"tokens_per_step", it.options.tokens_per_step},
                    {"params", it.options.params},
                    {"hardware", it.options.hardware},
                    {"as", it.options.format},
                    {"step_key", it.options.step_key},
                    {"flat", it.options.files == FilesAre::rungs},
                    {"repeats", it.options.files == FilesAre::repeats}});
  }
  return SortedJson{{"path", last_path}, {"corrections", list}}.dump(-1, ' ', false,
                                                                     SortedJson::error_handler_t::replace);
}

void ImportMemory::recall(const std::string& text) {
  const SortedJson json = SortedJson::parse(text, nullptr, false);
  if (!json.is_object()) return;
  try {
    last_path = json.value("path", "");
    for (const SortedJson& it : json.value("corrections", SortedJson::array())) {
      corrections.push_back({.folder = it.value("folder", ""),
                             .format = it.value("format", ""),
                             .options = {.tokens_per_step = it.value("tokens_per_step", std::int64_t{0}),
                                         .params = it.value("params", std::int64_t{0}),
                                         .hardware = it.value("hardware", ""),
                                         .format = it.value("as", ""),
                                         .step_key = it.value("step_key", ""),
                                         .files = it.value("flat", false)      ? FilesAre::rungs
                                                  : it.value("repeats", false) ? FilesAre::repeats
                                                                               : FilesAre::detect}});
    }
  } catch (const SortedJson::exception&) {  // from another version: keeps the part that could be read
  }
}

const ImportOptions* ImportMemory::said_last_time(const ImportPreview& import) const {
  const std::string folder = folder_of(import);
  const std::string format = format_of(import);
  const auto find = [&](auto&& fits) {
    const auto found = std::ranges::find_if(corrections, fits);
    return found == corrections.end() ? nullptr : &found->options;
  };
  if (!folder.empty()) {
    if (const auto* found = find([&](const Correction& it) { return it.folder == folder; })) return found;
  }
  return format.empty() ? nullptr : find([&](const Correction& it) { return it.format == format; });
}

void ImportMemory::remember(const ImportPreview& import) {
  if (import.asked.options == ImportOptions{}) return;
  const Correction now{folder_of(import), format_of(import), import.asked.options};
  std::erase_if(corrections, [&](const Correction& it) { return it.folder == now.folder && it.format == now.format; });
  corrections.insert(corrections.begin(), now);
  if (corrections.size() > most_corrections) corrections.resize(most_corrections);
}

}  // namespace stepladder
