// Draws the table of previewed or imported runs. Columns have fixed places by the card's width, and the least important
// ones disappear first; the edit button exists for files with a single run only.
#include <imgui.h>

#include <algorithm>
#include <string>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/models/run_columns.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/import/parts.h"
#include "app/text/format.h"

namespace stepladder {

namespace {

constexpr float row_height = 42;

// The places where columns begin or, for numbers, end, from each row's left edge. A narrow card hides hardware and
// unit, then steps and dt, then the loss.
struct Columns {
  float name, name_width, steps, loss, dt, tokens, printed, printed_width, flags, flags_width;
  bool has_printed, has_steps, has_loss;
};

// `names_any`: whether a run has a hardware or a printed unit to show.
Columns columns_for(float width, bool names_any) {
  Columns at{};
  at.has_printed = names_any && width > px(860);
  at.has_steps = width > px(640);
  at.has_loss = width > px(460);
  at.name = px(24);
  at.flags_width = width > px(860) ? px(212) : at.has_loss ? px(118) : px(84);
  at.flags = width - at.flags_width;
  at.printed_width = at.has_printed ? std::clamp(width * 0.2f - px(30), px(150), px(420)) : 0;
  at.printed = at.flags - at.printed_width - (at.has_printed ? px(16) : 0);
  at.tokens = at.printed - px(20);
  at.dt = at.tokens - (at.has_steps ? px(76) : 0);
  at.loss = at.has_steps ? at.dt - px(64) : at.tokens - px(76);
  at.steps = at.has_steps ? at.loss - px(142) : 0;
  const float first_number = at.has_steps ? at.steps - px(46) : at.has_loss ? at.loss - px(136) : at.tokens - px(56);
  at.name_width = std::max(px(20), first_number - px(10) - at.name);
  return at;
}

void draw_flags(const std::vector<Flag>& flags, float width) {
  std::size_t shown = 0;
  float used = 0;
  const float between = px(6);
  ImGui::BeginGroup();
  // Most logs hold a single run: shown in the tooltip, not in every row.
  const auto is_shown = [](const Flag& flag) { return flag.id != FlagId::not_repeated; };
  const auto in_row = static_cast<std::size_t>(std::ranges::count_if(flags, is_shown));
  for (const Flag& flag : flags) {
    if (!is_shown(flag)) continue;
    const std::string words(kind_of(flag.id).title);
    if (shown == 0 && pill_size(words).x > width) {  // the title doesn't fit
      pill(plural(in_row, "issue"), severity_tone(flag.id));
      shown = in_row;
      break;
    }
    const std::size_t rest = in_row - shown - 1;
    const float more = rest > 0 ? pill_size("+" + std::to_string(rest)).x + between : 0;
    const float wanted = pill_size(words).x + (used > 0 ? between : 0);
    if (shown > 0 && used + wanted + more > width) break;
    if (shown > 0) ImGui::SameLine(0, between);
    pill(words, severity_tone(flag.id));
    used += wanted;
    ++shown;
  }
  if (shown < in_row) {
    ImGui::SameLine(0, between);
    pill("+" + std::to_string(in_row - shown), Tone::neutral);
  }
  if (in_row == 0) pill("no issues", Tone::good);
  ImGui::EndGroup();
  if (flags.empty() || !ImGui::IsItemHovered()) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(520));
  for (const Flag& flag : flags) {
    text_toned(std::string(kind_of(flag.id).title), severity_tone(flag.id));
    ImGui::TextUnformatted(flag_advice(flag).c_str());
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

// Sets the file's role, name and place (file.h).
void draw_edit_button(std::size_t index, const ImVec2& at, std::optional<std::size_t>& edited) {
  ImGui::SetCursorPos(ImVec2(at.x, at.y + px(10)));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), px(2)));
  ImGui::PushFont(fonts().regular, small_size);
  if (quiet_button("Edit")) edited = index;
  ImGui::PopFont();
  ImGui::PopStyleVar();
  mark("import.edit." + std::to_string(index));
  ImGui::SetItemTooltip("Name, role and place of this file");
}

