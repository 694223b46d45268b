#include "storage/analysis/known_stage.h"

#include <algorithm>
#include <cctype>

namespace stepladder {
namespace {

std::string in_plain_words(std::string_view text) {
  std::string words = " ";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      words += static_cast<char>(std::tolower(byte));
    } else if (words.back() != ' ') {
      words += ' ';
    }
  }
  return words;
}

bool shows(const std::string& words, std::string_view sign) {
  while (!sign.empty()) {
    const std::size_t end = std::min(sign.find('+'), sign.size());
    if (words.find(" " + std::string(sign.substr(0, end))) == std::string::npos) return false;
    sign.remove_prefix(std::min(end + 1, sign.size()));
  }
  return true;
}

}  // namespace

std::string known_stage(const Run& run, std::span<const KnownStage> stages) {
  const auto is_id = [&](const KnownStage& stage) { return stage.id == run.stage; };
  if (run.source == "launched" || std::ranges::any_of(stages, is_id)) return run.stage;
  for (const std::string* text : {&run.changed, &run.title, &run.stage}) {
    const std::string words = in_plain_words(*text);
    // A line about timing before a change ("calculating the time at tf32 precision") doesn't name the change.
    if (words.starts_with(" calculating") || words.starts_with(" changing the baseline")) return "";
    const auto shown = [&](const std::string& sign) { return shows(words, sign); };
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      if (std::ranges::any_of(stage->words, shown)) return stage->id;
    }
  }
  return "";
}

}  // namespace stepladder
