// The basic widgets: texts, tiles, pills, buttons, cards. Texts come from other people's logs and may be of any length,
// so measuring and cutting never read more than fits.
#include "app/desktop/widgets.h"

#include <imgui_internal.h>  // the baseline of a line's text

#include <algorithm>
#include <array>

#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

// The number of bytes of its beginning that fit into `width`. Measures no more: a stranger's name may have a million.
std::size_t bytes_within(const std::string& text, float width) {
  constexpr float rounding = 0.01f;  // CalcTextSizeA ends at this width, CalcTextSize before it
  const char* rest = nullptr;
  ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), width + rounding, 0, text.data(), text.data() + text.size(),
                                  &rest);
  return static_cast<std::size_t>(rest - text.data());
}

// The last characters that fit into `width`.
std::string end_within(const std::string& text, float width) {
  std::size_t begin = text.size();
  for (std::size_t at = text.size(); at-- > 0;) {
    if ((text[at] & 0xC0) == 0x80) continue;
    if (text[at] == '\n' || ImGui::CalcTextSize(text.c_str() + at).x > width) break;
    begin = at;
  }
  return text.substr(begin);
}

void text_in(const std::string& text, ImFont* font, float size, const ImVec4& colour) {
  ImGui::PushFont(font, size);
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

}  // namespace

ImVec4 tone_colour(Tone tone) {
  switch (tone) {
    case Tone::accent:
      return palette().accent;
    case Tone::good:
      return palette().good;
    case Tone::bad:
      return palette().bad;
    case Tone::warning:
      return palette().warning;
    case Tone::neutral:
      break;
  }
  return palette().quiet;
}

void text_title(const std::string& text) {
  text_in(text, fonts().display, title_size, palette().text);
  std::string name = text;
  std::replace(name.begin(), name.end(), ' ', '_');
  mark("title." + name);
}
void text_strong(const std::string& text) {
  text_in(text, fonts().semibold, text_size, palette().text);
}
void text_quiet(const std::string& text) {
  text_in(text, fonts().regular, small_size, palette().quiet);
}
void text_toned(const std::string& text, Tone tone) {
  text_in(text, fonts().semibold, text_size, tone_colour(tone));
}

void text_toned_wrapped(const std::string& text, Tone tone) {
  ImGui::PushTextWrapPos(0);
  text_toned(text, tone);
  ImGui::PopTextWrapPos();
}

void text_wrapped(const std::string& text) {
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopTextWrapPos();
}

void text_in(const std::string& text, ImFont* font, float size) {
  text_in(text, font, size, ImGui::GetStyle().Colors[ImGuiCol_Text]);
}

void text_sentence(const std::string& text, Tone tone) {
  ImGui::PushTextWrapPos(0);
  text_in(in_print(text), fonts().regular, 13.5f, tone == Tone::neutral ? palette().text : tone_colour(tone));
  ImGui::PopTextWrapPos();
}

void text_quiet_wrapped(const std::string& text) {
  ImGui::PushTextWrapPos(0);
  text_quiet(text);
  ImGui::PopTextWrapPos();
}

