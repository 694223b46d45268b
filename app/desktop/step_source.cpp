// Draws a run's steps as a table beside the lines of the log that the chosen step was read from. The lines are searched
// on another thread, which reads the file again with its importer (app/import/source_lines.h).
#include "app/desktop/step_source.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"
#include "storage/record_fields.h"

namespace stepladder {
namespace {

struct Column {
  const char* title;
  std::vector<double> Series::*values;
  std::string (*text)(double);
};

std::string plain_text(double value) {
  return is_missing(value) ? "-" : compact(value);
}

constexpr std::array all_columns{Column{"loss", &Series::loss, [](double value) { return loss_text(value); }},
                                 Column{"val loss", &Series::val_loss, [](double value) { return loss_text(value); }},
                                 Column{"dt, ms", &Series::dt_ms, plain_text}, Column{"lr", &Series::lr, plain_text},
                                 Column{"grad norm", &Series::grad_norm, plain_text}};

// The columns that have a value in any step.
std::vector<Column> columns_of(const Series& steps) {
  std::vector<Column> columns;
  for (const Column& column : all_columns) {
    const std::vector<double>& values = steps.*column.values;
    if (std::ranges::any_of(values, [](double value) { return !is_missing(value); })) columns.push_back(column);
  }
  return columns;
}

// One line with its number before it and the step's values marked.
void draw_line(const std::string& line, std::int64_t number, bool is_the_steps, const StepRecord& step, float gutter) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetTextLineHeight();
  const float width = std::max(ImGui::GetContentRegionAvail().x, ImGui::CalcTextSize(line.c_str()).x + gutter);
  if (is_the_steps) draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().accent, 0.1f), px(3));
  const std::string label = std::to_string(number);
  draw->AddText(ImVec2(at.x + gutter - px(10) - ImGui::CalcTextSize(label.c_str()).x, at.y), u32(palette().quiet),
                label.c_str());
  for (const PrintedNumber& value : numbers_of_step(line, step)) {
    if (!is_the_steps && value.what != "validation loss") continue;  // which has a line of its own
    const float before = ImGui::CalcTextSize(line.data(), line.data() + value.begin).x;
    const float wide = ImGui::CalcTextSize(line.data() + value.begin, line.data() + value.begin + value.length).x;
    const ImVec2 low(at.x + gutter + before - px(1), at.y);
    const ImVec2 high(low.x + wide + px(2), at.y + height);
    draw->AddRectFilled(low, high, u32(palette().accent, 0.35f), px(2));
    if (ImGui::IsMouseHoveringRect(low, high) && ImGui::IsWindowHovered())
      ImGui::SetTooltip("%s", std::string(value.what).c_str());
  }
  ImGui::SetCursorScreenPos(ImVec2(at.x + gutter, at.y));
  ImGui::PushStyleColor(ImGuiCol_Text, is_the_steps ? palette().text : palette().quiet);
  ImGui::TextUnformatted(line.c_str(), line.c_str() + line.size());
  ImGui::PopStyleColor();
  if (is_the_steps) mark("steps.line");
}

}  // namespace

