// Import: what another program kept is read, shown as it was understood, corrected by hand where it has to be, and only
// then kept.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "app/desktop/charts.h"
#include "app/desktop/fields.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "storage/plausibility.h"

namespace stepladder {
namespace {

using Preview = ImportPreview;
using Json = nlohmann::json;

// What somebody said of files that did not say it themselves, to be offered for the next ones.
struct Correction {
  std::string folder;  // empty: pasted text
  std::string format;
  ImportOptions options;
};
constexpr std::size_t most_corrections = 50;

struct Row {
  std::vector<Flag> flags;
  std::string printed;  // which unit, and on which hardware
};

struct State {
  std::array<char, 4096> path{};
  NumberField tokens;
  NumberField params;
  ImportOptions options;  // what the fields say
  std::string last_path;
  std::vector<Correction> corrections;  // newest first

  // Derived from the reading with this number.
  int number = 0;
  bool was_kept = false;
  std::vector<Row> rows;
  std::set<std::size_t> selected;
  std::optional<ImportOptions> as_last_time;  // what was said then, where nothing is said now
  std::vector<std::string> notes;
  std::vector<float> note_tops;  // as wrapped at `notes_width`, with the end of the last
  float notes_width = 0;
};

// --- what is remembered
// -----------------------------------------------------------------------------------------------

bool says_something(const ImportOptions& options) {
  return options.tokens_per_step > 0 || options.params > 0 || !options.hardware.empty() || !options.format.empty() ||
         options.flat;
}

bool same(const ImportOptions& a, const ImportOptions& b) {
  return a.tokens_per_step == b.tokens_per_step && a.params == b.params && a.hardware == b.hardware &&
         a.format == b.format && a.flat == b.flat;
}

std::string in_words(const ImportOptions& options) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (options.tokens_per_step > 0) add(grouped(options.tokens_per_step) + " tokens per step");
  if (options.params > 0) add(compact(static_cast<double>(options.params)) + " parameters");
  if (!options.hardware.empty()) add(options.hardware);
  if (!options.format.empty()) add("read as " + options.format);
  if (options.flat) add("every file a rung");
  return text;
}

std::string remember(const State& state) {
  Json list = Json::array();
  for (const Correction& it : state.corrections) {
    list.push_back({{"folder", it.folder},
                    {"format", it.format},
                    {"tokens_per_step", it.options.tokens_per_step},
                    {"params", it.options.params},
                    {"hardware", it.options.hardware},
                    {"as", it.options.format},
                    {"flat", it.options.flat}});
  }
  return Json{{"path", state.last_path}, {"corrections", list}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void recall(State& state, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return;
  try {
    state.last_path = json.value("path", "");
    for (const Json& it : json.value("corrections", Json::array())) {
      state.corrections.push_back({.folder = it.value("folder", ""),
                                   .format = it.value("format", ""),
                                   .options = {.tokens_per_step = it.value("tokens_per_step", std::int64_t{0}),
                                               .params = it.value("params", std::int64_t{0}),
                                               .hardware = it.value("hardware", ""),
                                               .format = it.value("as", ""),
                                               .flat = it.value("flat", false)}});
    }
  } catch (const Json::exception&) {  // another version's: what was understood of it is kept
  }
}

std::string folder_of(const Preview& import) {
  if (import.runs.empty()) return {};
  return std::filesystem::path(import.runs.front().run.source_path).parent_path().string();
}

std::string format_of(const Preview& import) {
  return import.formats.empty() ? std::string() : import.formats.front();
}

const Correction* find_correction(const State& state, const Preview& import) {
  const std::string folder = folder_of(import);
  const std::string format = format_of(import);
  const auto find = [&](auto&& fits) {
    const auto found = std::find_if(state.corrections.begin(), state.corrections.end(), fits);
    return found == state.corrections.end() ? nullptr : &*found;
  };
  if (!folder.empty()) {
    if (const auto* found = find([&](const Correction& it) { return it.folder == folder; })) return found;
  }
  return format.empty() ? nullptr : find([&](const Correction& it) { return it.format == format; });
}

void take_note_of(State& state, const Preview& import) {
  if (!says_something(import.asked.options)) return;
  const Correction now{folder_of(import), format_of(import), import.asked.options};
  std::erase_if(state.corrections,
                [&](const Correction& it) { return it.folder == now.folder && it.format == now.format; });
  state.corrections.insert(state.corrections.begin(), now);
  if (state.corrections.size() > most_corrections) state.corrections.resize(most_corrections);
}

// --- what is asked for
// ------------------------------------------------------------------------------------------------

void copy_to(std::span<char> field, const std::string& text) {
  const std::size_t length = std::min(text.size(), field.size() - 1);
  std::memcpy(field.data(), text.data(), length);
  field[length] = 0;
}

void show_options(State& state, const ImportOptions& options) {
  state.options = options;
  state.tokens.show(static_cast<double>(options.tokens_per_step));
  state.params.show(static_cast<double>(options.params));
}

// What is wrong with a field; empty where nothing is.
std::string problem_of(const State& state) {
  const auto words = [](const char* name, const NumberField& field) {
    return std::string(name) + ": '" + field.text() + "' is not a whole number; 524,288 and 64 x 1024 and 124M are";
  };
  if (state.tokens.is_wrong()) return words("tokens per step", state.tokens);
  return state.params.is_wrong() ? words("parameters", state.params) : "";
}

void read_path(State& state, Commands& commands) {
  const std::string path = plain_path(state.path.data());
  if (path.empty()) return;
  copy_to(state.path, path);
  commands.push_back(PreviewImport{.paths = {path}, .options = state.options});
}

void read_again(const State& state, const Preview& import, Commands& commands) {
  PreviewImport asked = import.asked;
  asked.options = state.options;
  commands.push_back(std::move(asked));
}

std::string source_words(const PreviewImport& asked) {
  if (asked.paths.empty()) return "pasted text";
  const std::string first = asked.paths.front();
  return asked.paths.size() == 1 ? first : first + " and " + std::to_string(asked.paths.size() - 1) + " more";
}

std::string runs_words(std::size_t count) {
  return grouped(static_cast<std::int64_t>(count)) + (count == 1 ? " run" : " runs");
}

// --- what was understood
// ----------------------------------------------------------------------------------------------

const char* words_of(FlagId flag) {
  switch (flag) {
    case FlagId::impossible_throughput:
      return "impossible";
    case FlagId::suspicious_throughput:
      return "suspicious";
    case FlagId::unit_tokens_per_ms:
      return "unit mislabelled";
    case FlagId::dt_throughput_mismatch:
      return "time and rate differ";
    case FlagId::nonfinite_loss:
      return "loss not finite";
    case FlagId::step_overlap:
      return "steps twice";
    case FlagId::clock_backwards:
      return "clock went back";
    case FlagId::missing_dt:
      return "steps without time";
    case FlagId::no_sync:
      return "not synchronised";
    case FlagId::not_repeated:
      return "one run";
    case FlagId::unknown_hardware:
      break;
  }
  return "hardware not known";
}

Tone tone_of(FlagId flag) {
  switch (flag) {
    case FlagId::impossible_throughput:
    case FlagId::nonfinite_loss:
      return Tone::bad;
    case FlagId::not_repeated:
    case FlagId::unknown_hardware:
      return Tone::neutral;
    default:
      return Tone::warning;
  }
}

std::string note_text(const ImportNote& note, bool several_files) {
  std::string where = several_files ? std::filesystem::path(note.file).filename().string() : "";
  if (note.line > 0) where += (where.empty() ? "line " : ", line ") + grouped(note.line);
  return where.empty() ? note.text : where + ": " + note.text;
}

constexpr std::size_t most_selected_at_first = 12;

void derive(State& state, const Workspace& workspace) {
  const Preview& import = workspace.import;
  if (import.state == Preview::State::reading || import.state == Preview::State::keeping) return;
  if (state.number == import.number) return;
  state.number = import.number;
  state.rows.clear();
  state.selected.clear();
  state.notes.clear();
  state.notes_width = 0;
  show_options(state, import.asked.options);
  if (import.state == Preview::State::nothing) copy_to(state.path, "");
  if (import.asked.paths.size() == 1) {
    copy_to(state.path, import.asked.paths.front());
    state.last_path = import.asked.paths.front();
  }
  state.as_last_time.reset();
  if (import.state == Preview::State::understood && !says_something(import.asked.options)) {
    if (const Correction* then = find_correction(state, import)) state.as_last_time = then->options;
  }
  RepeatCounts repeats;
  for (const Preview::PreviewRun& run : import.runs) repeats.add(run.run);
  for (const Preview::PreviewRun& run : import.runs) {
    state.rows.push_back({flags_of(run.run, run.summary, repeats.of(run.run), workspace.hardware), run.unit});
    if (state.selected.size() < most_selected_at_first) state.selected.insert(state.rows.size() - 1);
  }
  std::set<std::string> files;
  for (const ImportNote& note : import.notes) files.insert(note.file);
  for (const ImportNote& note : import.notes) state.notes.push_back(note_text(note, files.size() > 1));
}

// --- drawing
// ----------------------------------------------------------------------------------------------------------

void gap(float height) {
  ImGui::Dummy(ImVec2(0, px(height) - ImGui::GetStyle().ItemSpacing.y * 2));
}

void centred(const std::string& text, ImFont* font, float size, const ImVec4& colour) {
  ImGui::PushFont(font, size);
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = ImGui::CalcTextSize(text.c_str(), nullptr, false, room).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (room - width) / 2));
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void draw_path(State& state, bool enabled, Commands& commands) {
  ImGui::BeginDisabled(!enabled);
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - px(90));
  bool asked =
      ImGui::InputTextWithHint("##path", "path of a file or a folder, then Enter", state.path.data(), state.path.size(),
                               ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  mark("import.path");
  ImGui::SameLine();
  asked |= ImGui::Button("Read", ImVec2(px(80), 0));
  mark("import.read");
  ImGui::EndDisabled();
  if (asked) read_path(state, commands);
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
  for (const Importer& importer : all_importers()) {
    const float wanted = pill_size(importer.title).x + between;
    if (!line.empty() && used + wanted > width) draw_line();
    line.push_back(importer.title);
    used += wanted;
  }
  if (!line.empty()) draw_line();
}

void draw_nothing(State& state, Commands& commands) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  begin_card("##drop", ImVec2(0, 0), true);
  ImGui::SetCursorPosY(std::max(px(14), (room.y - px(330)) / 2));
  draw_drop_sign();
  gap(22);
  centred("Drop logs, tables or a folder of them on this window", fonts().display, 19, palette().text);
  centred("or press Ctrl+V to paste what a program has printed, or give a path above", fonts().regular, text_size,
          palette().quiet);
  gap(34);
  centred("What is understood, by its content:", fonts().regular, small_size, palette().quiet);
  draw_formats();
  gap(34);
  centred("Nothing is kept before you have seen what was understood. The same on the command line:", fonts().regular,
          small_size, palette().quiet);
  centred("stepladder import runs/ --tokens-per-step 524288", fonts().semibold, 13.5f, palette().text);
  if (!state.last_path.empty()) {
    gap(34);
    const std::string label = "Read " + std::filesystem::path(state.last_path).filename().string() + " again";
    const float width = ImGui::CalcTextSize(label.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, (ImGui::GetContentRegionAvail().x - width) / 2));
    if (quiet_button(label.c_str())) commands.push_back(PreviewImport{.paths = {state.last_path}});
    ImGui::SetItemTooltip("%s", state.last_path.c_str());
    mark("import.again");
  }
  end_card();
  const float inset = px(8);
  if (room.x > px(200) && room.y > px(120))
    draw_dashed_frame(ImVec2(low.x + inset, low.y + inset), ImVec2(low.x + room.x - inset, low.y + room.y - inset));
}