void text_right(const std::string& text, float right, ImFont* font, float size, const ImVec4* colour) {
  const std::string printed = in_print(text);
  ImGui::PushFont(font ? font : fonts().regular, size > 0 ? size : text_size);
  const float width = ImGui::CalcTextSize(printed.c_str()).x;
  ImGui::SetCursorPosX(right - width);
  ImGui::PushStyleColor(ImGuiCol_Text, colour ? *colour : palette().text);
  ImGui::TextUnformatted(printed.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

std::string cut_to(const std::string& text, float width, Cut cut) {
  if (bytes_within(text, width) == text.size()) return text;
  const float room = width - ImGui::CalcTextSize("...").x;
  const std::string end = cut == Cut::middle ? end_within(text, room * 0.6f) : "";
  return text.substr(0, bytes_within(text, room - ImGui::CalcTextSize(end.c_str()).x)) + "..." + end;
}

std::string combo_text(const std::string& text, float width) {
  return cut_to(text, width - ImGui::GetFrameHeight() - 2 * ImGui::GetStyle().FramePadding.x, Cut::middle);
}

void text_cut(const std::string& text, float width, const ImVec4& colour, ImFont* font, float size, Cut cut) {
  ImGui::PushFont(font, size);
  const std::string shown = cut_to(text, width, cut);
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ImGui::TextUnformatted(shown.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
  if (shown != text && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
}

ImVec2 pill_size(const std::string& text) {
  ImGui::PushFont(fonts().regular, small_size);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  ImGui::PopFont();
  return {size.x + px(16), size.y + px(8)};
}

void figure_tiles(std::span<const FigureTile> tiles) {
  const float each = ImGui::GetContentRegionAvail().x / static_cast<float>(tiles.size());
  const float start = ImGui::GetCursorPosX();
  const float room = each - px(10);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (i > 0) ImGui::SameLine(start + each * static_cast<float>(i));
    ImGui::BeginGroup();
    text_cut(tiles[i].name, room, palette().quiet, fonts().regular, small_size);
    const bool is_doubted = !tiles[i].doubt.empty();
    text_cut(tiles[i].value, room, is_doubted ? palette().quiet : palette().text, fonts().semibold, 19);
    if (is_doubted) {
      wrapped_tooltip(tiles[i].doubt, 360);
      mark("doubted." + tiles[i].name);
    }
    if (!tiles[i].detail.empty()) text_cut(tiles[i].detail, room, palette().quiet, fonts().regular, small_size);
    ImGui::EndGroup();
  }
}

void pill(const std::string& text, Tone tone) {
  const ImVec2 size = pill_size(text);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec4 colour = tone_colour(tone);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), u32(colour, theme_is_dark() ? 0.18f : 0.13f),
                      size.y / 2);
  ImGui::PushFont(fonts().regular, small_size);
  draw->AddText(ImVec2(at.x + px(8), at.y + px(4)), u32(tone == Tone::neutral ? palette().text : colour), text.c_str());
  ImGui::PopFont();
  ImGui::Dummy(size);
}

void pill_beside_buttons(const std::string& text, Tone tone) {
  const ImVec2 corner = ImGui::GetCursorPos();
  const ImVec2 size = pill_size(text);
  ImGui::SetCursorPosY(corner.y + (ImGui::GetFrameHeight() - size.y) / 2);
  pill(text, tone);
  ImGui::SetCursorPos(corner);
  ImGui::Dummy(ImVec2(size.x, ImGui::GetFrameHeight()));  // as high as the next items
  ImGui::SameLine();
}

bool primary_button(const char* label, bool enabled, const std::string& name) {
  ImGui::BeginDisabled(!enabled);
  // What can't be pressed keeps its words legible: dark on a paled accent is not.
  const ImVec4 accent = enabled ? palette().accent : faded(palette().accent, 0.2f);
  const ImVec4 words = !enabled          ? palette().text
                       : theme_is_dark() ? ImVec4(0.05f, 0.08f, 0.12f, 1)
                                         : ImVec4(1, 1, 1, 1);
  ImGui::PushStyleColor(ImGuiCol_Button, accent);
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, faded(accent, 0.88f));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, faded(accent, 0.76f));
  ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, words);
  ImGui::PushFont(fonts().semibold, text_size);
  const bool pressed = ImGui::Button(label);
  ImGui::PopFont();
  ImGui::PopStyleColor(5);
  ImGui::EndDisabled();
  if (!name.empty()) mark(name);
  return pressed;
}

bool quiet_button(const char* label, const std::string& name) {
  const bool pressed = ImGui::Button(label);
  if (!name.empty()) mark(name);
  return pressed;
}

