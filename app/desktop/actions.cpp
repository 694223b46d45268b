// Lists the window's actions with their keys, and scores them for the palette. An action with a key must be listed
// here, since keys are handled from this list too; runs and ladders, which may be thousands, are in the palette only.
#include "app/desktop/actions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/import_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/panel.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/views/view_commands.h"
#include "app/desktop/workspace.h"
#include "app/desktop/workspace/verification.h"
#include "app/profile/example_traces.h"
#include "app/runs/examples.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

void add_ladder_actions(std::vector<Action>& actions, const Ladder& ladder) {
  actions.push_back({.title = "Bars or waterfall", .command = ToggleWaterfall{}, .detail = "W in Ladder"});
  for (const auto& [title, ending] :
       {std::pair("Export report (HTML)", ".html"), std::pair("Export table (CSV)", ".csv"),
        std::pair("Export table (Markdown)", ".md"), std::pair("Export table and bars (LaTeX)", ".tex"),
        std::pair("Export bars (PNG)", ".png"), std::pair("Export bars (SVG)", ".svg"),
        std::pair("Export bars (PDF)", ".pdf")})
    actions.push_back({.title = title, .command = SaveLadder{ladder.id, ending}, .detail = ladder.name});
}

}  // namespace

std::vector<Action> window_actions(const std::vector<Panel>& panels, const Workspace& workspace) {
  std::vector<Action> actions, beside;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const ImGuiKeyChord key = i < 9 ? ImGuiMod_Ctrl | static_cast<ImGuiKey>(ImGuiKey_1 + static_cast<int>(i)) : 0;
    actions.push_back({.title = "Show " + panels[i].title, .command = ShowPanel{panels[i].id}, .key = key});
    beside.push_back({.title = "Open " + panels[i].title + " side by side",
                      .command = ShowPanel{panels[i].id, true},
                      .key = key ? key | ImGuiMod_Shift : 0});
  }
  actions.push_back({.title = "Command palette", .command = ShowPalette{}, .key = ImGuiMod_Ctrl | ImGuiKey_K});
  actions.push_back({.title = "Undo" + (workspace.undoable.empty() ? "" : ": " + workspace.undoable),
                     .command = Undo{},
                     .key = ImGuiMod_Ctrl | ImGuiKey_Z});
  for (const ExampleFile& it : example_files)
    actions.push_back({.title = std::string("Example: ") + it.title, .command = OpenExample{path_of(it), it.gpu}});
  actions.push_back({.title = std::string("Example: ") + example_traces_title,
                     .command = OpenExampleTraces{},
                     .detail = "a pair of traces"});
  if (has_examples(workspace))
    actions.push_back({.title = "Remove the examples",
                       .command = RemoveExamples{},
                       .detail = "their runs go to the bin",
                       .is_dangerous = true});
  actions.push_back({.title = "Switch theme", .command = ToggleTheme{}, .key = ImGuiMod_Ctrl | ImGuiKey_T});
  actions.push_back({.title = "Theme: dark", .command = SetTheme{ThemeChoice::dark}});
  actions.push_back({.title = "Theme: light", .command = SetTheme{ThemeChoice::light}});
  actions.push_back({.title = "Theme: follow the system", .command = SetTheme{ThemeChoice::system}});
  actions.push_back({.title = "Toggle line styles", .command = ToggleLineStyles{}});
  actions.push_back({.title = "Larger text",
                     .command = ChangeScale{1},
                     .key = ImGuiMod_Ctrl | ImGuiKey_Equal,
                     .also = {ImGuiMod_Ctrl | ImGuiKey_KeypadAdd, ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Equal}});
  actions.push_back({.title = "Smaller text",
                     .command = ChangeScale{-1},
                     .key = ImGuiMod_Ctrl | ImGuiKey_Minus,
                     .also = {ImGuiMod_Ctrl | ImGuiKey_KeypadSubtract}});
  actions.push_back({.title = "Normal text size", .command = ChangeScale{0}, .key = ImGuiMod_Ctrl | ImGuiKey_0});
  actions.push_back({.title = "Fold or unfold the side bar",
                     .command = FoldSideBar{},
                     .key = ImGuiMod_Ctrl | ImGuiKey_B,
                     .detail = "icons only"});
  actions.push_back({.title = "Launch a sweep",
                     .command = ShowPanel{"launch"},
                     .detail = "a list, such as 1e-4, 3e-4, in any value"});
  actions.push_back(
      {.title = "Resume a run from its checkpoint", .command = ShowPanel{"launch"}, .detail = "at the top right"});
  actions.push_back({.title = "Reset layout", .command = ResetLayout{}, .key = ImGuiMod_Ctrl | ImGuiKey_Backspace});
  for (const Panel& panel : panels)
    if (panel.view)
      actions.push_back({.title = "Reset view: " + panel.title,
                         .command = ResetPanel{panel.id},
                         .detail = "filter, columns, charts, axes"});
  actions.push_back({.title = "Reload the database", .command = Reload{}, .key = ImGuiKey_F5});
  if (!workspace.open_view.empty())
    actions.push_back({.title = "Update view: " + workspace.open_view, .command = SaveView{workspace.open_view}});
  actions.push_back({.title = "Clear the selection", .command = ClearSelection{}});
  if (workspace.verification->open) actions.push_back({.title = "Stop verification", .command = StopVerification{}});
  if (const RunEntry* current = workspace.current_run();
      current && workspace.read_only.empty() && !current->is_active())
    actions.push_back({.title = "Delete the current run",
                       .command = Curate{"Deleted " + current->run.name, {current->run.id}, {.deleted_at = unix_now()}},
                       .detail = current->run.name + ", to the bin",
                       .is_dangerous = true});
  actions.push_back({.title = "Bin: restore runs", .command = ShowPanel{"history"}, .detail = "at the top of History"});
  actions.push_back({.title = "Empty bin", .command = EmptyBin{}, .detail = "asks first", .is_dangerous = true});
  if (const RunEntry* running = workspace.running()) {
    actions.push_back({.title = workspace.is_paused ? "Resume run" : "Pause run",
                       .command = PauseRun{running->run.id, !workspace.is_paused},
                       .key = ImGuiMod_Ctrl | ImGuiKey_P,
                       .detail = running->run.name});
    actions.push_back({.title = "Stop run", .command = StopRun{running->run.id}, .detail = running->run.name});
    actions.push_back(
        {.title = "Stop all runs", .command = StopAll{}, .detail = "the run and the queue", .is_dangerous = true});
  } else {
    actions.push_back({.title = "Pause run", .command = ShowPanel{"live"}, .detail = "no run is training"});
  }
  if (const Ladder* ladder = workspace.shown_ladder()) add_ladder_actions(actions, *ladder);
  std::ranges::move(beside, std::back_inserter(actions));  // last: without a word typed they would hide the others
  return actions;
}