// A light that goes to and fro: how much there is to read is not known beforehand.
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

void draw_reading(const Preview& import, Commands& commands) {
  begin_card("##reading", ImVec2(0, 0));
  const float width = std::min(px(460), ImGui::GetContentRegionAvail().x);
  ImGui::SetCursorPosY(std::max(px(14), ImGui::GetContentRegionAvail().y / 2 - px(70)));
  const bool keeps = import.state == Preview::State::keeping;
  centred(keeps                        ? "Writing into the database"
          : import.asked.paths.empty() ? "Reading what was pasted"
                                       : "Reading",
          fonts().semibold, 17, palette().text);
  const std::string file = import.file.empty() ? source_words(import.asked) : import.file;
  const std::string count = import.files_begun > 1 ? "file " + grouped(import.files_begun) + ": " : "";
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
    centred("A file that is cancelled leaves nothing; those before it stay.", fonts().regular, small_size,
            palette().quiet);
  end_card();
}

bool count_field(const char* id, NumberField& field, std::int64_t& value) {
  double number = value > 0 ? static_cast<double>(value) : missing;
  const bool is_other = field.draw(id, "as the file says", number);
  value = is_missing(number) ? 0 : std::llround(number);
  return is_other;
}

struct Field {
  const char* label;
  float width;
};
constexpr std::array<Field, 5> fields = {Field{"tokens per step", 132}, Field{"parameters", 132},
                                         Field{"hardware", 232}, Field{"format", 220}, Field{"a folder's files", 170}};