float button_width(const std::string& label) {
  return ImGui::CalcTextSize(label.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x;
}

void same_line(float gap) {
  ImGui::SameLine(0, px(gap));
}

void spacing(float height) {
  ImGui::Dummy(ImVec2(0, px(height)));
}

void field_name(const std::string& text, float gap) {
  ImGui::AlignTextToFramePadding();
  text_quiet(text);
  same_line(gap);
}

void popup_at_item() {
  const ImVec2 low = ImGui::GetItemRectMin();
  const ImVec2 high = ImGui::GetItemRectMax();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 middle = viewport->GetWorkCenter();
  const bool is_right = (low.x + high.x) / 2 > middle.x;
  const bool is_low = (low.y + high.y) / 2 > middle.y;
  ImGui::SetNextWindowPos(ImVec2(is_right ? high.x : low.x, is_low ? low.y - px(4) : high.y + px(4)),
                          ImGuiCond_Appearing, ImVec2(is_right ? 1.0f : 0.0f, is_low ? 1.0f : 0.0f));
}

std::string list_search(const char* hint, std::size_t entries, bool* chosen) {
  constexpr std::size_t few = 8;
  static std::array<char, 128> typed{};
  if (ImGui::IsWindowAppearing()) typed[0] = 0;
  if (entries <= few) return "";
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::max(px(200), ImGui::GetContentRegionAvail().x));
  const bool entered =
      ImGui::InputTextWithHint("##list_search", hint, typed.data(), typed.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  mark("list.search");
  close_popup_at_escape();
  if (chosen) *chosen = entered && typed[0] != 0;
  return typed.data();
}

void hold_keyboard() {
  const ImGuiIO& io = ImGui::GetIO();
  const bool is_free = ImGui::IsWindowFocused() && !ImGui::IsAnyItemActive() && !io.NavVisible &&
                       !ImGui::IsMouseDown(ImGuiMouseButton_Left);
  if (ImGui::IsWindowAppearing() || is_free) ImGui::SetKeyboardFocusHere();
}

void mark_taken_by_enter() {
  const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(low, high, u32(palette().accent, 0.16f), px(4));
  constexpr const char* key = "Enter";
  ImGui::PushFont(fonts().regular, small_size);
  const ImVec2 words = ImGui::CalcTextSize(key);
  const float right = std::min(high.x, ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - px(14));
  draw->AddText(ImVec2(right - words.x - px(4), (low.y + high.y - words.y) / 2), u32(palette().quiet), key);
  ImGui::PopFont();
  mark("list.enter");
}

void close_popup_at_escape() {
  if (ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape, false)) ImGui::CloseCurrentPopup();
}

void flow_to(const char* label, float gap) {
  flow_for(button_width(label), gap);
}

void flow_for(float width, float gap) {
  const float right = ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + px(gap) + width <= right) ImGui::SameLine(0, px(gap));
}

float flowing_height(std::span<const std::string> labels, float width, float gap) {
  float lines = labels.empty() ? 0 : 1, at = 0;
  for (const std::string& label : labels) {
    const float each = button_width(label);
    if (at > 0 && at + px(gap) + each > width) {
      ++lines;
      at = 0;
    }
    at += (at > 0 ? px(gap) : 0) + each;
  }
  return lines * ImGui::GetFrameHeight() + std::max(0.0f, lines - 1) * ImGui::GetStyle().ItemSpacing.y;
}

bool chip(const char* label, bool on) {
  ImGui::PushStyleColor(ImGuiCol_Button, on ? faded(palette().accent, 0.22f) : ImVec4(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, on ? palette().accent : palette().text);
  ImGui::PushStyleColor(ImGuiCol_Border, on ? faded(palette().accent, 0.5f) : palette().line);
  const bool pressed = ImGui::Button(label);
  ImGui::PopStyleColor(3);
  return pressed;
}

bool choice(const char* id, const std::string& name, int& at, const std::vector<std::string>& words, float width) {
  if (!name.empty()) {
    ImGui::AlignTextToFramePadding();
    text_quiet(name);
    ImGui::SameLine(0, px(6));
  }
  ImGui::SetNextItemWidth(width);
  bool changed = false;
  const char* shown =
      at >= 0 && at < static_cast<int>(words.size()) ? words[static_cast<std::size_t>(at)].c_str() : "-";
  if (ImGui::BeginCombo(id, shown)) {
    for (int i = 0; i < static_cast<int>(words.size()); ++i) {
      if (ImGui::Selectable((words[static_cast<std::size_t>(i)] + "##" + std::to_string(i)).c_str(), i == at)) {
        changed = i != at;
        at = i;
      }
    }
    ImGui::EndCombo();
  }
  return changed;
}

void begin_card(const char* id, ImVec2 size, bool scrolls) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, palette().card);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), px(14)));
  ImGui::BeginChild(
      id, size,
      // Flattened: Escape would leave the card and draw a frame around it.
      ImGuiChildFlags_Borders | ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened,
      scrolls ? ImGuiWindowFlags_None : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

void end_card() {
  ImGui::EndChild();
}

void progress_bar(double share, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(6);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().line), height / 2);
  const float filled = width * static_cast<float>(std::clamp(share, 0.0, 1.0));
  if (filled > height) draw->AddRectFilled(at, ImVec2(at.x + filled, at.y + height), u32(palette().accent), height / 2);
  ImGui::Dummy(ImVec2(width, height));
}

