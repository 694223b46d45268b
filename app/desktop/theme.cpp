// Palettes, fonts and sizes for ImGui and ImPlot. Sizes are given at scale 1 and scaled here. A new colour needs a
// value in both palettes, with enough contrast on cards and background.
#include "app/desktop/theme.h"

#include <implot.h>

#include <array>
#include <iterator>
#include <string>

#include "storage/regular_file.h"

namespace stepladder {
namespace {

constexpr ImVec4 hex(unsigned rgb) {
  return {static_cast<float>(rgb >> 16 & 255) / 255, static_cast<float>(rgb >> 8 & 255) / 255,
          static_cast<float>(rgb & 255) / 255, 1};
}

constexpr Palette dark_palette = {.background = hex(0x14171c),
                                  .card = hex(0x1b1f26),
                                  .line = hex(0x2b313b),
                                  .text = hex(0xe6e9ee),
                                  .quiet = hex(0x8b94a3),
                                  .accent = hex(0x5aa9ff),
                                  .good = hex(0x35c48d),
                                  .bad = hex(0xff6b6b),
                                  .warning = hex(0xf2b84b)};
constexpr Palette light_palette = {.background = hex(0xf6f7f9),
                                   .card = hex(0xffffff),
                                   .line = hex(0xdfe3e8),
                                   .text = hex(0x1b2330),
                                   .quiet = hex(0x667085),
                                   .accent = hex(0x1f6feb),
                                   .good = hex(0x12875a),
                                   .bad = hex(0xd1323a),
                                   .warning = hex(0x9a6700)};

constexpr std::array dark_rungs = {hex(0x5aa9ff), hex(0xf2b84b), hex(0x35c48d), hex(0xe58ad0), hex(0xff8a5c),
                                   hex(0x7fd6f2), hex(0xd9d75a), hex(0xb39dff), hex(0x9fb36a), hex(0xc9ced6)};
constexpr std::array light_rungs = {hex(0x1f6feb), hex(0xb35c00), hex(0x12875a), hex(0xb03a92), hex(0xc8401c),
                                    hex(0x0b7a99), hex(0x766f00), hex(0x6b4bd8), hex(0x55702a), hex(0x4a5568)};

Fonts loaded;
bool dark_now = true;
float scale_now = 1;

ImFont* load(const std::filesystem::path& file) {
  ImFontAtlas* atlas = ImGui::GetIO().Fonts;
  if (std::error_code error; std::filesystem::exists(file, error)) {
    if (ImFont* font = atlas->AddFontFromFileTTF(file.string().c_str())) return font;
  }
  return atlas->AddFontDefaultVector();
}

// A font for Chinese, Japanese and Korean, which our fonts lack: the first of these on this system, searched for once.
const std::string& font_of_other_scripts() {
  static const std::string content = [] {
    for (const char* file :
         {"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",               // Debian, Ubuntu
          "/usr/share/fonts/google-noto-sans-cjk-fonts/NotoSansCJK-Regular.ttc",  // Fedora
          "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc",
          "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",  // Arch
          "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
          "/System/Library/Fonts/PingFang.ttc"}) {
      RegularFile stream(file);
      if (stream) return std::string(std::istreambuf_iterator<char>(stream), {});
    }
    return std::string();
  }();
  return content;
}

// Merges them into the last added font.
void merge_other_scripts() {
  const std::string& content = font_of_other_scripts();
  if (content.empty()) return;
  ImFontConfig config;
  config.MergeMode = true;
  config.FontDataOwnedByAtlas = false;
  ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<char*>(content.data()), static_cast<int>(content.size()), 0,
                                             &config);
}

void apply_plot_theme(const Palette& colours) {
  ImPlotStyle& style = ImPlot::GetStyle();
  style = ImPlotStyle();
  style.PlotBorderSize = 0;
  style.PlotPadding = ImVec2(px(4), px(6));
  style.LabelPadding = ImVec2(px(6), px(5));
  style.LegendPadding = ImVec2(px(8), px(6));
  style.LegendInnerPadding = ImVec2(px(8), px(6));
  style.LegendSpacing = ImVec2(px(6), px(2));
  style.MajorTickLen = ImVec2(0, 0);
  style.MinorTickLen = ImVec2(0, 0);
  style.MinorAlpha = 0;
  style.PlotMinSize = ImVec2(px(120), px(70));
  style.Colors[ImPlotCol_FrameBg] = ImVec4(0, 0, 0, 0);
  style.Colors[ImPlotCol_PlotBg] = ImVec4(0, 0, 0, 0);
  style.Colors[ImPlotCol_PlotBorder] = colours.line;
  style.Colors[ImPlotCol_LegendBg] = faded(colours.card, 0.92f);
  style.Colors[ImPlotCol_LegendBorder] = colours.line;
  style.Colors[ImPlotCol_LegendText] = colours.text;
  style.Colors[ImPlotCol_TitleText] = colours.text;
  style.Colors[ImPlotCol_InlayText] = colours.quiet;
  style.Colors[ImPlotCol_AxisText] = colours.quiet;
  style.Colors[ImPlotCol_AxisGrid] = faded(colours.line, 0.85f);
  style.Colors[ImPlotCol_AxisBgHovered] = faded(colours.accent, 0.12f);
  style.Colors[ImPlotCol_AxisBgActive] = faded(colours.accent, 0.2f);
  style.Colors[ImPlotCol_Selection] = colours.accent;
  style.Colors[ImPlotCol_Crosshairs] = colours.quiet;
}

ImGuiStyle sizes(float scale) {
  ImGuiStyle style;
  style.FontSizeBase = text_size;
  style.FontScaleDpi = scale;
  style.WindowPadding = ImVec2(12, 9);  // of pop-ups and tool-tips; panels and cards have their own
  style.FramePadding = ImVec2(10, 7);
  style.ItemSpacing = ImVec2(10, 8);
  style.ItemInnerSpacing = ImVec2(8, 6);
  style.CellPadding = ImVec2(10, 6);
  style.IndentSpacing = 16;
  style.ScrollbarSize = 11;
  style.GrabMinSize = 10;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 1;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 1;
  style.WindowRounding = 0;
  style.ChildRounding = 8;
  style.FrameRounding = 6;
  style.PopupRounding = 8;
  style.ScrollbarRounding = 8;
  style.GrabRounding = 6;
  style.TabRounding = 6;
  style.TabBarBorderSize = 1;
  style.DockingSeparatorSize = 1;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.DisabledAlpha = 0.5f;
  style.ScaleAllSizes(scale);
  return style;
}

// Text and backgrounds.
void colour_surfaces(const Palette& colours, ImVec4* colour) {
  const ImVec4 clear(0, 0, 0, 0);
  colour[ImGuiCol_Text] = colours.text;
  colour[ImGuiCol_TextDisabled] = colours.quiet;
  colour[ImGuiCol_WindowBg] = colours.background;
  colour[ImGuiCol_ChildBg] = clear;
  colour[ImGuiCol_PopupBg] = colours.card;
  colour[ImGuiCol_Border] = colours.line;
  colour[ImGuiCol_TitleBg] = colours.background;
  colour[ImGuiCol_TitleBgActive] = colours.background;
  colour[ImGuiCol_TitleBgCollapsed] = colours.background;
  colour[ImGuiCol_MenuBarBg] = colours.background;
  colour[ImGuiCol_ScrollbarBg] = clear;
  colour[ImGuiCol_ScrollbarGrab] = faded(colours.quiet, 0.35f);
  colour[ImGuiCol_ScrollbarGrabHovered] = faded(colours.quiet, 0.55f);
  colour[ImGuiCol_ScrollbarGrabActive] = faded(colours.quiet, 0.75f);
  colour[ImGuiCol_DockingPreview] = faded(colours.accent, 0.5f);
  colour[ImGuiCol_DockingEmptyBg] = colours.background;
  colour[ImGuiCol_TableHeaderBg] = clear;
  colour[ImGuiCol_TableBorderStrong] = colours.line;
  colour[ImGuiCol_TableBorderLight] = faded(colours.line, 0.6f);
  colour[ImGuiCol_TableRowBg] = clear;
  colour[ImGuiCol_TableRowBgAlt] = clear;
  colour[ImGuiCol_TextSelectedBg] = faded(colours.accent, 0.35f);
  colour[ImGuiCol_InputTextCursor] = colours.text;
  colour[ImGuiCol_NavCursor] = colours.accent;
  colour[ImGuiCol_PlotHistogram] = colours.accent;
  colour[ImGuiCol_ModalWindowDimBg] = faded(colours.background, 0.6f);
}

// Controls.
void colour_controls(const Palette& colours, const ImVec4& raised, ImVec4* colour) {
  const ImVec4 clear(0, 0, 0, 0);
  colour[ImGuiCol_FrameBg] = raised;
  colour[ImGuiCol_FrameBgHovered] = faded(colours.accent, 0.16f);
  colour[ImGuiCol_FrameBgActive] = faded(colours.accent, 0.24f);
  colour[ImGuiCol_CheckMark] = colours.accent;
  colour[ImGuiCol_SliderGrab] = colours.accent;
  colour[ImGuiCol_SliderGrabActive] = colours.accent;
  colour[ImGuiCol_Button] = raised;
  colour[ImGuiCol_ButtonHovered] = faded(colours.accent, 0.22f);
  colour[ImGuiCol_ButtonActive] = faded(colours.accent, 0.34f);
  colour[ImGuiCol_Header] = faded(colours.accent, 0.16f);
  colour[ImGuiCol_HeaderHovered] = faded(colours.accent, 0.12f);
  colour[ImGuiCol_HeaderActive] = faded(colours.accent, 0.22f);
  colour[ImGuiCol_Separator] = colours.line;
  colour[ImGuiCol_SeparatorHovered] = colours.accent;
  colour[ImGuiCol_SeparatorActive] = colours.accent;
  colour[ImGuiCol_ResizeGrip] = clear;
  colour[ImGuiCol_ResizeGripHovered] = faded(colours.accent, 0.4f);
  colour[ImGuiCol_ResizeGripActive] = colours.accent;
  colour[ImGuiCol_Tab] = colours.background;
  colour[ImGuiCol_TabHovered] = faded(colours.accent, 0.22f);
  colour[ImGuiCol_TabSelected] = faded(colours.accent, 0.16f);
  colour[ImGuiCol_TabSelectedOverline] = clear;
  colour[ImGuiCol_TabDimmed] = colours.background;
  colour[ImGuiCol_TabDimmedSelected] = faded(colours.accent, 0.1f);
  colour[ImGuiCol_TabDimmedSelectedOverline] = clear;
}

}  // namespace