int lines_of_fields(float room) {
  int lines = 1;
  float used = 0;
  for (const Field& field : fields) {
    const float wanted = px(field.width) + (used > 0 ? px(12) : 0);
    if (used > 0 && used + wanted > room) {
      ++lines;
      used = px(field.width);
    } else {
      used += wanted;
    }
  }
  return lines;
}

bool draw_format(ImportOptions& options) {
  const auto title = [](const std::string& id) {
    for (const Importer& importer : all_importers()) {
      if (importer.id == id) return importer.title;
    }
    return id;
  };
  bool changed = false;
  if (!ImGui::BeginCombo("##format", options.format.empty() ? "by content" : title(options.format).c_str(),
                         ImGuiComboFlags_HeightLarge))
    return false;
  const auto choice = [&](const std::string& id, const std::string& words) {
    if (!ImGui::Selectable(words.c_str(), options.format == id) || options.format == id) return;
    options.format = id;
    changed = true;
  };
  choice("", "by content");
  for (const Importer& importer : all_importers()) choice(importer.id, importer.title);
  ImGui::EndCombo();
  return changed;
}

// What the file did not say, or said wrongly. A change reads again.
void draw_corrections(State& state, const Workspace& workspace, Commands& commands) {
  const float room = ImGui::GetContentRegionAvail().x - px(32);
  const float line = px(18) + ImGui::GetFrameHeight() + px(10);
  const std::string problem = problem_of(state);
  const float below = (problem.empty() ? 0 : px(24)) + (state.as_last_time ? ImGui::GetFrameHeight() + px(8) : 0);
  begin_card("##corrections", ImVec2(0, line * static_cast<float>(lines_of_fields(room)) + below + px(22)));
  bool changed = false;
  const ImVec2 first = ImGui::GetCursorPos();
  float used = 0;
  float top = first.y;
  std::size_t next = 0;
  const auto field = [&](auto&& draw) {
    const Field& it = fields[next++];
    const float wanted = px(it.width) + (used > 0 ? px(12) : 0);
    if (used > 0 && used + wanted <= room) {
      used += wanted;
    } else {
      top = ImGui::GetCursorPosY();
      used = px(it.width);
    }
    ImGui::SetCursorPos(ImVec2(first.x + used - px(it.width), top));
    ImGui::BeginGroup();
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
    text_quiet(it.label);
    ImGui::SetNextItemWidth(std::min(px(it.width), room));
    changed = draw() || changed;
    ImGui::PopStyleVar();
    ImGui::EndGroup();
  };
  ImportOptions& options = state.options;
  field([&] {
    const bool left = count_field("##tokens", state.tokens, options.tokens_per_step);
    mark("import.tokens");
    ImGui::SetItemTooltip("Batch x sequence x accumulated batches x devices");
    return left;
  });
  field([&] {
    const bool left = count_field("##params", state.params, options.params);
    mark("import.params");
    return left;
  });
  field([&] {
    const bool chosen = pick_hardware("##hardware", options.hardware, workspace.hardware, "as the file says", true);
    mark("import.hardware");
    return chosen;
  });
  field([&] {
    const bool chosen = draw_format(options);
    mark("import.format");
    return chosen;
  });
  field([&] {
    const bool chosen = ImGui::Checkbox("each is a rung", &options.flat);
    mark("import.flat");
    ImGui::SetItemTooltip("Otherwise the files of one folder are repeats of the same rung");
    return chosen;
  });
  if (!problem.empty()) {
    ImGui::PushFont(fonts().regular, 13.5f);
    ImGui::TextColored(palette().bad, "%s", problem.c_str());
    ImGui::PopFont();
  }
  if (state.as_last_time) {
    if (quiet_button("As last time")) {
      show_options(state, *state.as_last_time);
      changed = true;
    }
    mark("import.as_last_time");
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    text_cut(in_words(*state.as_last_time), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular,
             small_size);
  }
  end_card();
  if (changed && !same(options, workspace.import.asked.options)) read_again(state, workspace.import, commands);
}