void gap(float height) {
  ImGui::Dummy(ImVec2(0, px(height) - ImGui::GetStyle().ItemSpacing.y * 2));
}

void wrapped_tooltip(const std::string& text, float width) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) return;
  // Beneath the item or above it, so that it neither covers what is read nor follows the mouse.
  const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
  const ImVec2 padding = ImGui::GetStyle().WindowPadding;
  ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, px(width));
  size = ImVec2(size.x + 2 * padding.x, size.y + 2 * padding.y);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 end(viewport->WorkPos.x + viewport->WorkSize.x, viewport->WorkPos.y + viewport->WorkSize.y);
  const bool is_below = high.y + px(4) + size.y <= end.y;
  const float left = std::max(viewport->WorkPos.x, std::min(low.x, end.x - size.x - px(4)));
  ImGui::SetNextWindowPos(
      ImVec2(left, is_below ? high.y + px(4) : std::max(viewport->WorkPos.y, low.y - px(4) - size.y)));
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(width));
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

namespace {

void draw_sort_arrow(float x, float middle, bool is_up) {
  const float up = is_up ? px(2.5f) : -px(2.5f);
  ImGui::GetWindowDrawList()->AddTriangleFilled(ImVec2(x, middle + up), ImVec2(x + px(8), middle + up),
                                                ImVec2(x + px(4), middle - up), u32(palette().accent));
}

}  // namespace

void column_head(const std::string& name, bool is_number) {
  const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  const bool is_sorted = specs && specs->SpecsCount > 0 && specs->Specs[0].ColumnIndex == ImGui::TableGetColumnIndex();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x - (is_sorted ? px(14) : 0);
  const std::string fits = cut_to(name, room, Cut::middle);
  const float width = ImGui::CalcTextSize(fits.c_str()).x;
  const ImU32 colour = ImGui::GetColorU32(ImGuiCol_Text);
  ImGui::PushStyleColor(ImGuiCol_Text, ImVec4(0, 0, 0, 0));  // ImGui's arrow is above the middle of the line
  ImGui::PushID(ImGui::TableGetColumnIndex());
  ImGui::TableHeader("##head");
  ImGui::PopID();
  ImGui::PopStyleColor();
  if (fits != name) ImGui::SetItemTooltip("%s", name.c_str());
  const float left = is_number ? at.x + std::max(0.0f, room - width) : at.x;
  ImGui::GetWindowDrawList()->AddText(ImVec2(left, at.y), colour, fits.c_str());
  if (is_sorted)
    draw_sort_arrow(left + width + px(5), at.y + ImGui::GetTextLineHeight() / 2,
                    specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending);
}

std::string table_id(const char* name, int columns) {
  return name + std::to_string(columns);
}

void draw_rows(std::size_t count, float height, const std::function<void(std::size_t)>& draw) {
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count), height);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) draw(static_cast<std::size_t>(i));
}

void draw_rows(std::size_t count, const std::function<void(std::size_t)>& draw) {
  draw_rows(count, -1, draw);
}

namespace {

// Takes the room of a square in a line of text; returns its corner.
ImVec2 place_square(float side) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // The text may be below the line's top, e.g. after a check box.
  const float top =
      at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + (ImGui::GetTextLineHeight() - side) / 2;
  ImGui::Dummy(ImVec2(side, ImGui::GetTextLineHeight()));
  return {at.x, top};
}

}  // namespace

void colour_square(const ImVec4& colour) {
  const float side = px(10);
  const ImVec2 low = place_square(side);
  ImGui::GetWindowDrawList()->AddRectFilled(low, ImVec2(low.x + side, low.y + side), u32(colour), px(2));
}

