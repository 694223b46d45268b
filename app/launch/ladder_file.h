// A ladder as it is edited before it starts: kept as a file that can be shared, and written as a command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/launch/sweep.h"
#include "app/session/session.h"

namespace stepladder {

// A rung as the user types it; one that is off isn't launched.
struct DraftRung {
  std::string text;  // as in --stages (engine/rungs.h)
  bool on = true;
  double seed_tokens_per_s = missing;  // somebody else's throughput at this rung
};

struct LadderDraft {
  LadderRequest request;  // without rungs
  std::vector<DraftRung> rungs;
  std::vector<SweptValue> over = {};  // values with a list: see sweep_request
};

LadderDraft draft_of(LadderRequest request);

// The request with the rungs that are on, or the sweep. Throws RecipeError as parse_rungs and sweep_request do;
// `about` names the text.
LadderRequest request_of(const LadderDraft& draft, const FieldText& about = FieldName{"stages"});

// A preset as a file: JSON with the recipe, the rungs and how they are measured. Reading throws RecipeError, which
// names the file and the field, for anything but such a file.
std::string ladder_file_text(const LadderDraft& draft);
LadderDraft read_ladder_file(const std::filesystem::path& file);

// The user's own presets: FOLDER/NAME.json with FOLDER = $XDG_CONFIG_HOME/stepladder/ladders. Saving replaces one of
// the same name; it throws RecipeError if the name cannot be a file's, DataError if the file cannot be written.
std::filesystem::path saved_ladders_folder();
std::vector<std::string> saved_ladders();  // names, sorted
std::filesystem::path saved_ladder(const std::string& name);
void save_ladder_preset(const std::string& name, const LadderDraft& draft);

// The command that launches the same ladder: "stepladder ladder --steps 20 --stages baseline,bf16", quoted for a POSIX
// shell. Values without an option of their own are written as the baseline's.
std::string command_line_of(const LadderRequest& request);

// The same for a sweep over more than seeds. `base` has the first value of each list; its rungs are ignored.
std::string command_line_of(LadderRequest base, const std::vector<SweptValue>& swept);

}  // namespace stepladder