std::vector<Action> places_to_go(const Workspace& workspace) {
  std::vector<Action> actions;
  for (const std::string& view : workspace.views)
    actions.push_back({.title = "Open view: " + view, .command = OpenView{view}, .is_place = true});
  for (auto ladder = workspace.ladders().rbegin(); ladder != workspace.ladders().rend(); ++ladder) {
    actions.push_back({.title = "Ladder: " + ladder->name,
                       .command = SelectLadder{ladder->id},
                       .detail = local_time_text(ladder->created_at),
                       .is_place = true});
  }
  for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry) {
    actions.push_back({.title = "Run: " + entry->run.name,
                       .command = OpenRun{entry->run.id},
                       .detail = local_time_text(entry->run.created_at),
                       .is_place = true});
  }
  return actions;
}

bool any_key_pressed() {
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key) {  // those before the gamepad's
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(key))) return true;
  }
  return false;
}

std::string key_text(ImGuiKeyChord key) {
  if (key == 0) return "";
  std::string text;
  if (key & ImGuiMod_Ctrl) text += "Ctrl+";
  if (key & ImGuiMod_Shift) text += "Shift+";
  if (key & ImGuiMod_Alt) text += "Alt+";
  const auto plain = static_cast<ImGuiKey>(key & ~ImGuiMod_Mask_);
  switch (plain) {
    case ImGuiKey_Equal:
      return text + "+";
    case ImGuiKey_Minus:
      return text + "-";
    default:
      return text + ImGui::GetKeyName(plain);
  }
}

namespace {

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool is_same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

constexpr int too_many = 1000;

// How many beginnings of words of `text`, in their order, make up `word`; too_many if none do.
int pieces_of(const std::string& word, const std::string& text) {
  std::vector<int> from(word.size() + 1, too_many);  // of the letters from each one on, in the words seen so far
  from.back() = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    if (at > 0 && is_letter(text[at - 1])) continue;
    for (std::size_t i = 0; i < word.size(); ++i)
      for (std::size_t n = 0; i + n < word.size() && at + n < text.size() && is_same(word[i + n], text[at + n]); ++n)
        from[i] = std::min(from[i], 1 + from[i + n + 1]);
  }
  return from.front();
}

}  // namespace

