// Draws Import while there is nothing to show: the place to drop files and the known formats, or what is being read. It
// draws its own frame and arrow, since ImGui has neither.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "app/desktop/commands/import_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/import/parts.h"
#include "app/text/format.h"

namespace stepladder {

namespace {

void centred(const std::string& text, ImFont* font, float size, const ImVec4& colour) {
  ImGui::PushFont(font, size);
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = ImGui::CalcTextSize(text.c_str(), nullptr, false, room).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (room - width) / 2));
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  text_wrapped(text);
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void draw_dashed_frame(const ImVec2& low, const ImVec2& high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 colour = u32(palette().quiet, 0.7f);
  const float dash = px(7);
  for (float x = low.x; x < high.x; x += 2 * dash) {
    const float end = std::min(x + dash, high.x);
    draw->AddLine(ImVec2(x, low.y), ImVec2(end, low.y), colour, px(1));
    draw->AddLine(ImVec2(x, high.y), ImVec2(end, high.y), colour, px(1));
  }
  for (float y = low.y; y < high.y; y += 2 * dash) {
    const float end = std::min(y + dash, high.y);
    draw->AddLine(ImVec2(low.x, y), ImVec2(low.x, end), colour, px(1));
    draw->AddLine(ImVec2(high.x, y), ImVec2(high.x, end), colour, px(1));
  }
}

// An arrow into a tray.
void draw_drop_sign() {
  const float size = px(34);
  const ImVec2 at(ImGui::GetCursorScreenPos().x + (ImGui::GetContentRegionAvail().x - size) / 2,
                  ImGui::GetCursorScreenPos().y);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 colour = u32(palette().accent);
  const auto line = [&](float x0, float y0, float x1, float y1) {
    draw->AddLine(ImVec2(at.x + size * x0, at.y + size * y0), ImVec2(at.x + size * x1, at.y + size * y1), colour,
                  px(2));
  };
  line(0.5f, 0, 0.5f, 0.66f);
  line(0.28f, 0.44f, 0.5f, 0.66f);
  line(0.72f, 0.44f, 0.5f, 0.66f);
  line(0.05f, 0.66f, 0.05f, 1);
  line(0.05f, 1, 0.95f, 1);
  line(0.95f, 1, 0.95f, 0.66f);
  ImGui::Dummy(ImVec2(size, size));
}

void draw_formats() {
  const float width = std::min(ImGui::GetContentRegionAvail().x, px(760));
  const float left = ImGui::GetCursorPosX() + (ImGui::GetContentRegionAvail().x - width) / 2;
  // Lines of pills, each in the middle.
  std::vector<std::string> line;
  float used = 0;
  const float between = px(8);
  const auto draw_line = [&] {
    ImGui::SetCursorPosX(left + std::max(0.0f, (width - used + between) / 2));
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) ImGui::SameLine(0, between);
      pill(line[i], Tone::neutral);
    }
    line.clear();
    used = 0;
  };
  const auto add = [&](const std::string& title) {
    const float wanted = pill_size(title).x + between;
    if (!line.empty() && used + wanted > width) draw_line();
    line.push_back(title);
    used += wanted;
  };
  for (const Importer& importer : all_importers())
    if (importer.has_runs) add(importer.title);
  for (const char* const trace : {"Trace of PyTorch's profiler", "Trace of Nsight Systems"}) add(trace);
  if (!line.empty()) draw_line();
}

void centred_examples(Commands& commands) {
  static float width = 0;  // as drawn last
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (room - width) / 2));
  ImGui::BeginGroup();
  example_buttons(commands);
  ImGui::EndGroup();
  width = ImGui::GetItemRectSize().x;
}

// A bar that moves to and fro, since the amount to read is unknown in advance.
void moving_bar(float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(6);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().line), height / 2);
  const float part = width * 0.28f;
  const float left = at.x + (width - part) * static_cast<float>(0.5 - 0.5 * std::cos(ImGui::GetTime() * 2.4));
  draw->AddRectFilled(ImVec2(left, at.y), ImVec2(left + part, at.y + height), u32(palette().accent), height / 2);
  ImGui::Dummy(ImVec2(width, height));
}

}  // namespace