constexpr float row_height = 42;

// From each row's left edge: where columns begin or, for numbers, end. A narrow card leaves out what was printed, then
// steps and dt, then the loss.
struct Columns {
  float name, name_width, steps, loss, dt, tokens, printed, printed_width, flags, flags_width;
  bool has_printed, has_steps, has_loss;
};

Columns columns_for(float width) {
  Columns at{};
  at.has_printed = width > px(860);
  at.has_steps = width > px(640);
  at.has_loss = width > px(460);
  at.name = px(24);
  at.flags_width = at.has_printed ? px(238) : at.has_loss ? px(118) : px(84);
  at.flags = width - at.flags_width;
  at.printed_width = at.has_printed ? std::clamp(width * 0.22f, px(150), px(420)) : 0;
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
  // One run alone is what most logs hold: said when one asks, not in every row.
  const auto is_told = [](const Flag& flag) { return flag.id != FlagId::not_repeated; };
  const auto told = static_cast<std::size_t>(std::count_if(flags.begin(), flags.end(), is_told));
  for (const Flag& flag : flags) {
    if (!is_told(flag)) continue;
    const std::string words = words_of(flag.id);
    const std::size_t rest = told - shown - 1;
    const float more = rest > 0 ? pill_size("+" + std::to_string(rest)).x + between : 0;
    const float wanted = pill_size(words).x + (used > 0 ? between : 0);
    if (shown > 0 && used + wanted + more > width) break;
    if (shown > 0) ImGui::SameLine(0, between);
    pill(words, tone_of(flag.id));
    used += wanted;
    ++shown;
  }
  if (shown < told) {
    ImGui::SameLine(0, between);
    pill("+" + std::to_string(told - shown), Tone::neutral);
  }
  if (told == 0) pill("nothing found against it", Tone::good);
  ImGui::EndGroup();
  if (flags.empty() || !ImGui::IsItemHovered()) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(520));
  for (const Flag& flag : flags) {
    text_toned(words_of(flag.id), tone_of(flag.id));
    ImGui::TextUnformatted(flag.why.c_str());
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void draw_row(State& state, std::size_t index, const Preview::PreviewRun& shown, const Columns& at) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 place = ImGui::GetCursorPos();
  const float width = at.flags + at.flags_width;
  const float height = px(row_height);
  const bool is_selected = state.selected.contains(index);
  ImGui::PushID(static_cast<int>(index));
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("##row", ImVec2(width, height))) {
    if (is_selected) {
      state.selected.erase(index);
    } else {
      state.selected.insert(index);
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
  text_cut(stage.empty() ? run.name : stage, at.name_width, palette().text, fonts().semibold, text_size);
  ImGui::SetCursorPos(ImVec2(place.x + at.name, second));
  text_cut(stage.empty() ? "no stage named" : run.name, at.name_width, palette().quiet, fonts().regular, small_size);
  const ImVec4& believed = is_impossible(state.rows[index].flags) ? palette().quiet : palette().text;
  const auto number = [&](float right, const std::string& text, const ImVec4& number_colour) {
    ImGui::SetCursorPosY(middle);
    text_right(text, place.x + right, nullptr, 0, &number_colour);
  };
  if (at.has_steps) number(at.steps, grouped(summary.steps), palette().text);
  if (at.has_loss)
    number(at.loss,
           is_missing(summary.loss_first) ? "-" : loss_text(summary.loss_first) + " -> " + loss_text(summary.loss_last),
           palette().text);
  if (at.has_steps) number(at.dt, compact(summary.dt_ms_median), believed);
  number(at.tokens, tokens_per_s_text(summary.tokens_per_s), believed);
  if (at.has_printed) {
    ImGui::SetCursorPos(ImVec2(place.x + at.printed, first));
    text_cut(run.hardware.empty() ? "hardware not named" : run.hardware, at.printed_width,
             run.hardware.empty() ? palette().quiet : palette().text, fonts().regular, 13.5f);
    ImGui::SetCursorPos(ImVec2(place.x + at.printed, second));
    text_cut(shown.unit.empty() ? "no unit printed" : shown.unit, at.printed_width, palette().quiet, fonts().regular,
             small_size);
  }
  ImGui::SetCursorPos(ImVec2(place.x + at.flags, place.y + (height - pill_size("x").y) / 2));
  draw_flags(state.rows[index].flags, at.flags_width);
  ImGui::SetCursorPos(ImVec2(place.x, place.y + height + px(1)));
  ImGui::PopID();
}

void draw_runs(State& state, const Preview& import) {
  const Columns at = columns_for(ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize - px(4));
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
  text_cut("stage, and its run", at.name_width, palette().quiet, fonts().regular, small_size);
  if (at.has_steps) head(at.steps, "steps", true);
  if (at.has_loss) head(at.loss, "loss", true);
  if (at.has_steps) head(at.dt, "dt, ms", true);
  head(at.tokens, "tokens/s", true);
  if (at.has_printed) head(at.printed, "hardware, printed unit", false);
  head(at.flags, "is it true?", false);
  ImGui::SetCursorPos(ImVec2(top.x, top.y + px(24)));
  ImGui::BeginChild("##rows", ImVec2(0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), 0));
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(import.runs.size()), px(row_height) + px(1));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(state, static_cast<std::size_t>(i), import.runs[static_cast<std::size_t>(i)], at);
  }
  ImGui::Dummy(ImVec2(0, 0));  // the last row placed the cursor; an item makes it count
  ImGui::PopStyleVar();
  ImGui::EndChild();
}