std::optional<int> fuzzy_score(const std::string& typed, const std::string& text) {
  int score = -static_cast<int>(text.size() / 16);
  std::istringstream words(typed);
  for (std::string word; words >> word;) {
    const auto within = std::search(text.begin(), text.end(), word.begin(), word.end(), is_same);
    const int pieces = pieces_of(word, text);
    if (pieces >= too_many && within == text.end()) return std::nullopt;
    score += 12 - 4 * std::min(pieces, 2) -
             (within == text.end() ? 4 : static_cast<int>(std::min<std::ptrdiff_t>(within - text.begin(), 40)) / 10);
  }
  return score;
}

namespace {

// Whether the title, without a leading "Run: " or "Show ", is what was typed, 0, or begins with it, 1; else 2.
int nearness(const std::string& typed, std::string_view title) {
  const auto begins = [&](std::string_view text) {
    return text.size() >= typed.size() && std::equal(typed.begin(), typed.end(), text.begin(), is_same);
  };
  const std::size_t colon = title.find(": ");
  const std::size_t name_at = colon != std::string_view::npos ? colon + 2 : title.starts_with("Show ") ? 5 : 0;
  int nearest = 2;
  for (const std::string_view name : {title, title.substr(name_at)})
    if (begins(name)) nearest = std::min(nearest, name.size() == typed.size() ? 0 : 1);
  return nearest;
}

// Whether the words of `text` begin with the typed ones, in their order.
bool begins_as_typed(const std::string& typed, const std::string& text) {
  std::istringstream words(typed);
  std::string word;
  for (std::size_t at = 0; words >> word;) {
    const auto fits = [&](std::size_t from) {
      return (from == 0 || !is_letter(text[from - 1])) && from + word.size() <= text.size() &&
             std::equal(word.begin(), word.end(), text.begin() + static_cast<std::ptrdiff_t>(from), is_same);
    };
    while (at < text.size() && !fits(at)) ++at;
    if (at >= text.size()) return false;
    at += word.size();
  }
  return true;
}

// What people call the things of these titles elsewhere.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> other_words{
    {{"bin", "delete remove trash deleted undelete recover"},
     {"launch", "start train run"},
     {"stop", "cancel kill abort end"},
     {"import", "open load add file log csv tensorboard wandb"},
     {"export", "save download share print"},
     {"history", "runs table list filter tag pin archive rename sort group columns"},
     {"compare", "graph chart plot diff"},
     {"profile", "trace timeline flame kernels why slow next advisor recommend"},
     {"mfu", "flops utilisation roofline peak"},
     {"record", "speedrun leaderboard"},
     {"machines", "ssh gpu remote host cluster slurm server"},
     {"theme", "colours settings preferences appearance night"},
     {"text size", "zoom font scale"},
     {"larger text", "zoom font scale"},
     {"smaller text", "zoom font scale"}}};

// The other words for an action's title, with a blank before each.
std::string also_called(const std::string& title) {
  std::string words;
  for (const auto& [name, others] : other_words)
    if (begins_as_typed(std::string(name), title)) words += " " + std::string(others);
  return words;
}

}  // namespace

std::vector<std::size_t> matching_actions(const std::vector<Action>& actions, const std::string& typed,
                                          const std::vector<std::string>& recent) {
  struct Match {
    std::size_t place;
    std::tuple<int, bool, std::ptrdiff_t, int, int> order;  // least first
  };
  std::vector<Match> matches;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    const std::string text = action.title + (action.detail.empty() ? "" : " " + action.detail) +
                             (action.is_place || typed.empty() ? "" : also_called(action.title));
    const auto score = fuzzy_score(typed, text);
    if (!score) continue;
    const int tier = typed.empty() ? 0 : (begins_as_typed(typed, action.title) ? 0 : 2) + (action.is_place ? 1 : 0);
    const auto used = std::distance(recent.begin(), std::find(recent.begin(), recent.end(), action.title));
    const int near = typed.empty() ? 0 : nearness(typed, action.title);
    matches.push_back(
        {i, {near == 0 && !action.is_dangerous ? -1 : tier, action.is_dangerous, used, near, tier < 2 ? 0 : -*score}});
  }
  std::ranges::stable_sort(matches, {}, &Match::order);
  std::vector<std::size_t> places;
  for (const Match& match : matches) places.push_back(match.place);
  return places;
}

}  // namespace stepladder