void look_square(int look, float alpha) {
  const float side = px(10);
  const ImVec2 low = place_square(side);
  fill_look(low, ImVec2(low.x + side, low.y + side), look, alpha);
}

void fill_look(ImVec2 low, ImVec2 high, int look, float alpha) {
  const int pieces = 1 + std::min(rung_dash(look), 3);
  const float gap = px(2);
  const float width = (high.x - low.x - gap * static_cast<float>(pieces - 1)) / static_cast<float>(pieces);
  for (int i = 0; i < pieces; ++i) {
    const float left = low.x + (width + gap) * static_cast<float>(i);
    ImGui::GetWindowDrawList()->AddRectFilled(ImVec2(left, low.y), ImVec2(left + width, high.y),
                                              u32(faded(rung_colour(look), alpha)), pieces == 1 ? px(2) : px(1));
  }
}

void empty_state(const std::string& what, const std::string& what_to_do) {
  empty_state(what, what_to_do, {});
}

int empty_state(const std::string& what, const std::string& what_to_do, std::span<const EmptyButton> buttons) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float left = ImGui::GetCursorPosX();
  const auto centred = [&](const std::string& text, ImFont* font, float size, const ImVec4& colour) {
    ImGui::PushFont(font, size);
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    ImGui::PopFont();
    ImGui::SetCursorPosX(left + std::max(0.0f, (room.x - width) / 2));
    ImGui::PushTextWrapPos(0);
    text_in(text, font, size, colour);
    ImGui::PopTextWrapPos();
  };
  const float half = px(30) + (buttons.empty() ? 0 : ImGui::GetFrameHeight() / 2 + px(6));
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::max(0.0f, room.y / 2 - half));
  centred(what, fonts().semibold, text_size, palette().text);
  if (!what_to_do.empty()) centred(what_to_do, fonts().regular, small_size, palette().quiet);
  if (buttons.empty()) return -1;
  spacing(6);
  float width = px(8) * static_cast<float>(buttons.size() - 1);
  for (const EmptyButton& button : buttons)
    width += button_width(button.label) + px(button.is_main ? 4 : 0);  // semi-bold
  ImGui::SetCursorPosX(left + std::max(0.0f, (room.x - width) / 2));
  int pressed = -1;
  ImGui::PushID("empty");  // the view may have a button of the same name elsewhere
  for (std::size_t i = 0; i < buttons.size(); ++i) {
    const EmptyButton& button = buttons[i];
    if (i > 0) same_line(8);
    ImGui::BeginDisabled(!button.is_enabled);
    if (button.is_main ? primary_button(button.label, true, button.anchor) : quiet_button(button.label, button.anchor))
      pressed = static_cast<int>(i);
    ImGui::EndDisabled();
  }
  ImGui::PopID();
  return pressed;
}

bool keys_are_for_panel() {
  const bool are_ours = !ImGui::GetIO().WantTextInput &&
                        ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows | ImGuiFocusedFlags_NoPopupHierarchy);
  if (are_ours) ImGui::SetKeyOwner(ImGuiKey_Escape, ImGui::GetID("##keys"));  // else it would move the focus elsewhere
  return are_ours;
}

bool item_is_dragged() {
  return ImGui::IsItemActive() || ImGui::IsItemDeactivated();
}

void mark(const std::string& name) {
  if (ImGui::GetCurrentWindow()->Hidden) return;  // a popup's first frame only measures it
  const ImVec2 low = ImGui::GetItemRectMin();
  const ImVec2 high = ImGui::GetItemRectMax();
  ui_test_anchors::note(name, low.x, low.y, high.x, high.y);
}

void hatch(ImVec2 low, ImVec2 high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(low, high, u32(palette().quiet, 0.25f), px(3));
  draw->PushClipRect(low, high, true);
  const float height = high.y - low.y;
  for (float x = low.x - height; x < high.x; x += px(6))
    draw->AddLine(ImVec2(x, high.y), ImVec2(x + height, low.y), u32(palette().quiet, 0.6f), px(1));
  draw->PopClipRect();
}

}  // namespace stepladder