void draw_loss(const State& state, const Workspace& workspace, Commands& commands) {
  const Preview& import = workspace.import;
  Chart chart{.id = "loss", .title = "Loss", .x_label = "step"};
  std::size_t wanted = 0;
  for (const std::size_t i : state.selected) {
    if (i >= import.runs.size()) break;
    ++wanted;
    const Preview::PreviewRun& run = import.runs[i];
    std::span<const double> x = run.steps;
    std::span<const double> y = run.series.loss;
    if (state.was_kept) {  // then the steps are the database's
      const RunEntry* entry = workspace.find(run.run.id);
      if (!entry) continue;
      const RunPoints kept = run_points(workspace, *entry, Quantity::loss, nullptr, commands);
      x = kept.x;
      y = kept.y;
    }
    if (x.empty()) continue;
    chart.curves.push_back({.label = (run.run.title.empty() ? run.run.name : run.run.title) + "##" + std::to_string(i),
                            .x = x,
                            .y = y,
                            .colour = rung_colour(static_cast<int>(i)),
                            .weight = state.selected.size() > 12 ? 1.0f : 1.6f,
                            .in_legend = state.selected.size() <= 7});
  }
  if (wanted == 0) {
    empty_state("No run is selected.", "Click runs in the table to see their loss.");
    return;
  }
  if (wanted < import.runs.size())
    chart.note = grouped(static_cast<std::int64_t>(wanted)) + " of " + runs_words(import.runs.size());
  draw_chart(chart);
}

