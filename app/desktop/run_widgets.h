// Widgets for runs that several views use. UI thread, inside a frame.
#pragma once

#include <optional>
#include <string>

#include "app/desktop/command.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/judgement.h"

namespace stepladder {

Tone status_tone(RunStatus status);

// "= same", "worse by 0.0312", "diverged", "not comparable".
void loss_pill(const LossParity& loss);

// The colour of a rung's answer: an open one is a warning once its runs are over.
Tone tone_of(RungAnswer answer, bool is_over = true);

// The colour of a flag.
Tone severity_tone(FlagId id);

// The reason for a flag, and where in the window its remedy is.
std::string flag_advice(const Flag& flag);

// The gain of a rung that is being verified: what it waits for or has found, and its buttons. Draws nothing without
// one.
void verification_card(const Workspace& workspace, Commands& commands);

// What the program is for, three ways in and examples. `empty`: what a view that has nothing to show says, which makes
// this all of its content; without it one line above an example.
void start_here(const Workspace& workspace, Commands& commands, const std::string& empty = {},
                const std::string& if_runs = {});

// Buttons that open the examples, beside each other or beneath.
void example_buttons(Commands& commands);

// The runs that came with the program, and whether the project has no others.
std::int64_t count_examples(const Workspace& workspace);
bool has_only_examples(const Workspace& workspace);
bool has_examples(const Workspace& workspace);  // runs or traces

// How a run ended that didn't finish, and what is left of it: "Failed at step 12 of 60: out of memory. Its 12 steps are
// saved." Empty for others.
std::string end_text(const RunEntry& entry);

// Its hardware in words: "AMD EPYC, 2 cores", where a project has "2 x AMD EPYC".
std::string hardware_text(const Run& run);

// Traces a run that was launched here and is over (`can_trace`); beside the last item, or beneath it if there is no
// room. Nothing for other runs. Disabled while a run trains: both would disturb each other.
inline constexpr const char* trace_label = "Trace this run";
bool can_trace(const Run& run);
void trace_button(const Workspace& workspace, const Run& run, const std::string& name, Commands& commands);

// A button of what changes the project: disabled while that is open for reading only, and says so.
bool change_button(const Workspace& workspace, const char* label, const std::string& name, const char* tooltip = "");
// The same for what is drawn between them, such as an entry of a menu; end says nothing if the tooltip would hide it.
void begin_change(const Workspace& workspace);
void end_change(const Workspace& workspace);

// Across the view, above everything: that the project is open for reading only or damaged, why, and the way out of
// damage. Nothing if it is neither.
void project_strip(const Workspace& workspace, Commands& commands);

// A combo of all runs, the newest first; returns a picked one. `words` is the text of the closed box, `width` pixels
// wide.
std::optional<RunId> run_combo(const char* id, const std::string& words, const Workspace& workspace, RunId chosen,
                               float width);

}  // namespace stepladder
