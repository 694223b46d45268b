// The state of the Profile view and its head, which profile.cpp and head.cpp share. UI thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "app/desktop/panel.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/profile/profile_view.h"
#include "app/desktop/system/file_dialog.h"
#include "app/panels/profile/icicle.h"
#include "app/panels/profile/tables.h"
#include "storage/by_enum.h"

namespace stepladder {

enum class ProfileTab { difference, operators, anatomy, roofline, ranks, several, stages };
constexpr std::size_t profile_tab_count = enum_count<ProfileTab>();
enum class ProfileSubject { steps, passes };

struct ProfilePanelState {
  ProfileQuestion question;
  bool asked = false;
  std::size_t seen_imports = 0;
  bool pair_comes = false;                     // the next two imports are compared with each other
  std::optional<SpeedupToExplain> to_explain;  // once the profiles have been read
  std::string message;                         // why an explanation has only one side
  std::array<char, 128> search{};
  std::optional<ProfileSubject> subject;  // none: what there is
  ProfileTab tab = ProfileTab::difference;
  std::array<TableSort, profile_tab_count> sorts;
  bool by_block = false;
  int seen_clicks = 0;                  // of the icicle: its table has scrolled to the chosen row
  std::optional<std::int64_t> to_show;  // a trace, once the profiles have been read
  FoundRows found;

  TableSort& sort(ProfileTab of) { return sorts[static_cast<std::size_t>(of)]; }
  Icicle icicle;
  FileDialog dialog;
};

void ask(ProfilePanelState& state, Commands& commands);                            // for what the question says now
const ProfileSource* source_of(const ProfileView& view, const ProfileSide& side);  // null: it isn't there
ProfileSubject subject_of(const ProfilePanelState& state, const ProfileView& view);

void take_chosen_files(ProfilePanelState& state, Commands& commands);
void draw_progress(const Workspace& workspace, Commands& commands);  // of an import
void draw_head(ProfilePanelState& state, const ProfileView* view, bool is_writable);
void draw_question(ProfilePanelState& state, const ProfileView& view,
                   Commands& commands);  // which profiles, and the search
// What would make the step shorter: its largest part, then each stage's gain with a button, then the rest in words.
void draw_what_next(const ShownNext& next, const Workspace& workspace, Commands& commands);
void draw_owner(const ShownProfile& shown, Commands& commands);  // the run that the trace is of, or may be of

}  // namespace stepladder
