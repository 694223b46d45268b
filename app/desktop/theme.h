// Colours, fonts and spacing of the window. One palette for dark, one for light; one colour per rung everywhere.
#pragma once

#include <imgui.h>

#include <filesystem>

namespace stepladder {

struct Palette {
  ImVec4 background, card, line;
  ImVec4 text, quiet;
  ImVec4 accent, good, bad, warning;
};

struct Fonts {
  ImFont* regular = nullptr;
  ImFont* semibold = nullptr;
  ImFont* display = nullptr;  // titles
  ImFont* mono = nullptr;     // text of programs and models
};

// Sizes before scaling; ImGui rasterises fonts at size x scale, so they are sharp at any.
inline constexpr float text_size = 15;
inline constexpr float small_size = 12.5f;
inline constexpr float title_size = 22;

// Loads the fonts in `folder`; ImGui's own vector font replaces missing ones. Once per ImGui context.
void load_fonts(const std::filesystem::path& folder);

// Sets every colour and size of ImGui and ImPlot. `scale` is the display's scale times the user's.
void apply_theme(bool dark, float scale);

const Palette& palette();
const Fonts& fonts();
bool theme_is_dark();

// A length in pixels of the display: px(8) is 8 at scale 1 and 16 at scale 2.
float px(float length);

// One of ten colours that colour-blind people can tell apart (after Okabe and Ito); they repeat from the eleventh rung
// on.
// A line's look by its number: the ten hues, then nine of them again with other dashes, since the first is the
// baseline's alone. The first 55 differ.
ImVec4 rung_colour(int rung);
int rung_dash(int rung);  // 0: solid
inline constexpr int rung_colour_count = 10;

ImU32 u32(const ImVec4& colour, float alpha = 1);
ImVec4 faded(const ImVec4& colour, float alpha);

// What `faded` looks like on a card, but opaque: where curves lie on each other, the upper one keeps its colour.
ImVec4 muted(const ImVec4& colour, float share);

}  // namespace stepladder