void load_fonts(const std::filesystem::path& folder) {
  const auto add = [&](ImFont*& font, const char* name) {
    font = load(folder / name);
    merge_other_scripts();
  };
  add(loaded.regular, "Inter-Regular.otf");
  add(loaded.semibold, "Inter-SemiBold.otf");
  add(loaded.display, "InterDisplay-SemiBold.otf");
  add(loaded.mono, "JetBrainsMono-Regular.ttf");
  ImGui::GetIO().FontDefault = loaded.regular;
}

void apply_theme(bool dark, float scale) {
  dark_now = dark;
  scale_now = scale;
  const Palette& colours = palette();
  ImGuiStyle style = sizes(scale);
  colour_surfaces(colours, style.Colors);
  colour_controls(colours, dark ? hex(0x232933) : hex(0xeef1f5), style.Colors);
  ImGui::GetStyle() = style;
  apply_plot_theme(colours);
}

const Palette& palette() {
  return dark_now ? dark_palette : light_palette;
}
const Fonts& fonts() {
  return loaded;
}
bool theme_is_dark() {
  return dark_now;
}
float px(float length) {
  return length * scale_now;
}

ImVec4 rung_colour(int rung) {
  constexpr int others = rung_colour_count - 1;
  const int hue = rung < rung_colour_count ? std::max(0, rung) : 1 + (rung - rung_colour_count) % others;
  return (dark_now ? dark_rungs : light_rungs)[static_cast<std::size_t>(hue)];
}

int rung_dash(int rung) {
  return rung < rung_colour_count ? 0 : 1 + (rung - rung_colour_count) / (rung_colour_count - 1);
}

ImU32 u32(const ImVec4& colour, float alpha) {
  return ImGui::GetColorU32(faded(colour, alpha));
}
ImVec4 faded(const ImVec4& colour, float alpha) {
  return {colour.x, colour.y, colour.z, colour.w * alpha};
}

ImVec4 muted(const ImVec4& colour, float share) {
  const ImVec4& ground = palette().card;
  const auto mix = [share](float of, float with) { return share * of + (1 - share) * with; };
  return {mix(colour.x, ground.x), mix(colour.y, ground.y), mix(colour.z, ground.z), 1};
}

}  // namespace stepladder