// As high as wrapped text is at this width; only what is in view is drawn.
void lay_out_notes(State& state, float width) {
  if (state.notes_width == width && state.note_tops.size() == state.notes.size() + 1) return;
  state.notes_width = width;
  state.note_tops = {0};
  for (const std::string& note : state.notes) {
    state.note_tops.push_back(state.note_tops.back() + px(7) +
                              ImGui::CalcTextSize(note.c_str(), nullptr, false, width).y);
  }
}

void draw_notes(State& state, const Preview& import, Commands& commands) {
  text_strong(import.runs.empty()       ? "No run was found in it"
              : import.failures.empty() ? "Notes"
                                        : "What could not be read");
  if (!state.notes.empty() || !import.failures.empty()) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
    text_quiet(import.failures.empty() ? grouped(static_cast<std::int64_t>(state.notes.size()))
                                       : grouped(static_cast<std::int64_t>(import.failures.size())));
    ImGui::SameLine(ImGui::GetContentRegionMax().x - px(64));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(6));
    ImGui::PushFont(fonts().regular, small_size);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), px(4)));
    if (ImGui::Button("Copy all", ImVec2(px(64), 0))) {
      std::string all;
      for (const std::string& failure : import.failures) all += failure + "\n";
      for (const ImportNote& note : import.notes)
        all += note.file + (note.line > 0 ? ":" + std::to_string(note.line) : "") + ": " + note.text + "\n";
      commands.push_back(CopyText{all, "What the importer said"});
    }
    mark("import.copy");
    ImGui::PopStyleVar();
    ImGui::PopFont();
  }
  ImGui::BeginChild("##lines", ImVec2(0, 0));
  ImGui::PushFont(fonts().regular, 13.5f);
  ImGui::PushTextWrapPos(0);
  for (const std::string& failure : import.failures) ImGui::TextColored(palette().bad, "%s", failure.c_str());
  ImGui::PopTextWrapPos();
  if (state.notes.empty() && import.failures.empty())
    text_quiet_wrapped("Nothing had to be skipped, assumed or worked out.");
  const float width = ImGui::GetContentRegionAvail().x;
  lay_out_notes(state, width);
  const float top = ImGui::GetCursorPosY();
  const float from = ImGui::GetScrollY() - top;
  const auto begin = state.note_tops.begin();
  auto first = std::upper_bound(begin, state.note_tops.end(), from);
  if (first != begin) --first;
  for (auto i = static_cast<std::size_t>(first - begin); i < state.notes.size(); ++i) {
    if (state.note_tops[i] > from + ImGui::GetWindowHeight()) break;
    ImGui::SetCursorPosY(top + state.note_tops[i]);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(state.notes[i].c_str());
    ImGui::PopTextWrapPos();
    if (ImGui::IsItemClicked()) commands.push_back(CopyText{state.notes[i], "The note"});
    if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  }
  ImGui::SetCursorPosY(top + state.note_tops.back());
  ImGui::Dummy(ImVec2(0, 0));
  ImGui::PopFont();
  ImGui::EndChild();
}

