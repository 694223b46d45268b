// The Launch view's form: the chosen recipe and rungs, and the resulting ladder. UI thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/desktop/commands.h"
#include "app/desktop/system/path_field.h"
#include "app/desktop/workspace.h"
#include "app/launch/ladder_file.h"
#include "app/launch/recipe_fields.h"

namespace stepladder {

enum class LaunchData { shakespeare, file, synthetic };

struct RungRow {
  int id = 0;  // stays while the row moves
  std::string text;
  bool on = true;
  double seed_tokens_per_s = missing;
};

struct LaunchForm {
  int model = 0;  // of model_presets()
  LaunchData data = LaunchData::shakespeare;
  PathField file{{.title = "Choose the data to train on"}};
  std::map<std::string, PathField> paths;  // of the fields that are paths; their text is in `values`
  std::string name;
  std::string where;  // a machine's alias; empty: here
  std::string notes;
  std::map<std::string, std::string> values;  // of recipe_fields(), as typed; absent or empty: the model's default
  int repeats = 1;
  bool interleave = false;
  bool when_quiet = false;
  Climb climb = Climb::together;
  std::vector<RungRow> rows;  // without the baseline, which is the recipe itself
  double baseline_seed_tokens_per_s = missing;

  LaunchForm();                         // all stages, those that preserve the loss on
  void take_model(int chosen);          // with its own shape, batch, sequence and learning rate
  void take(const LadderDraft& draft);  // of another view, or of a preset
  RungRow& insert_row(std::size_t place, std::string text, bool on = true);

 private:
  int next_id_ = 0;
};

// What a form becomes, and what is wrong with it. Derived anew in every frame.
struct CheckedForm {
  LadderRequest request;                              // the baseline, then the rows that are on and right; or a sweep
  std::vector<SweptValue> swept;                      // the fields with a list of values
  bool is_sweep = false;                              // of more than seeds, so without the rows
  std::string sweep_problem;                          // why the lists don't make one
  std::vector<int> asked;                             // each row's place among the request's rungs; -1: not there
  std::vector<std::string> row_problems;              // of each row; empty: none
  std::map<std::string, std::string> field_problems;  // by the field's name
  std::string problem;                                // why it cannot be launched; empty if it can
  bool can_be_planned = false;                        // its files are named and its recipe is right
  const LaunchPlan* plan = nullptr;                   // of this request; null until it has been made
  bool can_be_saved = true;
};

// Launching also checks whether the files exist.
CheckedForm check(const LaunchForm& form, const Workspace& workspace);

// The field's values as a list; one value, or none, if it has no list.
std::vector<std::string> listed_values(const RecipeField& field, const std::string& typed);
std::string list_text(const std::vector<std::string>& values);  // "1e-4, 3e-4"

// The form as a preset, with the rows that are off.
LadderDraft draft_of(const LaunchForm& form, const CheckedForm& checked);

void draw_launch_form(LaunchForm& form, const CheckedForm& checked, Commands& commands);

// A text field that grows with its text. Returns whether the text changed.
bool text_input(const char* id, const char* hint, std::string& text);

}  // namespace stepladder
