// Sentences of engine, session and app/launch in which fields are values, for front ends that name them differently.
#include "engine/recipe_error.h"

#include <algorithm>

namespace stepladder {

std::string option_of(std::string_view field) {
  std::string option = "--" + std::string(field);
  std::ranges::replace(option, '_', '-');
  return option;
}

std::string FieldText::worded(const Word& word) const {
  std::string text;
  for (const Piece& piece : pieces_) text += piece.is_field ? word(piece.text) : piece.text;
  return text;
}

std::string FieldText::field() const {
  return pieces_.size() == 1 && pieces_.front().is_field ? pieces_.front().text : "";
}

bool FieldText::empty() const {
  return std::ranges::all_of(pieces_, [](const Piece& piece) { return piece.text.empty(); });
}

FieldText& FieldText::operator+=(const FieldText& more) {
  const std::vector<Piece> added = more.pieces_;  // `more` may be this one
  for (const Piece& piece : added)
    if (!piece.is_field && !pieces_.empty() && !pieces_.back().is_field)
      pieces_.back().text += piece.text;
    else
      pieces_.push_back(piece);
  return *this;
}

FieldText operator+(FieldText text, const FieldText& more) {
  return text += more;
}

RecipeError::RecipeError(FieldText about_, FieldText why_)
    : std::runtime_error((about_ + ": " + why_).for_command_line()), about(std::move(about_)), why(std::move(why_)) {}

}  // namespace stepladder
