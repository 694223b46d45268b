// The Launch view's form: the chosen recipe and rungs, and the resulting ladder. UI thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/system/path_field.h"
#include "app/desktop/workspace.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/launch/ladder_file.h"
#include "app/launch/recipe_fields.h"

namespace stepladder {

enum class LaunchData { shakespeare, file, synthetic };

struct RungRow {
  int id = 0;  // stays while the row moves
  std::string text;
  bool on = true;
  std::optional<double> seed_tokens_per_s;
  bool is_usual = false;     // on or off by the program's choice; no user has changed it
  std::string not_proposed;  // why it isn't proposed here; empty: it is
  bool operator==(const RungRow&) const = default;
};

// What the user has entered.
struct LaunchInput {
  int model = 0;  // of model_presets()
  LaunchData data = LaunchData::shakespeare;
  std::string file;         // the data's path
  std::string shakespeare;  // that file's path
  std::string name;
  std::string where;  // a machine's alias; empty: here
  std::string notes;
  std::map<std::string, std::string> values;  // of recipe_fields(), as typed; absent or empty: the model's default
  int repeats = 1;
  bool interleave = false;
  bool when_quiet = false;
  Climb climb = Climb::together;
  std::vector<RungRow> rows;  // without the baseline, which is the recipe itself
  std::optional<double> baseline_seed_tokens_per_s;
  bool operator==(const LaunchInput&) const = default;
};

struct CheckedForm;

struct LaunchForm : LaunchInput {
  PathField file_field{{.title = "Choose the data to train on"}};
  std::map<std::string, PathField> paths;  // of the fields that are paths; their text is in `values`

  LaunchForm();                         // all stages, those that preserve the loss on
  void take_model(int chosen);          // with its own shape, batch, sequence and learning rate
  void take(const LadderDraft& draft);  // of another view, or of a preset
  RungRow& insert_row(std::size_t place, std::string text, bool on = true);

  // Notes which rungs aren't proposed on this machine, and turns those off that no user has chosen. `checked` is this
  // form's; nothing is done twice for one check and its plan, or while the form can't be planned.
  void propose(const CheckedForm& checked, const Workspace& workspace);

 private:
  int next_id_ = 0;
  std::string proposed_for_;                                 // the recipe, as JSON
  std::pair<std::uint64_t, const LaunchPlan*> proposed_by_;  // the check and its plan
};

// What a form becomes, and what is wrong with it.
struct CheckedForm {
  LadderRequest request;                              // the baseline, then the rows that are on and right; or a sweep
  std::vector<SweptValue> swept;                      // the fields with a list of values
  bool is_sweep = false;                              // of more than seeds, so without the rows
  std::string sweep_problem;                          // why the lists don't make one
  std::vector<int> asked;                             // each row's place among the request's rungs; -1: not there
  std::vector<std::string> row_problems;              // of each row; empty: none
  std::map<std::string, std::string> field_problems;  // by the field's name
  bool can_be_saved = true;
  std::string text;         // text_of the request
  std::uint64_t check = 0;  // its number, from 1

  // By the workspace, in every frame.
  std::string problem;               // why it cannot be launched; empty if it can
  bool can_be_planned = false;       // its files are named and its recipe is right
  const LaunchPlan* plan = nullptr;  // of this request; null until it has been made
};

// Checks a form, without its files: the plan reads them. The recipe is built and validated only after a change.
class FormCheck {
 public:
  // Valid until the next call.
  const CheckedForm& check(const LaunchForm& form, const Workspace& workspace);

 private:
  std::optional<LaunchInput> input_;  // that was checked
  CheckedForm checked_;
};

// The field's values as a list; one value, or none, if it has no list.
std::vector<std::string> listed_values(const RecipeField& field, const std::string& typed);
std::string list_text(const std::vector<std::string>& values);  // "1e-4, 3e-4"

// The form as a preset, with the rows that are off.
LadderDraft draft_of(const LaunchForm& form, const CheckedForm& checked);

void draw_launch_form(LaunchForm& form, const CheckedForm& checked, Commands& commands);

// A text field that grows with its text. Returns whether the text changed.
bool text_input(const char* id, const char* hint, std::string& text);

}  // namespace stepladder
