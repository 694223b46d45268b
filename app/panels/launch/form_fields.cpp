// Draws the form's fields.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/launch/form.h"
#include "app/text/format.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

constexpr float label_width = 118;

void label(const char* text) {
  ImGui::AlignTextToFramePadding();
  text_quiet(text);
  ImGui::SameLine(px(label_width));
  ImGui::SetNextItemWidth(-1);
}

void draw_problem(const CheckedForm& checked, const std::string& name) {
  const auto found = checked.field_problems.find(name);
  if (found == checked.field_problems.end()) return;
  ImGui::SetCursorPosX(px(label_width));
  text_sentence(found->second, Tone::bad);
  mark("launch.error." + name);
}

// True for a .bin, which has GPT-2's tokens; all other data is bytes.
bool needs_gpt2_tokens(const LaunchForm& form) {
  return form.data == LaunchData::file && std::filesystem::path(form.file).extension() == ".bin";
}

void draw_model(LaunchForm& form, const CheckedForm& checked) {
  const std::vector<ModelPreset>& presets = model_presets();
  label("Model");
  if (ImGui::BeginCombo("##model", std::string(presets[static_cast<std::size_t>(form.model)].name).c_str())) {
    for (int i = 0; i < static_cast<int>(presets.size()); ++i) {
      if (ImGui::Selectable(std::string(presets[static_cast<std::size_t>(i)].name).c_str(), i == form.model))
        form.take_model(i);
    }
    ImGui::EndCombo();
  }
  mark("launch.model");
  ImGui::SetCursorPosX(px(label_width));
  Recipe shape = checked.request.base;
  if (shape.vocab == 0) shape.vocab = needs_gpt2_tokens(form) ? 50257 : 256;
  text_quiet_wrapped(plural(shape.layers, "layer") + ", " + plural(shape.heads, "head") + ", d_model " +
                     std::to_string(shape.d_model) + ", " + compact(static_cast<double>(parameter_count(shape))) +
                     " parameters");
}

void draw_data(LaunchForm& form, Commands& commands) {
  label("Data");
  constexpr auto titles = by_enum<LaunchData>("Shakespeare, 1.1 MB", "File...", "Synthetic tokens");
  constexpr auto anchors = by_enum<LaunchData>("shakespeare", "file", "synthetic");
  if (ImGui::BeginCombo("##data", combo_text(titles[form.data], ImGui::GetContentRegionAvail().x).c_str())) {
    for (const LaunchData data : enumerators<LaunchData>()) {
      if (ImGui::Selectable(titles[data], form.data == data)) form.data = data;
      mark(std::string("launch.data.") + anchors[data]);
    }
    ImGui::EndCombo();
  }
  mark("launch.data");
  if (form.data == LaunchData::file) {
    label("");
    form.file_field.draw("##file", ".txt, nanoGPT .bin or llm.c .bin", ImGui::GetContentRegionAvail().x, "launch.file",
                         commands.data);
    form.file = form.file_field.path();
  }
  ImGui::SetCursorPosX(px(label_width));
  text_quiet_wrapped(form.data == LaunchData::synthetic ? "source of known entropy, so the loss has a floor"
                     : form.data == LaunchData::file    ? "last 10 % held out for validation"
                                                        : "bytes as tokens; last 10 % held out for validation");
}

// The recipe's values where fields are left empty, by name.
using Usual = std::map<std::string, std::string>;

// Words for values that the program finds out later; all others of `usual_values` are values.
constexpr std::array undecided{"as the data needs", "detected", "one per core", "a line end", "none"};

Usual usual_values(const LaunchForm& form) {
  Recipe recipe;
  apply_preset(recipe, model_presets()[static_cast<std::size_t>(form.model)].name);
  const auto described = describe(recipe);
  Usual usual(described.begin(), described.end());
  if (recipe.vocab == 0) usual["vocab"] = "as the data needs";
  usual["warmup"] = "detected";
  usual["threads"] = "one per core";
  usual["sample_prompt"] = "a line end";
  return usual;
}

std::string default_of(const RecipeField& field, const Usual& usual) {
  const auto found = usual.find(field.name);
  if (found == usual.end()) return "";
  return found->second.empty() ? "none" : found->second;
}

// Adds a choice to the field's list or removes it; the list keeps the order of the choices.
void toggle_choice(std::string& value, const RecipeField& field, const std::string& usual, const std::string& choice) {
  std::vector<std::string> chosen = listed_values(field, value.empty() ? usual : value);
  if (std::erase(chosen, choice) == 0) chosen.push_back(choice);
  std::vector<std::string> in_order = choices_of(field);
  std::erase_if(in_order, [&](const std::string& each) { return std::ranges::find(chosen, each) == chosen.end(); });
  value = list_text(in_order);
  if (value == usual) value.clear();
}

// A click on a word chooses it alone; its box adds it to the values of a sweep.
void draw_choices(std::string& value, const RecipeField& field, const std::string& usual) {
  const std::vector<std::string> chosen = listed_values(field, value.empty() ? usual : value);
  for (const std::string& choice : choices_of(field)) {
    bool is_chosen = std::ranges::find(chosen, choice) != chosen.end();
    if (ImGui::Checkbox(("##" + choice).c_str(), &is_chosen)) toggle_choice(value, field, usual, choice);
    mark("launch.box." + std::string(field.name) + "." + choice);
    ImGui::SetItemTooltip("Sweep: train with each of the ticked values");
    ImGui::SameLine(0, px(8));
    ImGui::AlignTextToFramePadding();
    if (ImGui::Selectable(choice.c_str(), is_chosen)) value = choice == usual ? "" : choice;
  }
}

