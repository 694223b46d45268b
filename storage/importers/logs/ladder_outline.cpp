#include "storage/importers/logs/ladder_outline.h"

#include "storage/importers/text.h"

namespace stepladder {

void LadderOutline::read_order(std::string_view text) {
  if (contains_word(text, "chronological") || contains_word(text, "newest first") ||
      (contains_word(text, "most recent") && contains_word(text, "first")))
    says_newest_first_ |=
        contains_word(text, "opposite") || contains_word(text, "reverse") || contains_word(text, "first");
}

void LadderOutline::add_note(std::string_view text) {
  constexpr std::size_t longest = 4000;
  if (notes_.size() < longest) notes_.append(text).append("\n");
}

bool LadderOutline::newest_first() const {
  if (says_newest_first_) return true;
  return stages_.size() > 1 && contains_word(stages_.back(), "baseline") && !contains_word(stages_.front(), "baseline");
}

void LadderOutline::tell(ImportSink& sink) const {
  if (stages_.size() < 2) return;
  const bool turned = newest_first();
  std::vector<int> rungs;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    rungs.push_back(static_cast<int>(turned ? stages_.size() - 1 - i : i));
  if (turned) sink.note(0, "the log has its newest block first, so the ladder begins with its last");
  sink.ladder({.name = name_, .notes = notes_}, rungs);
}

}  // namespace stepladder
