// The frames of views and dialogs: a view's head, a card as high as its content, a dialog over the window. UI thread,
// inside a frame.
#pragma once

#include <string>

namespace stepladder {

// The title of a view and what it shows, cut where the button begins. The button's right edge is at that of the cards
// below. Returns whether it was pressed; `anchor` names it for tests. `beside`: pixels left of the button that are kept
// free.
struct HeadButton {
  const char* label;
  const char* anchor;
  bool is_enabled = true;
  const char* tooltip = "";  // what it does, or why it is disabled
};
bool view_head(const char* title, const std::string& explanation, const HeadButton& button, float beside = 0);

// A card as begin_card's that is as high as its content. End it with end_card.
void begin_tall_card(const char* id);

// A dialog in the middle of the window, without a title bar, `width` wide before scaling. Call end_dialog whether it is
// open or not.
bool begin_dialog(const char* id, float width = 560);
void end_dialog(bool is_open);

}  // namespace stepladder
