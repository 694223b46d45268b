// Shows a try's patch for the view Tries. The patch may be anybody's: lines of any length, and no patch at all.
#include "app/panels/tries/patch.h"

#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_shown = 2'000;

std::string shown_line(std::string_view line) {
  std::string text;
  for (const char letter : line.substr(0, longest_shown)) letter == '\t' ? text += "    " : text += letter;
  return bounded(std::move(text), longest_shown);
}

class PatchReader {
 public:
  void take(std::string_view line) {
    const bool in_hunk = left_before_ > 0 || left_after_ > 0;
    if (in_hunk && (line.empty() || line[0] == ' ')) {
      pair();
      rows_.push_back({PatchRow::Kind::same, shown_line(line.substr(line.empty() ? 0 : 1)),
                       shown_line(line.substr(line.empty() ? 0 : 1)), before_++, after_++});
      --left_before_, --left_after_;
    } else if (in_hunk && line[0] == '-') {
      if (!added_.empty()) pair();
      removed_.push_back(shown_line(line.substr(1)));
      --left_before_;
    } else if (in_hunk && line[0] == '+') {
      added_.push_back(shown_line(line.substr(1)));
      --left_after_;
    } else {
      pair();
      take_head(line);
    }
  }
  std::vector<PatchRow> rows() {
    pair();
    return std::move(rows_);
  }

 private:
  void take_head(std::string_view line) {
    int before = 0, after = 0, many_before = 1, many_after = 1;
    const std::string text(line.substr(0, 200));
    if (line.starts_with("@@")) {
      rows_.push_back({PatchRow::Kind::place, shown_line(line), {}});
      if (std::sscanf(text.c_str(), "@@ -%9d,%9d", &before, &many_before) < 2)
        std::sscanf(text.c_str(), "@@ -%9d", &before);
      const char* plus = std::strchr(text.c_str(), '+');
      if (!plus || (std::sscanf(plus, "+%9d,%9d", &after, &many_after) < 2 && std::sscanf(plus, "+%9d", &after) < 1))
        return;
      before_ = before, after_ = after, left_before_ = many_before, left_after_ = many_after;
    } else if (line.starts_with("diff --git ")) {
      const std::size_t at = line.find(" b/");
      rows_.push_back({PatchRow::Kind::file, shown_line(line.substr(at == line.npos ? 11 : at + 3)), {}});
    } else if (!line.empty() && !line.starts_with("--- ") && !line.starts_with("+++ ") && !line.starts_with("index ")) {
      rows_.push_back({PatchRow::Kind::place, shown_line(line), {}});
    }
  }
  // Puts removed lines beside the added ones that follow them.
  void pair() {
    for (std::size_t i = 0; i < std::max(removed_.size(), added_.size()); ++i) {
      PatchRow row{PatchRow::Kind::changed, {}, {}};
      if (i < removed_.size()) row.before = std::move(removed_[i]), row.line_before = before_++;
      if (i < added_.size()) row.after = std::move(added_[i]), row.line_after = after_++;
      rows_.push_back(std::move(row));
    }
    removed_.clear();
    added_.clear();
  }

  std::vector<PatchRow> rows_;
  std::vector<std::string> removed_, added_;
  int before_ = 0, after_ = 0;            // the next line's number
  int left_before_ = 0, left_after_ = 0;  // lines of the hunk that are still to come
};

// Numbers and signs before the text of a side.
float text_at() {
  return ImGui::CalcTextSize("00000").x + px(20);
}

// One side of a row: number, sign, text, on the side's colour. All texts are scrolled together.
void draw_side(const PatchRow& row, bool is_after, ImVec2 at, ImVec2 size) {
  const int number = is_after ? row.line_after : row.line_before;
  const bool is_changed = row.kind == PatchRow::Kind::changed;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec4& tone = is_after ? palette().good : palette().bad;
  if (is_changed && number > 0) draw->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), u32(tone, 0.14f));
  if (number == 0) return;
  const float digits = ImGui::CalcTextSize("00000").x;
  const std::string figure = std::to_string(number);
  draw->AddText(ImVec2(at.x + digits - ImGui::CalcTextSize(figure.c_str()).x, at.y), u32(palette().quiet),
                figure.c_str());
  if (is_changed) draw->AddText(ImVec2(at.x + digits + px(6), at.y), u32(tone), is_after ? "+" : "\xE2\x88\x92");
  const std::string& text = is_after ? row.after : row.before;
  draw->PushClipRect(ImVec2(at.x + text_at(), at.y), ImVec2(at.x + size.x - px(4), at.y + size.y), true);
  draw->AddText(ImVec2(at.x + text_at() - ImGui::GetScrollX(), at.y),
                u32(is_changed ? palette().text : palette().quiet), text.data(), text.data() + text.size());
  draw->PopClipRect();
}

void draw_row(const PatchRow& row, ImVec2 size) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 at(corner.x + ImGui::GetScrollX(), corner.y);
  ImGui::Dummy(size);
  if (row.kind == PatchRow::Kind::file || row.kind == PatchRow::Kind::place) {
    const bool is_file = row.kind == PatchRow::Kind::file;
    ImGui::PushFont(is_file ? fonts().semibold : fonts().mono, is_file ? 13.5f : 12);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->PushClipRect(at, ImVec2(at.x + size.x, at.y + size.y), true);
    draw->AddText(at, u32(is_file ? palette().text : palette().quiet), row.before.data(),
                  row.before.data() + row.before.size());
    draw->PopClipRect();
    ImGui::PopFont();
    return;
  }
  const float half = (size.x - px(8)) / 2;
  draw_side(row, false, at, ImVec2(half, size.y));
  draw_side(row, true, ImVec2(at.x + half + px(8), at.y), ImVec2(half, size.y));
}

}  // namespace

std::vector<PatchRow> patch_rows(const std::string& patch) {
  PatchReader reader;
  std::string_view rest = patch;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    reader.take(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return reader.rows();
}

void draw_patch(const std::vector<PatchRow>& rows) {
  ImGui::PushFont(fonts().mono, 13);
  std::size_t letters = 0;  // of the longest line
  for (const PatchRow& row : rows)
    if (row.line_before + row.line_after > 0) letters = std::max({letters, row.before.size(), row.after.size()});
  const float widest = text_at() + ImGui::CalcTextSize("0").x * static_cast<float>(letters) + px(8);
  const float width = ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize;
  const float beyond = std::max(0.0f, widest - (width - px(8)) / 2);
  ImGui::SetNextWindowContentSize(ImVec2(width + beyond, 0));
  ImGui::BeginChild("##patch", ImVec2(0, 0), ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  const ImVec2 size(width, ImGui::GetTextLineHeight() + px(3));
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()), size.y);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) draw_row(rows[static_cast<std::size_t>(i)], size);
  ImGui::PopStyleVar();
  ImGui::EndChild();
  ImGui::PopFont();
}

}  // namespace stepladder
