// The basic widgets of all panels. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stepladder {

enum class Tone { neutral, accent, good, bad, warning };
ImVec4 tone_colour(Tone tone);

void text_title(const std::string& text);
void text_strong(const std::string& text);
void text_quiet(const std::string& text);  // 12.5 px grey: explanations
void text_quiet_wrapped(const std::string& text);
void text_toned(const std::string& text, Tone tone);
void text_toned_wrapped(const std::string& text, Tone tone);
void text_wrapped(const std::string& text);
void text_in(const std::string& text, ImFont* font, float size);
void text_sentence(const std::string& text, Tone tone = Tone::neutral);  // wrapped; arithmetic or its result

// Draws `text` with its right edge at `right` (window coordinates), on the current line.
void text_right(const std::string& text, float right, ImFont* font = nullptr, float size = 0,
                const ImVec4* colour = nullptr);

// Text cut to `width` pixels with an ellipsis; hovering shows all of it. Run names differ at their ends, so they are
// cut in the middle.
enum class Cut { end, middle };
std::string cut_to(const std::string& text, float width, Cut cut = Cut::end);  // in the current font
std::string combo_text(const std::string& text, float width);  // cut to what a combo of this width shows
void text_cut(const std::string& text, float width, const ImVec4& colour, ImFont* font, float size, Cut cut = Cut::end);

// Large numbers in a row, equally wide, each cut to its width. `doubt`: why a figure can't be relied on; it is grey
// then.
struct FigureTile {
  std::string name;
  std::string value;
  std::string detail = {};
  std::string doubt = {};
};
void figure_tiles(std::span<const FigureTile> tiles);

// A coloured word in a rounded box.
void pill(const std::string& text, Tone tone);
void pill_beside_buttons(const std::string& text, Tone tone);  // vertically centred; the line continues after it
ImVec2 pill_size(const std::string& text);

// `name` is its mark(), for tests.
bool primary_button(const char* label, bool enabled = true, const std::string& name = {});
bool quiet_button(const char* label, const std::string& name = {});
float button_width(const std::string& label);  // in the current font

// Call before BeginPopup: opens it at the item just drawn, its button, below or above it, wherever there is room.
void popup_at_item();

// A search field at the top of an open list or popup with more than a few entries. Call it first inside; returns the
// typed text. One list is open at a time. `chosen` becomes true when Enter was pressed: take the first match.
std::string list_search(const char* hint, std::size_t entries, bool* chosen = nullptr);

// Call before the only text field of a popup: it has the keyboard from the first frame on, and again after a click
// beside it, so that no typed letter is lost.
void hold_keyboard();

// Call after the row of the first match, if the list takes it at Enter and something was typed: marks it.
void mark_taken_by_enter();

// Call after a text field in a popup: Escape closes the popup instead of only leaving the field.
void close_popup_at_escape();

// The gaps and heights of widgets are in pixels before scaling.
void same_line(float gap);                                // the next item is beside the last one
void spacing(float height);                               // an empty line
void field_name(const std::string& text, float gap = 8);  // in grey before a field, which comes next

// Places the next button beside the last item, or on a new line if it doesn't fit.
void flow_to(const char* label, float gap = 8);
void flow_for(float width, float gap = 8);  // the same for an item of `width` pixels

// The height of buttons with these labels in `width` pixels, the first at the left and the others by flow_to().
float flowing_height(std::span<const std::string> labels, float width, float gap = 8);

// A button that is on or off. Returns whether it was pressed.
bool chip(const char* label, bool on);

// A combo of words with its name in grey before it; `at` is the chosen one. Returns whether it changed.
bool choice(const char* id, const std::string& name, int& at, const std::vector<std::string>& words, float width);

// A card with a thin border and rounded corners; size 0 fills. Always pair begin with end.
void begin_card(const char* id, ImVec2 size = ImVec2(0, 0), bool scrolls = false);
void end_card();

// A thin bar; `share` 0..1, with an accent fill.
void progress_bar(double share, float width);

// Space between two cards, `height` pixels in total.
void gap(float height);

// A tooltip for the item just drawn, wrapped at `width`.
void wrapped_tooltip(const std::string& text, float width);

// The id of a table whose number of columns changes with its room or its content: one for each number. ImGui keeps a
// column's width by its place, so a column would have the width of another one that was there before.
std::string table_id(const char* name, int columns);

// The head of a sortable or other column: like ImGui's own, but over numbers at their right edge, and with the arrow of
// the order in the middle of its line. The name's full text is a tooltip where it is cut.
void column_head(const std::string& name, bool is_number);

// Calls draw(i) for those of `count` rows that are in sight. All are `height` high, without it as high as the first.
void draw_rows(std::size_t count, float height, const std::function<void(std::size_t)>& draw);
void draw_rows(std::size_t count, const std::function<void(std::size_t)>& draw);

// A square of a rung's colour before its name.
void colour_square(const ImVec4& colour);
void look_square(int look, float alpha = 1);  // of a line: its colour, in pieces if it is dashed (rung_dash)
void fill_look(ImVec2 low, ImVec2 high, int look, float alpha = 1);

// Fills an empty panel: what will appear here, and how to make it appear. With buttons it returns the place of the one
// that was pressed, else -1.
void empty_state(const std::string& what, const std::string& what_to_do);
struct EmptyButton {
  const char* label;
  const char* anchor;
  bool is_main = false;
  bool is_enabled = true;
};
int empty_state(const std::string& what, const std::string& what_to_do, std::span<const EmptyButton> buttons);

// True if keys go to the panel that is being drawn rather than to a text field or an open list.
bool keys_are_for_panel();

// True while the item just drawn is held, and in the frame in which it is let go: on a busy machine all of a drag is in
// that one.
bool item_is_dragged();

// Names the item just drawn, for tests that drive the window with real events (ui_test_anchors.h).
void mark(const std::string& name);

// Marks a number that isn't trusted by a texture, since colour alone isn't enough.
void hatch(ImVec2 low, ImVec2 high);

}  // namespace stepladder