void StepSource::draw(const Run& run, const Series& steps, const StepOrigin& origin, int reading,
                      DataRequests& requests) {
  if (run.id != run_ || reading != reading_) {
    run_ = run.id;
    reading_ = reading;
    chosen_.reset();
    found_for_.reset();
  }
  if (chosen_ && *chosen_ >= steps.size()) chosen_.reset();
  if (steps.empty()) return text_quiet_wrapped("This run has no steps.");
  const std::int64_t asked = chosen_ ? static_cast<std::int64_t>(*chosen_) : -1;
  if (chosen_ && origin.is_known() && search_.is_stale({.asked = {run_, reading_, asked}, .data = {}}, false)) {
    found_for_.reset();
    search_.start({.asked = {run_, reading_, asked}, .data = {}},
                  [question = SourceQuestion{.file = origin.file,
                                             .text = origin.text,
                                             .options = origin.options,
                                             .stage = run.stage,
                                             .step = record_of(steps, *chosen_)}](const JobControl& job) {
                    return find_source_lines(question, [&] { return job.is_interrupted(); });
                  });
  }
  if (search_.is_pending()) {
    requests.next_frame = true;
    if (search_.take(found_, std::chrono::milliseconds(4)) && chosen_) found_for_ = chosen_;
  }
  if (!origin.is_known()) return draw_table(steps, false, ImVec2(0, 0));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(20);
  const bool is_wide = room.x > px(520);  // then the lines are beside the table, else beneath it
  draw_table(steps, true, is_wide ? ImVec2((room.x - space) * 0.42f, 0) : ImVec2(0, std::max(px(90), room.y * 0.5f)));
  if (is_wide) ImGui::SameLine(0, space);
  ImGui::BeginGroup();
  draw_lines(steps);
  ImGui::EndGroup();
}

void StepSource::draw_table(const Series& steps, bool can_choose, ImVec2 size) {
  const std::vector<Column> columns = columns_of(steps);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(8), px(3)));
  const auto count = static_cast<int>(columns.size()) + 1;
  if (!ImGui::BeginTable(table_id("##steps", count).c_str(), count,
                         ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchSame, size)) {
    ImGui::PopStyleVar();
    return;
  }
  ImGui::PushFont(fonts().regular, 13.5f);
  ImGui::TableSetupScrollFreeze(0, 1);
  for (int i = 0; i < count; ++i)
    ImGui::TableSetupColumn(i == 0 ? "step" : columns[static_cast<std::size_t>(i) - 1].title);
  ImGui::TableNextRow();
  const auto right = [](const std::string& text, const ImVec4& colour) {
    const float space = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x - px(6);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, space));
    ImGui::TextColored(colour, "%s", text.c_str());
  };
  for (int i = 0; i < count; ++i) {
    ImGui::TableSetColumnIndex(i);
    right(ImGui::TableGetColumnName(i), palette().quiet);
  }
  draw_rows(steps.size(), [&](std::size_t i) {
    ImGui::TableNextRow();
    ImGui::TableSetColumnIndex(0);
    if (can_choose) {
      ImGui::PushID(static_cast<int>(i));
      if (ImGui::Selectable("##step", chosen_ == i, ImGuiSelectableFlags_SpanAllColumns)) chosen_ = i;
      ImGui::PopID();
      mark("steps.row." + std::to_string(i));
      ImGui::SameLine(0, 0);
    }
    right(grouped(steps.step[i]), palette().text);
    for (std::size_t column = 0; column < columns.size(); ++column) {
      ImGui::TableSetColumnIndex(static_cast<int>(column) + 1);
      right(columns[column].text((steps.*columns[column].values)[i]), palette().text);
    }
  });
  ImGui::PopFont();
  ImGui::EndTable();
  ImGui::PopStyleVar();
}

void StepSource::draw_lines(const Series& steps) const {
  if (!chosen_) return text_quiet_wrapped("Click a step to see the line that it was read from.");
  if (!found_for_ || *found_for_ != *chosen_) return text_quiet("Reading the source...");
  if (!found_.problem.empty()) {
    text_quiet_wrapped(found_.problem);
    return mark("steps.problem");
  }
  const StepRecord step = record_of(steps, *chosen_);
  text_quiet("line " + grouped(found_.line));
  ImGui::BeginChild("##lines", ImVec2(0, 0), ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
  ImGui::PushFont(fonts().mono, 12.5f);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, px(1)));
  const std::string last = std::to_string(found_.first + std::ssize(found_.lines) - 1);
  const float gutter = ImGui::CalcTextSize(last.c_str()).x + px(16);
  for (std::size_t i = 0; i < found_.lines.size(); ++i) {
    const std::int64_t number = found_.first + static_cast<std::int64_t>(i);
    draw_line(found_.lines[i], number, number == found_.line, step, gutter);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::EndChild();
}

}  // namespace stepladder
