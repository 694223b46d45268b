// Draws the form for facts that a log lacks. The fields flow into as many lines as the width needs; a change of any
// makes the caller read the source again.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/import/parts.h"
#include "app/text/format.h"
#include "storage/by_enum.h"

namespace stepladder {

namespace {

std::string in_words(const ImportOptions& options) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (options.tokens_per_step > 0) add(grouped(options.tokens_per_step) + " tokens per step");
  if (options.params > 0) add(compact(static_cast<double>(options.params)) + " parameters");
  if (!options.hardware.empty()) add(options.hardware);
  if (!options.format.empty()) add("read as " + options.format);
  if (!options.step_key.empty()) add("steps by " + options.step_key);
  if (options.files == FilesAre::rungs) add("each file a rung");
  if (options.files == FilesAre::repeats) add("files are repeats");
  return text;
}

bool count_field(const char* id, NumberField& field, std::int64_t& value) {
  double number = value > 0 ? static_cast<double>(value) : missing;
  const bool is_other = field.draw(id, "from the file", number);
  value = is_missing(number) ? 0 : std::llround(number);
  return is_other;
}

struct Field {
  const char* label;
  float width;
};
constexpr std::array<Field, 6> fields = {Field{"tokens per step", 132},   Field{"parameters", 132},
                                         Field{"hardware", 232},          Field{"format", 220},
                                         Field{"files of a folder", 150}, Field{"step key", 150}};

struct Place {
  float x;
  int line;
};

// The place of each field: they flow into lines like words.
std::array<Place, fields.size()> places_of_fields(float room) {
  std::array<Place, fields.size()> places{};
  float used = 0;
  int line = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const float width = px(fields[i].width);
    if (i > 0 && used + px(12) + width > room) {
      ++line;
      used = 0;
    } else if (i > 0) {
      used += px(12);
    }
    places[i] = {used, line};
    used += width;
  }
  return places;
}

bool draw_format(ImportOptions& options) {
  const auto title = [](const std::string& id) {
    for (const Importer& importer : all_importers()) {
      if (importer.id == id) return importer.title;
    }
    return id;
  };
  bool changed = false;
  if (!ImGui::BeginCombo("##format", options.format.empty() ? "auto-detect" : title(options.format).c_str(),
                         ImGuiComboFlags_HeightLarge))
    return false;
  const auto choice = [&](const std::string& id, const std::string& words) {
    if (!ImGui::Selectable(words.c_str(), options.format == id) || options.format == id) return;
    options.format = id;
    changed = true;
  };
  choice("", "auto-detect");
  for (const Importer& importer : all_importers()) {
    if (importer.has_runs) choice(importer.id, importer.title);
  }
  ImGui::EndCombo();
  return changed;
}

constexpr auto names_of_choices = by_enum<FilesAre>("Detect", "Repeats", "Rungs", "Apart");

bool draw_files(FilesAre& files) {
  bool changed = false;
  if (!ImGui::BeginCombo("##files", names_of_choices[files])) return false;
  for (const FilesAre choice : {FilesAre::detect, FilesAre::repeats, FilesAre::rungs}) {
    const char* name = names_of_choices[choice];
    if (ImGui::Selectable(name, files == choice) && files != choice) {
      files = choice;
      changed = true;
    }
    mark(std::string("import.files.") + name);
  }
  ImGui::EndCombo();
  return changed;
}

}  // namespace

void ImportForm::show(const ImportOptions& wanted) {
  options = wanted;
  tokens.show(static_cast<double>(wanted.tokens_per_step));
  params.show(static_cast<double>(wanted.params));
}

std::string ImportForm::problem() const {
  const auto words = [](const char* name, const NumberField& field) {
    return std::string(name) + ": '" + field.text() + "' isn't a whole number. Write 524,288, 64 x 1024 or 124M.";
  };
  if (tokens.is_wrong()) return words("tokens per step", tokens);
  return params.is_wrong() ? words("parameters", params) : "";
}

bool draw_import_form(ImportForm& form, const HardwareTable& hardware) {
  const float room = ImGui::GetContentRegionAvail().x - px(32);
  const float line = px(18) + ImGui::GetFrameHeight() + px(10);
  const auto places = places_of_fields(room);
  const std::string problem = form.problem();
  const float below = (problem.empty() ? 0 : px(24)) + (form.as_last_time ? ImGui::GetFrameHeight() + px(8) : 0);
  begin_card("##corrections", ImVec2(0, line * static_cast<float>(places.back().line + 1) + below + px(22)));
  bool changed = false;
  const ImVec2 first = ImGui::GetCursorPos();
  float top = first.y;
  std::size_t next = 0;
  const auto field = [&](auto&& draw) {
    const Field& it = fields[next];
    const Place& place = places[next];
    if (next > 0 && place.line > places[next - 1].line) top = ImGui::GetCursorPosY();
    ++next;
    ImGui::SetCursorPos(ImVec2(first.x + place.x, top));
    ImGui::BeginGroup();
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
    text_quiet(it.label);
    ImGui::SetNextItemWidth(std::min(px(it.width), room));
    changed = draw() || changed;
    ImGui::PopStyleVar();
    ImGui::EndGroup();
  };
  ImportOptions& options = form.options;
  field([&] {
    const bool left = count_field("##tokens", form.tokens, options.tokens_per_step);
    mark("import.tokens");
    ImGui::SetItemTooltip("Batch x sequence x accumulated batches x devices");
    return left;
  });
  field([&] {
    const bool left = count_field("##params", form.params, options.params);
    mark("import.params");
    return left;
  });
  field([&] {
    const bool chosen = pick_hardware("##hardware", options.hardware, hardware, "from the file", true);
    mark("import.hardware");
    return chosen;
  });
  field([&] {
    const bool chosen = draw_format(options);
    mark("import.format");
    return chosen;
  });
  field([&] {
    const bool chosen = draw_files(options.files);
    mark("import.files");
    ImGui::SetItemTooltip("Detect compares recipes, hardware, source code and step times");
    return chosen;
  });
  field([&] {
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), "%s", options.step_key.c_str());
    if (ImGui::InputTextWithHint("##step_key", "by its name", text.data(), text.size())) options.step_key = text.data();
    const bool left = ImGui::IsItemDeactivatedAfterEdit();
    mark("import.step_key");
    ImGui::SetItemTooltip("The logged number that is the step, in stores of W&B and Trackio that count calls of log()");
    return left;
  });
  if (!problem.empty()) {
    ImGui::PushFont(fonts().regular, 13.5f);
    ImGui::TextColored(palette().bad, "%s", problem.c_str());
    ImGui::PopFont();
  }
  if (form.as_last_time) {
    if (quiet_button("Apply last settings", "import.as_last_time")) {
      form.show(*form.as_last_time);
      changed = true;
    }
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    text_cut(in_words(*form.as_last_time), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular,
             small_size);
  }
  end_card();
  return changed;
}

}  // namespace stepladder