std::string source_words(const ImportQuestion& asked) {
  if (asked.paths.empty()) return "pasted text";
  const std::string first = asked.paths.front();
  return asked.paths.size() == 1 ? first : first + " and " + std::to_string(asked.paths.size() - 1) + " more";
}

void draw_nothing(const std::string& last_path, bool is_read_only, Commands& commands) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  begin_card("##drop", ImVec2(0, 0), true);
  ImGui::SetCursorPosY(std::max(px(14), (room.y - px(390)) / 2));
  draw_drop_sign();
  gap(22);
  if (is_read_only) {
    centred("Nothing can be imported into this project", fonts().display, 19, palette().text);
    centred("It is open for reading only. A log or table is read for a preview, and not kept.", fonts().regular,
            text_size, palette().quiet);
    mark("import.read_only");
  } else {
    centred("Drop logs, tables, traces or folders on this window", fonts().display, 19, palette().text);
    centred("or paste a program's output with Ctrl+V, or enter a path above", fonts().regular, text_size,
            palette().quiet);
  }
  gap(34);
  centred("Formats, recognised by their content:", fonts().regular, small_size, palette().quiet);
  draw_formats();
  gap(34);
  if (!is_read_only)
    centred("You see what was read before anything is imported.", fonts().regular, small_size, palette().quiet);
  if (!last_path.empty()) {
    gap(20);
    const std::string label = "Read " + std::filesystem::path(last_path).filename().string() + " again";
    const float width = button_width(label);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (ImGui::GetContentRegionAvail().x - width) / 2));
    if (quiet_button(label.c_str())) commands.push_back(PreviewImport{{.paths = {last_path}}});
    ImGui::SetItemTooltip("%s", last_path.c_str());
    mark("import.again");
  }
  gap(34);
  if (!is_read_only) centred_examples(commands);
  end_card();
  const float inset = px(8);
  if (room.x > px(200) && room.y > px(120))
    draw_dashed_frame(ImVec2(low.x + inset, low.y + inset), ImVec2(low.x + room.x - inset, low.y + room.y - inset));
}

void draw_reading(const ImportPreview& import, Commands& commands) {
  begin_card("##reading", ImVec2(0, 0));
  const float width = std::min(px(460), ImGui::GetContentRegionAvail().x);
  ImGui::SetCursorPosY(std::max(px(14), ImGui::GetContentRegionAvail().y / 2 - px(70)));
  const bool keeps = import.state == ImportPreview::State::keeping;
  centred(keeps                        ? "Writing to the database"
          : import.asked.paths.empty() ? "Reading pasted text"
                                       : "Reading",
          fonts().semibold, 17, palette().text);
  const auto& [item, items, share] = import.progress;
  const std::string file = item.empty() ? source_words(import.asked) : item;
  const std::string count = items > 1 ? "file " + grouped(items) + ": " : "";
  ImGui::PushFont(fonts().regular, small_size);
  std::string shown = count + file;
  const float room = ImGui::GetContentRegionAvail().x;
  if (ImGui::CalcTextSize(shown.c_str()).x > room) shown = count + std::filesystem::path(file).filename().string();
  ImGui::PopFont();
  centred(shown, fonts().regular, small_size, palette().quiet);
  gap(28);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + (room - width) / 2);
  moving_bar(width);
  gap(30);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + (room - px(110)) / 2);
  if (ImGui::Button("Cancel", ImVec2(px(110), 0))) commands.push_back(ForgetImport{});
  mark("import.forget");
  if (keeps)
    centred("Cancelling discards this file; files already imported stay.", fonts().regular, small_size,
            palette().quiet);
  end_card();
}

}  // namespace stepladder
