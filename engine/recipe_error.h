// Why a recipe, or a request to train by one, is refused. The sentence names fields by their plain names, and each
// front end words them: "--weight-decay" on the command line, "Weight decay" in the window
// (app/launch/recipe_fields.h).
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// A value of the recipe, named as in `describe` ("weight_decay"), or something else that a request is given ("stages",
// "resume", "fork").
struct FieldName {
  std::string name;
};

// "--weight-decay": the command line's word for a field.
std::string option_of(std::string_view field);

// A sentence in which fields are named.
class FieldText {
 public:
  FieldText(const char* text) : FieldText(std::string(text)) {}
  FieldText(std::string text) : pieces_{{.text = std::move(text)}} {}
  FieldText(FieldName field) : pieces_{{.text = std::move(field.name), .is_field = true}} {}

  // With each field called what `word` calls it.
  using Word = std::function<std::string(std::string_view field)>;
  std::string worded(const Word& word) const;
  std::string for_command_line() const { return worded(option_of); }

  // The field's plain name if the text is that alone; empty if it isn't.
  std::string field() const;
  bool empty() const;

  FieldText& operator+=(const FieldText& more);
  friend bool operator==(const FieldText&, const FieldText&) = default;

 private:
  struct Piece {
    std::string text;  // or the field's plain name
    bool is_field = false;
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces_;
};
FieldText operator+(FieldText text, const FieldText& more);

// A recipe that cannot be trained. what() is the command line's sentence, which failed runs record as their reason.
struct RecipeError : std::runtime_error {
  RecipeError(FieldText about, FieldText why);

  std::string field() const { return about.field(); }
  FieldText sentence() const { return about + ": " + why; }

  FieldText about;  // the wrong value, or "run 3", or a file
  FieldText why;
};

}  // namespace stepladder