// A path may come from the file dialog, a preset or another view.
void draw_path(LaunchForm& form, const RecipeField& field, const char* hint, std::string& value, Commands& commands) {
  const FileQuestion question{.title = std::string("Choose: ") + field.label};
  PathField& path = form.paths.try_emplace(field.name, question).first->second;
  if (path.path() != value) path.show(value);
  path.draw(field.name, hint, ImGui::GetContentRegionAvail().x, std::string("launch.") + field.name, commands.data);
  value = path.path();
}

void draw_field(LaunchForm& form, const CheckedForm& checked, const RecipeField& field, const Usual& usual,
                Commands& commands) {
  std::string& value = form.values[field.name];
  const std::string hint = default_of(field, usual);
  const std::string id = std::string("##") + field.name;
  label(field.label);
  // A value that the run will have is as legible as one that was typed.
  const bool is_value = std::ranges::find(undecided, hint) == undecided.end();
  ImGui::PushStyleColor(ImGuiCol_TextDisabled, is_value ? palette().text : palette().quiet);
  if (field.is_path()) {
    ImGui::PopStyleColor();
    draw_path(form, field, hint.c_str(), value, commands);
    return draw_problem(checked, field.name);
  }
  if (const std::vector<std::string> choices = choices_of(field); choices.empty()) {
    text_input(id.c_str(), hint.c_str(), value);
  } else if (ImGui::BeginCombo(id.c_str(), (value.empty() ? hint : value).c_str())) {
    draw_choices(value, field, hint);
    ImGui::EndCombo();
  }
  ImGui::PopStyleColor();
  mark(std::string("launch.") + field.name);
  const char* list =
      choices_of(field).empty() && field.takes_list() ? "\nA list, such as 1, 2, 3, is a sweep over these values." : "";
  ImGui::SetItemTooltip("%s%s", field.help, list);
  draw_problem(checked, field.name);
}

// The fields of a group, folded unless one of them is wrong.
void draw_group(LaunchForm& form, const CheckedForm& checked, FieldGroup group, const Usual& usual,
                Commands& commands) {
  std::size_t changed = 0;
  bool is_wrong = false;
  for (const RecipeField& field : recipe_fields()) {
    if (field.group != group) continue;
    const auto typed = form.values.find(field.name);
    changed += typed != form.values.end() && !typed->second.empty() ? 1 : 0;
    is_wrong = is_wrong || checked.field_problems.contains(field.name);
  }
  std::string title = title_of(group);
  if (changed > 0) title += ", " + std::to_string(changed) + " changed";
  if (is_wrong) ImGui::SetNextItemOpen(true);
  ImGui::PushStyleColor(ImGuiCol_Header, ImVec4(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, px(3)));
  const bool open = ImGui::TreeNodeEx((title + "###" + title_of(group)).c_str(), ImGuiTreeNodeFlags_NoTreePushOnOpen |
                                                                                     ImGuiTreeNodeFlags_SpanAvailWidth |
                                                                                     ImGuiTreeNodeFlags_FramePadding);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  mark("launch.group." + std::to_string(static_cast<int>(group)));
  if (!open) return;
  for (const RecipeField& field : recipe_fields()) {
    if (field.group == group) draw_field(form, checked, field, usual, commands);
  }
}

void draw_repeats(LaunchForm& form, const CheckedForm& checked) {
  label("Repeats");
  const bool are_seeds = !checked.request.seeds.empty();
  if (are_seeds) form.repeats = 1;
  int repeats = are_seeds ? checked.request.repeats : form.repeats;
  ImGui::BeginDisabled(are_seeds);
  if (ImGui::InputInt("##repeats", &repeats, 0)) form.repeats = std::clamp(repeats, 1, 1000);
  ImGui::EndDisabled();
  mark("launch.repeats");
  ImGui::SetItemTooltip("Runs of each rung%s", are_seeds ? ": one for each seed" : "; several seeds are repeats too");
  label("");
  ImGui::BeginDisabled(repeats < 2);
  ImGui::Checkbox("Interleave repeats", &form.interleave);
  ImGui::EndDisabled();
  ImGui::SetItemTooltip("Runs the repeats of all rungs in random order, so that a drifting machine favours none");
  label("");
  ImGui::Checkbox("Wait for a quiet machine", &form.when_quiet);
  mark("launch.when_quiet");
  ImGui::SetItemTooltip("Before each run, waits until other programs leave it the cores that it needs");
  label("Name");
  text_input("##name", "auto-generated", form.name);
  mark("launch.name");
}

int take_new_size(ImGuiInputTextCallbackData* data) {
  if (data->EventFlag != ImGuiInputTextFlags_CallbackResize) return 0;
  auto& text = *static_cast<std::string*>(data->UserData);
  text.resize(static_cast<std::size_t>(data->BufTextLen));
  data->Buf = text.data();
  return 0;
}

}  // namespace

bool text_input(const char* id, const char* hint, std::string& text) {
  return ImGui::InputTextWithHint(id, hint, text.data(), text.capacity() + 1, ImGuiInputTextFlags_CallbackResize,
                                  take_new_size, &text);
}

void draw_launch_form(LaunchForm& form, const CheckedForm& checked, Commands& commands) {
  const Usual usual = usual_values(form);
  text_strong(title_of(FieldGroup::everyday));
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_model(form, checked);
  draw_data(form, commands);
  ImGui::Dummy(ImVec2(0, px(6)));
  for (const RecipeField& field : recipe_fields()) {
    if (field.group == FieldGroup::everyday) draw_field(form, checked, field, usual, commands);
  }
  draw_repeats(form, checked);
  ImGui::Dummy(ImVec2(0, px(4)));
  for (int group = 1; group < field_groups; ++group)
    draw_group(form, checked, static_cast<FieldGroup>(group), usual, commands);
}

}  // namespace stepladder
