#include "app/panels/launch/form.h"

#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/environment.h"
#include "app/format.h"

namespace stepladder {
namespace {

constexpr std::array devices = {"auto", "cpu", "cuda", "mps"};

std::filesystem::path shakespeare() {
  return assets_folder() / "tinyshakespeare.txt";
}

void label(const char* text) {
  ImGui::AlignTextToFramePadding();
  text_quiet(text);
  ImGui::SameLine(px(118));
  ImGui::SetNextItemWidth(-1);
}

void number_field(const char* name, const char* id, int& value, int least) {
  label(name);
  ImGui::InputInt(id, &value, 0);
  value = std::max(value, least);
  mark(std::string("launch.") + (id + 2));
}

// Whether the data are GPT-2's tokens, as in a .bin; everything else is bytes.
bool needs_gpt2_tokens(const LaunchForm& form) {
  return form.data == LaunchData::file && std::filesystem::path(form.file.data()).extension() == ".bin";
}

void draw_model(LaunchForm& form) {
  text_strong("Recipe");
  ImGui::Dummy(ImVec2(0, px(2)));
  const std::vector<ModelPreset>& presets = model_presets();
  const ModelPreset& chosen = presets[static_cast<std::size_t>(form.model)];
  label("Model");
  if (ImGui::BeginCombo("##model", std::string(chosen.name).c_str())) {
    for (int i = 0; i < static_cast<int>(presets.size()); ++i) {
      const ModelPreset& preset = presets[static_cast<std::size_t>(i)];
      if (ImGui::Selectable(std::string(preset.name).c_str(), i == form.model)) {
        form.model = i;
        form.take_preset();
      }
    }
    ImGui::EndCombo();
  }
  mark("launch.model");
  ImGui::SetCursorPosX(px(118));
  Recipe shape;
  apply_preset(shape, chosen.name);
  if (shape.vocab == 0) shape.vocab = needs_gpt2_tokens(form) ? 50257 : 256;
  text_quiet_wrapped(std::to_string(shape.layers) + " layers, " + std::to_string(shape.heads) + " heads, d_model " +
                     std::to_string(shape.d_model) + ", " + compact(static_cast<double>(parameter_count(shape))) +
                     " parameters");
}

void draw_data(LaunchForm& form) {
  label("Data");
  constexpr std::array names = {"Shakespeare (1.1 MB of text)", "File...", "Synthetic tokens"};
  int data = static_cast<int>(form.data);
  if (ImGui::Combo("##data", &data, names.data(), static_cast<int>(names.size())))
    form.data = static_cast<LaunchData>(data);
  mark("launch.data");
  if (form.data == LaunchData::file) {
    label("");
    ImGui::InputTextWithHint("##file", "path of a .txt, nanoGPT .bin or llm.c .bin", form.file.data(),
                             form.file.size());
    mark("launch.file");
  }
  ImGui::SetCursorPosX(px(118));
  text_quiet_wrapped(form.data == LaunchData::synthetic ? "source of known entropy, so the loss has a floor"
                     : form.data == LaunchData::file    ? "last 10 % held out for validation"
                                                        : "bytes as tokens; last 10 % held out for validation");
}

void draw_settings(LaunchForm& form) {
  number_field("Steps", "##steps", form.steps, 1);
  number_field("Batch (B)", "##batch", form.batch, 1);
  number_field("Sequence (T)", "##seq", form.seq, 1);
  label("Learning rate");
  ImGui::InputDouble("##lr", &form.lr, 0, 0, "%g");
  number_field("Seed", "##seed", form.seed, 0);
  label("Validate every");
  ImGui::InputInt("##eval", &form.eval_every, 0);
  form.eval_every = std::max(form.eval_every, 0);
  ImGui::SetItemTooltip("Validation interval in steps; 0 disables validation");
  label("Device");
  ImGui::Combo("##device", &form.device, devices.data(), static_cast<int>(devices.size()));
  number_field("Repeats", "##repeats", form.repeats, 1);
  label("");
  ImGui::BeginDisabled(form.repeats < 2);
  ImGui::Checkbox("Interleave repeats", &form.interleave);
  ImGui::EndDisabled();
  ImGui::SetItemTooltip("Runs the repeats of all rungs in random order, so that a drifting machine favours none");
  label("");
  ImGui::Checkbox("Wait for a quiet machine", &form.when_quiet);
  mark("launch.when_quiet");
  ImGui::SetItemTooltip("Before each run, waits until other programs leave it the cores that it needs");
  label("Name");
  ImGui::InputTextWithHint("##name", "auto-generated", form.name.data(), form.name.size());
  mark("launch.name");
}

}  // namespace

LaunchForm::LaunchForm() {
  for (const Stage& stage : all_stages()) rungs.push_back(stage.kind == StageKind::systems_only);
  take_preset();
}

void LaunchForm::take_preset() {
  const ModelPreset& preset = model_presets()[static_cast<std::size_t>(model)];
  batch = preset.batch;
  seq = preset.seq;
  lr = preset.lr;
}

void LaunchForm::take_plan(const LadderRequest& request) {
  plan = request.rungs;
  plan_name = request.name;
  plan_base = request.base;
  const Recipe& base = request.base;
  const std::vector<ModelPreset>& presets = model_presets();
  for (std::size_t i = 0; i < presets.size(); ++i) {
    if (presets[i].name == base.model) model = static_cast<int>(i);
  }
  steps = static_cast<int>(base.steps);
  batch = base.batch;
  seq = base.seq;
  lr = base.lr;
  eval_every = static_cast<int>(base.eval_every);
  seed = static_cast<int>(base.seed);
  std::snprintf(name.data(), name.size(), "%s", request.name.c_str());
  if (!base.data.empty()) {
    data = LaunchData::file;
    std::snprintf(file.data(), file.size(), "%s", base.data.c_str());
  }
}

LadderRequest request_of(const LaunchForm& form, std::vector<PlannedRung> rungs) {
  LadderRequest request;
  const std::string_view model = model_presets()[static_cast<std::size_t>(form.model)].name;
  if (!form.plan.empty() && form.plan_base.model == model) {
    request.base = form.plan_base;
  } else {
    apply_preset(request.base, model);
  }
  if (form.data == LaunchData::shakespeare) request.base.data = shakespeare().string();
  if (form.data == LaunchData::file) request.base.data = form.file.data();
  request.base.steps = form.steps;
  request.base.batch = form.batch;
  request.base.seq = form.seq;
  request.base.eval_every = form.eval_every;
  request.base.lr = form.lr;
  request.base.seed = static_cast<std::uint64_t>(std::max(form.seed, 0));
  request.base.device = devices[static_cast<std::size_t>(form.device)];
  request.name = form.name.data();
  request.rungs = std::move(rungs);
  request.repeats = form.repeats;
  request.interleave = form.interleave;
  if (form.when_quiet) request.quiet_patience = until_quiet;
  return request;
}

std::string why_not(const Stage& stage, const Recipe& base, const Workspace& workspace) {
  if (!workspace.device) return {};
  return stage.unavailable(base, *workspace.device, workspace.device->resolve(base.device));
}

std::vector<PlannedRung> chosen_rungs(const LaunchForm& form, const Workspace& workspace) {
  if (!form.plan.empty()) return form.plan;
  std::vector<PlannedRung> chosen;
  const Recipe base = request_of(form, {}).base;
  const std::vector<Stage>& stages = all_stages();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i == 0 || (form.rungs[i] && why_not(stages[i], base, workspace).empty()))
      chosen.push_back({.stages = {stages[i].id}});
  }
  return chosen;
}

std::string problem_of(const LaunchForm& form, const Workspace& workspace) {
  if (!workspace.device_problem.empty()) return workspace.device_problem;
  if (!workspace.device) return "Detecting hardware...";
  if (form.data == LaunchData::file && form.file[0] == 0) return "Enter the path of a data file.";
  const std::string device = devices[static_cast<std::size_t>(form.device)];
  if (device == "cuda" && workspace.device->gpus.empty()) return "No CUDA device: " + workspace.device->cuda_note;
  if (device == "mps" && !workspace.device->mps) return "This machine has no Apple GPU.";
  try {
    validate(request_of(form, {}).base);
  } catch (const RecipeError& error) {
    return field_words(error.what());
  }
  return {};
}

void draw_launch_form(LaunchForm& form) {
  draw_model(form);
  draw_data(form);
  ImGui::Dummy(ImVec2(0, px(6)));
  draw_settings(form);
}

}  // namespace stepladder