// What was kept, and where to look at it.
void draw_kept(const Workspace& workspace, Commands& commands) {
  const Preview& import = workspace.import;
  begin_card("##kept", ImVec2(0, ImGui::GetFrameHeight() + px(30)));
  ImGui::AlignTextToFramePadding();
  text_toned(import.runs.empty() ? "Nothing was imported." : "Imported " + runs_words(import.runs.size()) + ".",
             import.runs.empty() ? Tone::bad : Tone::good);
  std::vector<RunId> ids;
  std::vector<LadderId> ladders;
  for (const Preview::PreviewRun& run : import.runs) {
    ids.push_back(run.run.id);
    if (run.run.ladder && std::find(ladders.begin(), ladders.end(), *run.run.ladder) == ladders.end())
      ladders.push_back(*run.run.ladder);
  }
  constexpr std::size_t most_buttons = 3;
  for (std::size_t i = 0; i < std::min(ladders.size(), most_buttons); ++i) {
    const Ladder* ladder = workspace.ladder(ladders[i]);
    if (!ladder) continue;
    ImGui::SameLine();
    const std::string label = ladders.size() == 1 ? "Open the ladder" : "Ladder " + ladder->name;
    const bool pressed = i == 0 ? primary_button(label.c_str()) : quiet_button(label.c_str());
    mark("import.ladder." + std::to_string(i));
    if (pressed) commands.push_back(SelectLadder{ladders[i]});
  }
  if (!ids.empty()) {
    ImGui::SameLine();
    if (quiet_button("Show the runs")) {
      commands.push_back(SelectRuns{ids});
      commands.push_back(ShowPanel{"history"});
    }
    mark("import.runs");
  }
  end_card();
}

void draw_result(State& state, const Workspace& workspace, Commands& commands) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (workspace.import.runs.empty()) {
    begin_card("##notes", ImVec2(0, 0));
    draw_notes(state, workspace.import, commands);
    end_card();
    return;
  }
  const float space = px(14);
  const bool is_low = room.y < px(330);
  // A window too small for all of it scrolls.
  const float lower = std::clamp(room.y * 0.42f, px(150), px(380));
  const float wanted = px(56) + (px(row_height) + px(1)) * static_cast<float>(workspace.import.runs.size());
  begin_card("##runs", ImVec2(0, is_low ? px(170) : std::min(wanted, room.y - lower - space)));
  draw_runs(state, workspace.import);
  end_card();
  gap(14);
  const float rest = is_low ? px(150) : ImGui::GetContentRegionAvail().y;
  const float notes = std::clamp(room.x * 0.42f, px(120), px(640));
  begin_card("##loss", ImVec2(room.x - notes - space, rest));
  draw_loss(state, workspace, commands);
  end_card();
  ImGui::SameLine(0, space);
  begin_card("##notes", ImVec2(0, rest));
  draw_notes(state, workspace.import, commands);
  end_card();
}