void draw_row(std::size_t index, const ImportPreview::PreviewRun& shown, const std::vector<Flag>& flags,
              std::set<std::size_t>& selected, const Columns& at, std::optional<std::size_t>* edited) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 place = ImGui::GetCursorPos();
  const float width = at.flags + at.flags_width;
  const float height = px(row_height);
  const bool is_selected = selected.contains(index);
  ImGui::PushID(static_cast<int>(index));
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("##row", ImVec2(width, height))) {
    if (is_selected) {
      selected.erase(index);
    } else {
      selected.insert(index);
    }
  }
  mark("import.row." + std::to_string(index));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered()) {
    draw->AddRectFilled(ImVec2(corner.x - px(6), corner.y), ImVec2(corner.x + width + px(6), corner.y + height),
                        u32(palette().accent, 0.07f), px(6));
  }
  draw->AddLine(ImVec2(corner.x, corner.y + height), ImVec2(corner.x + width, corner.y + height),
                u32(palette().line, 0.7f));
  const ImVec4 colour = rung_colour(static_cast<int>(index));
  const ImVec2 low(corner.x, corner.y + (height - px(12)) / 2);
  const ImVec2 high(low.x + px(12), low.y + px(12));
  if (is_selected) {
    draw->AddRectFilled(low, high, u32(colour), px(3));
  } else {
    draw->AddRect(low, high, u32(colour, 0.7f), px(3), 0, px(1.5f));
  }
  const Run& run = shown.run;
  const Summary& summary = shown.summary;
  const float first = place.y + px(4);
  const float second = place.y + px(23);
  const float middle = place.y + (height - px(18)) / 2;
  ImGui::SetCursorPos(ImVec2(place.x + at.name, first));
  // Runs of one file share its name; their stages tell them apart.
  const std::string stage = run.title.empty() ? run.stage : run.title;
  text_cut(stage.empty() ? run.name : stage, at.name_width, palette().text, fonts().semibold, text_size, Cut::middle);
  ImGui::SetCursorPos(ImVec2(place.x + at.name, second));
  text_cut(stage.empty() ? "no rung name" : run.name, at.name_width, palette().quiet, fonts().regular, small_size,
           Cut::middle);
  if (edited) draw_edit_button(index, ImVec2(place.x + at.name + at.name_width + px(4), place.y), *edited);
  const ImVec4& believed = trust_of(flags) == Trust::impossible ? palette().quiet : palette().text;
  const auto number = [&](float right, const std::string& text, const ImVec4& number_colour) {
    ImGui::SetCursorPosY(middle);
    text_right(text, place.x + right, nullptr, 0, &number_colour);
  };
  if (at.has_steps) number(at.steps, grouped(summary.steps), palette().text);
  if (at.has_loss)
    number(at.loss,
           is_missing(summary.loss_first)
               ? "-"
               : in_print(loss_text(summary.loss_first) + " -> " + loss_text(summary.loss_last)),
           palette().text);
  if (at.has_steps) number(at.dt, compact_in_unit(summary.dt_ms_median), believed);
  number(at.tokens, tokens_per_s_text(summary.tokens_per_s), believed);
  if (at.has_printed) {
    ImGui::SetCursorPos(ImVec2(place.x + at.printed, first));
    text_cut(run.hardware.empty() ? "no hardware named" : run.hardware, at.printed_width,
             run.hardware.empty() ? palette().quiet : palette().text, fonts().regular, 13.5f);
    ImGui::SetCursorPos(ImVec2(place.x + at.printed, second));
    text_cut(run.printed.unit.empty() ? "no unit printed" : run.printed.unit, at.printed_width, palette().quiet,
             fonts().regular, small_size);
  }
  ImGui::SetCursorPos(ImVec2(place.x + at.flags, place.y + (height - pill_size("x").y) / 2));
  draw_flags(flags, at.flags_width);
  ImGui::SetCursorPos(ImVec2(place.x, place.y + height + px(1)));
  ImGui::PopID();
}

// True if the run is the only one of its file.
bool is_editable(const std::vector<ImportPreview::PreviewRun>& runs, std::size_t i) {
  const std::string& file = runs[i].run.source_path;
  const auto is_of_it = [&](std::size_t k) { return k < runs.size() && runs[k].run.source_path == file; };
  return !file.empty() && !is_of_it(i + 1) && (i == 0 || !is_of_it(i - 1));
}

}  // namespace

float import_rows_height(std::size_t runs) {
  return px(56) + (px(row_height) + px(1)) * static_cast<float>(runs);
}

void draw_import_rows(const std::vector<ImportPreview::PreviewRun>& runs, const std::vector<std::vector<Flag>>& flags,
                      std::set<std::size_t>& selected, std::optional<std::size_t>* edited) {
  const bool names_any = std::ranges::any_of(runs, [](const ImportPreview::PreviewRun& shown) {
    return !shown.run.hardware.empty() || !shown.run.printed.unit.empty();
  });
  Columns at = columns_for(ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize - px(4), names_any);
  if (at.name_width < px(120)) edited = nullptr;
  if (edited) at.name_width -= px(52);
  const ImVec2 top = ImGui::GetCursorPos();
  const auto head = [&](float x, const char* text, bool right) {
    ImGui::SetCursorPos(ImVec2(top.x + x, top.y));
    if (right) {
      text_right(text, top.x + x, fonts().regular, small_size, &palette().quiet);
    } else {
      text_quiet(text);
    }
  };
  ImGui::SetCursorPos(ImVec2(top.x + at.name, top.y));
  text_cut("stage / run", at.name_width, palette().quiet, fonts().regular, small_size);
  if (at.has_steps) head(at.steps, "steps", true);
  if (at.has_loss) head(at.loss, "loss", true);
  if (at.has_steps) head(at.dt, "dt, ms", true);
  head(at.tokens, "tokens/s", true);
  if (at.has_printed) head(at.printed, "hardware / printed unit", false);
  head(at.flags, "plausible?", false);
  ImGui::SetCursorPos(ImVec2(top.x, top.y + px(24)));
  ImGui::BeginChild("##rows", ImVec2(0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), 0));
  draw_rows(runs.size(), px(row_height) + px(1), [&](std::size_t i) {
    draw_row(i, runs[i], flags[i], selected, at, is_editable(runs, i) ? edited : nullptr);
  });
  ImGui::Dummy(ImVec2(0, 0));  // the last row placed the cursor; an item makes it count
  ImGui::PopStyleVar();
  ImGui::EndChild();
}

}  // namespace stepladder