std::string head_line(const Preview& import) {
  std::string line;
  for (const std::string& format : import.formats) {
    for (const Importer& importer : all_importers()) {
      if (importer.id == format) line += (line.empty() ? "" : ", ") + importer.title;
    }
  }
  if (line.empty()) line = "not recognised";
  line += "  -  " + source_words(import.asked);
  return import.state == Preview::State::kept ? line : "Nothing is kept yet  -  " + line;
}

// The buttons that end what is on the screen.
struct Ending {
  std::string forget;
  std::string keep;  // empty: there is nothing to keep
  float width = 0;
};

Ending ending_of(const Preview& import) {
  Ending ending{.forget = import.state == Preview::State::kept ? "Import more" : "Discard"};
  const float padding = 2 * ImGui::GetStyle().FramePadding.x;
  ending.width = ImGui::CalcTextSize(ending.forget.c_str()).x + padding;
  if (import.state == Preview::State::kept || import.runs.empty()) return ending;
  ending.keep = "Import " + runs_words(import.runs.size());
  ImGui::PushFont(fonts().semibold, text_size);
  ending.width += ImGui::CalcTextSize(ending.keep.c_str()).x + padding + px(8);
  ImGui::PopFont();
  return ending;
}

void draw_ending(const Ending& ending, State& state, const Preview& import, Commands& commands) {
  if (quiet_button(ending.forget.c_str())) commands.push_back(ForgetImport{});
  mark("import.forget");
  if (ending.keep.empty()) return;
  ImGui::SameLine(0, px(8));
  if (primary_button(ending.keep.c_str(), problem_of(state).empty())) {
    take_note_of(state, import);
    commands.push_back(KeepImport{});
  }
  mark("import.keep");
}

// Title and what it is about, with the buttons to their right or, where there is no room, beneath.
void draw_head(State& state, const Workspace& workspace, Commands& commands) {
  const Preview& import = workspace.import;
  const bool is_open = import.state == Preview::State::understood || import.state == Preview::State::kept;
  const ImVec2 at = ImGui::GetCursorPos();
  const float right = ImGui::GetContentRegionMax().x;
  const Ending ending = is_open ? ending_of(import) : Ending{};
  const bool fits = right - ending.width > at.x + px(240);
  if (is_open && fits) {
    ImGui::SetCursorPosX(right - ending.width);
    draw_ending(ending, state, import, commands);
    ImGui::SetCursorPos(at);
  }
  text_title("Import");
  text_cut(is_open ? head_line(import) : "Runs of other programs: logs, tables and the stores of other trackers",
           right - (fits ? ending.width : 0) - at.x - px(16), palette().quiet, fonts().regular, small_size);
  if (is_open && !fits) draw_ending(ending, state, import, commands);
}

}  // namespace

Panel panels::import() {
  const auto state = std::make_shared<State>();
  return {.id = "import",
          .title = "Import",
          .draw =
              [state](const Workspace& workspace, Commands& commands) {
                using S = Preview::State;
                const S stage = workspace.import.state;
                derive(*state, workspace);
                if (stage != S::keeping) state->was_kept = stage == S::kept;
                draw_head(*state, workspace, commands);
                gap(18);
                draw_path(*state, stage != S::reading && stage != S::keeping, commands);
                gap(18);
                if (stage == S::nothing) return draw_nothing(*state, commands);
                if (stage == S::reading || stage == S::keeping) return draw_reading(workspace.import, commands);
                if (stage == S::understood) draw_corrections(*state, workspace, commands);
                if (stage == S::kept) draw_kept(workspace, commands);
                gap(14);
                draw_result(*state, workspace, commands);
              },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); }};
}

}  // namespace stepladder
