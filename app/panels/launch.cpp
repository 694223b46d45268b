// Launch: what to train, on what, which rungs; what is queued and how long it will take.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/environment.h"
#include "app/format.h"
#include "app/preset_ladder.h"

namespace stepladder {
namespace {

enum class Data { shakespeare, file, synthetic };

struct Form {
  int model = 0;
  Data data = Data::shakespeare;
  std::array<char, 1024> file{};
  std::array<char, 128> name{};
  int steps = 100;
  int batch = 12;
  int seq = 64;
  int eval_every = 0;
  int repeats = 1;
  bool interleave = false;
  int device = 0;
  double lr = 1e-3;
  int seed = 1337;
  std::vector<bool> rungs;
  std::vector<PlannedStage> plan;  // somebody's ladder instead of the rungs chosen by hand
  std::string plan_name;
  Recipe plan_base;
  int proposals_taken = 0;

  Form() {
    for (const Stage& stage : all_stages()) rungs.push_back(stage.kind == StageKind::systems_only);
    take_preset();
  }

  void take_preset() {
    const ModelPreset& preset = model_presets()[static_cast<std::size_t>(model)];
    batch = preset.batch;
    seq = preset.seq;
    lr = preset.lr;
  }
};

// What another view proposes, or a ready plan.
void take_plan(Form& form, const LadderRequest& request) {
  form.plan = request.stages;
  form.plan_name = request.name;
  form.plan_base = request.base;
  const Recipe& base = request.base;
  const std::vector<ModelPreset>& presets = model_presets();
  for (std::size_t i = 0; i < presets.size(); ++i) {
    if (presets[i].name == base.model) form.model = static_cast<int>(i);
  }
  form.steps = static_cast<int>(base.steps);
  form.batch = base.batch;
  form.seq = base.seq;
  form.lr = base.lr;
  form.eval_every = static_cast<int>(base.eval_every);
  form.seed = static_cast<int>(base.seed);
  std::snprintf(form.name.data(), form.name.size(), "%s", request.name.c_str());
  if (!base.data.empty()) {
    form.data = Data::file;
    std::snprintf(form.file.data(), form.file.size(), "%s", base.data.c_str());
  }
}

constexpr std::array devices = {"auto", "cpu", "cuda", "mps"};

std::filesystem::path shakespeare() {
  return assets_folder() / "tinyshakespeare.txt";
}

LadderRequest request_of(const Form& form, std::vector<PlannedStage> stages) {
  LadderRequest request;
  const std::string_view model = model_presets()[static_cast<std::size_t>(form.model)].name;
  if (!form.plan.empty() && form.plan_base.model == model) {
    request.base = form.plan_base;
  } else {
    apply_preset(request.base, model);
  }
  if (form.data == Data::shakespeare) request.base.data = shakespeare().string();
  if (form.data == Data::file) request.base.data = form.file.data();
  request.base.steps = form.steps;
  request.base.batch = form.batch;
  request.base.seq = form.seq;
  request.base.eval_every = form.eval_every;
  request.base.lr = form.lr;
  request.base.seed = static_cast<std::uint64_t>(std::max(form.seed, 0));
  request.base.device = devices[static_cast<std::size_t>(form.device)];
  request.name = form.name.data();
  request.stages = std::move(stages);
  request.repeats = form.repeats;
  request.interleave = form.interleave;
  return request;
}

// Why a stage cannot be on this form's ladder, empty where it can or the machine has not been looked at yet.
std::string why_not(const Stage& stage, const Recipe& base, const Workspace& workspace) {
  if (!workspace.device) return {};
  return stage.unavailable(base, *workspace.device, workspace.device->resolve(base.device));
}

std::vector<PlannedStage> chosen_stages(const Form& form, const Workspace& workspace) {
  if (!form.plan.empty()) return form.plan;
  std::vector<PlannedStage> chosen;
  const Recipe base = request_of(form, {}).base;
  const std::vector<Stage>& stages = all_stages();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i == 0 || (form.rungs[i] && why_not(stages[i], base, workspace).empty()))
      chosen.push_back({.stage = stages[i].id});
  }
  return chosen;
}

// Why the form cannot be started, or empty. Files are looked at when it is.
std::string problem_of(const Form& form, const Workspace& workspace) {
  if (!workspace.device_problem.empty()) return workspace.device_problem;
  if (!workspace.device) return "Looking at this machine...";
  if (form.data == Data::file && form.file[0] == 0) return "Give the path of a data file.";
  const std::string device = devices[static_cast<std::size_t>(form.device)];
  if (device == "cuda" && workspace.device->gpus.empty())
    return "There is no CUDA device: " + workspace.device->cuda_note;
  if (device == "mps" && !workspace.device->mps) return "There is no Apple GPU here.";
  try {
    validate(request_of(form, {}).base);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return {};
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

// Tokens of a .bin are GPT-2's; everything else is bytes.
bool needs_gpt2_tokens(const Form& form) {
  return form.data == Data::file && std::filesystem::path(form.file.data()).extension() == ".bin";
}

void draw_model(Form& form) {
  text_strong("What to train");
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
  text_quiet_wrapped(std::to_string(shape.layers) + " layers, " + std::to_string(shape.heads) + " heads, " +
                     std::to_string(shape.d_model) + " wide, " + compact(static_cast<double>(parameter_count(shape))) +
                     " parameters");
}

void draw_data(Form& form) {
  label("Data");
  constexpr std::array names = {"Shakespeare (1.1 MB of text)", "A file...", "Synthetic tokens"};
  int data = static_cast<int>(form.data);
  if (ImGui::Combo("##data", &data, names.data(), static_cast<int>(names.size()))) form.data = static_cast<Data>(data);
  mark("launch.data");
  if (form.data == Data::file) {
    label("");
    ImGui::InputTextWithHint("##file", "path of a .txt, nanoGPT .bin or llm.c .bin", form.file.data(),
                             form.file.size());
    mark("launch.file");
  }
  ImGui::SetCursorPosX(px(118));
  text_quiet_wrapped(form.data == Data::synthetic ? "a source whose entropy is known: the loss has a floor"
                     : form.data == Data::file    ? "the last tenth is kept for validation"
                                                  : "byte by byte; the last tenth is kept for validation");
}

void draw_settings(Form& form) {
  number_field("Steps", "##steps", form.steps, 1);
  number_field("Batch (B)", "##batch", form.batch, 1);
  number_field("Sequence (T)", "##seq", form.seq, 1);
  label("Learning rate");
  ImGui::InputDouble("##lr", &form.lr, 0, 0, "%g");
  number_field("Seed", "##seed", form.seed, 0);
  label("Validate");
  ImGui::InputInt("##eval", &form.eval_every, 0);
  form.eval_every = std::max(form.eval_every, 0);
  ImGui::SetItemTooltip("Every so many steps; 0 is never");
  label("Device");
  ImGui::Combo("##device", &form.device, devices.data(), static_cast<int>(devices.size()));
  number_field("Repeats", "##repeats", form.repeats, 1);
  label("");
  ImGui::BeginDisabled(form.repeats < 2);
  ImGui::Checkbox("repeats in random order", &form.interleave);
  ImGui::EndDisabled();
  label("Name");
  ImGui::InputTextWithHint("##name", "made from model and data", form.name.data(), form.name.size());
  mark("launch.name");
}

// The ladder that is taken over, rung by rung; what was measured where it comes from stands beside.
void draw_plan(Form& form, const Workspace& workspace) {
  text_strong("Rungs of " + form.plan_name);
  ImGui::SameLine();
  ImGui::PushFont(fonts().regular, small_size);
  if (quiet_button("Choose by hand")) form.plan.clear();
  mark("launch.by_hand");
  ImGui::PopFont();
  ImGui::Dummy(ImVec2(0, px(2)));
  const Recipe base = request_of(form, {}).base;
  int rung = 0;
  for (const PlannedStage& planned : form.plan) {
    const Stage& stage = stage_by_id(planned.stage);
    const std::string reason = why_not(stage, base, workspace);
    ImGui::PushID(rung);
    colour_square(reason.empty() ? rung_colour(rung) : palette().line);
    ImGui::SameLine();
    ImGui::BeginGroup();
    if (reason.empty()) {
      text_strong(stage.title);
    } else {
      text_quiet(stage.title);
    }
    std::string words = stage.id;
    for (const auto& [name, value] : planned.values) words += "  " + name + " " + value;
    ImGui::SameLine();
    text_quiet(words);
    if (!is_missing(planned.seed_tokens_per_s))
      text_quiet("measured there: " + tokens_per_s_text(planned.seed_tokens_per_s) + " tokens/s");
    if (!reason.empty()) text_quiet_wrapped("Not here: " + reason);
    ImGui::EndGroup();
    ImGui::Dummy(ImVec2(0, px(4)));
    ImGui::PopID();
    ++rung;
  }
}

void draw_ready_plans(Form& form, const Workspace& workspace) {
  flow_for(px(110));
  ImGui::BeginDisabled(!workspace.device);
  ImGui::SetNextItemWidth(px(110));
  if (ImGui::BeginCombo("##plan", "A plan...")) {
    for (const LadderPreset& plan : ladder_presets()) {
      if (ImGui::Selectable(plan.name.c_str())) take_plan(form, preset_ladder(plan, plan.base, *workspace.device));
      ImGui::SetItemTooltip("%s", plan.note.c_str());
    }
    ImGui::EndCombo();
  }
  ImGui::EndDisabled();
  mark("launch.plan");
}

void draw_rungs(Form& form, const Workspace& workspace) {
  if (!form.plan.empty()) return draw_plan(form, workspace);
  text_strong("Rungs");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  text_quiet("each keeps the ones above it");
  const auto choose = [&](const char* words, const std::string& id, const std::function<bool(const Stage&)>& wanted) {
    flow_to(words);
    if (quiet_button(words)) {
      for (std::size_t i = 0; i < form.rungs.size(); ++i) form.rungs[i] = wanted(all_stages()[i]);
    }
    mark("launch.rungs." + id);
  };
  ImGui::PushFont(fonts().regular, small_size);
  choose("All", "all", [](const Stage&) { return true; });
  choose("Same loss", "systems", [](const Stage& stage) { return stage.kind == StageKind::systems_only; });
  choose("None", "none", [](const Stage&) { return false; });
  draw_ready_plans(form, workspace);
  ImGui::PopFont();
  ImGui::Dummy(ImVec2(0, px(2)));
  const std::vector<Stage>& stages = all_stages();
  const Recipe base = request_of(form, {}).base;
  int rung = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const std::string reason = why_not(stage, base, workspace);
    bool on = i == 0 || (form.rungs[i] && reason.empty());
    ImGui::PushID(stage.id.c_str());
    ImGui::BeginDisabled(i == 0 || !reason.empty());
    if (ImGui::Checkbox("##on", &on)) form.rungs[i] = on;
    mark("launch.rung." + stage.id);
    ImGui::EndDisabled();
    ImGui::SameLine();
    ImGui::BeginGroup();
    if (on) {
      colour_square(rung_colour(rung++));
      ImGui::SameLine();
    }
    if (reason.empty()) {
      text_strong(stage.title);
    } else {
      text_quiet(stage.title);
    }
    ImGui::SameLine();
    if (reason.empty()) ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
    text_quiet(stage.id);
    if (reason.empty()) {
      text_quiet_wrapped(stage.why);
    } else {
      text_quiet_wrapped("Not here: " + reason);
    }
    ImGui::EndGroup();
    ImGui::Dummy(ImVec2(0, px(4)));
    ImGui::PopID();
  }
}

void draw_start(Form& form, const Workspace& workspace, Commands& commands) {
  const std::vector<PlannedStage> stages = chosen_stages(form, workspace);
  const auto runs = static_cast<std::int64_t>(stages.size()) * form.repeats;
  const std::int64_t tokens = static_cast<std::int64_t>(form.batch) * form.seq;
  const std::string problem = problem_of(form, workspace);
  if (primary_button("Start the ladder", problem.empty())) commands.push_back(LaunchLadder{request_of(form, stages)});
  mark("launch.start");
  ImGui::SameLine();
  if (problem.empty()) {
    ImGui::BeginGroup();
    text_quiet_wrapped((stages.size() == 1 ? "1 rung" : std::to_string(stages.size()) + " rungs") +
                       (form.repeats > 1 ? " x " + std::to_string(form.repeats) + " repeats" : "") + " x " +
                       grouped(form.steps) + " steps of " + grouped(tokens) + " tokens");
    text_quiet_wrapped(grouped(runs * form.steps * tokens) + " tokens in all");
    ImGui::EndGroup();
  } else {
    ImGui::PushTextWrapPos(0);
    text_toned(problem, workspace.device ? Tone::warning : Tone::neutral);
    ImGui::PopTextWrapPos();
  }
}

void draw_queue(const Workspace& workspace, Commands& commands) {
  text_strong("Queue");
  const RunEntry* running = workspace.running();
  const std::vector<const RunEntry*> waiting = workspace.waiting();
  if (!running && waiting.empty()) {
    text_quiet_wrapped("Nothing is running. What you start waits here for its turn.");
    return;
  }
  const double left = workspace.seconds_left_of_all();
  if (!is_missing(left)) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
    text_quiet("about " + duration_text(left) + " left");
  }
  const auto row = [&](const RunEntry& entry, std::size_t place) {
    const bool is_running = entry.run.status == RunStatus::running;
    ImGui::PushID(static_cast<int>(entry.run.id));
    colour_square(rung_colour(entry.run.rung));
    ImGui::SameLine();
    const float button = px(140);
    text_cut(entry.run.name, ImGui::GetContentRegionAvail().x - button - px(150), palette().text, fonts().regular,
             text_size);
    ImGui::SameLine(ImGui::GetContentRegionAvail().x - button - px(124));
    text_quiet(is_running ? (workspace.is_paused ? "paused at " : "step ") +
                                grouped(static_cast<std::int64_t>(entry.series().size())) + " of " +
                                grouped(entry.run.planned_steps)
                          : "waits");
    ImGui::SameLine(ImGui::GetContentRegionAvail().x - button + px(8));
    ImGui::PushFont(fonts().regular, small_size);
    if (is_running) {
      if (quiet_button(workspace.is_paused ? "Go on" : "Pause"))
        commands.push_back(PauseRun{entry.run.id, !workspace.is_paused});
    } else {
      ImGui::BeginDisabled(place == 0);
      if (quiet_button("Earlier")) commands.push_back(MoveInQueue{entry.run.id, place - 1});
      ImGui::EndDisabled();
    }
    ImGui::SameLine();
    if (quiet_button(is_running ? "Stop" : "Cancel")) commands.push_back(StopRun{entry.run.id});
    ImGui::PopFont();
    ImGui::PopID();
  };
  if (running) {
    row(*running, 0);
    progress_bar(static_cast<double>(running->series().size()) /
                     static_cast<double>(std::max<std::int64_t>(1, running->run.planned_steps)),
                 ImGui::GetContentRegionAvail().x);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) row(*waiting[i], i);
  if (quiet_button("Stop everything")) commands.push_back(StopAll{});
  mark("launch.stop_all");
}

}  // namespace

Panel panels::launch() {
  return {.id = "launch",
          .title = "Launch",
          .draw =
              [form = std::make_shared<Form>()](const Workspace& workspace, Commands& commands) {
                if (workspace.proposal && form->proposals_taken != workspace.proposals) {
                  form->proposals_taken = workspace.proposals;
                  take_plan(*form, *workspace.proposal);
                }
                text_title("Launch a ladder");
                text_quiet("The baseline first, then one optimisation more on every rung; same seed, same tokens.");
                ImGui::Dummy(ImVec2(0, px(6)));
                const ImVec2 room = ImGui::GetContentRegionAvail();
                const float gap = px(16);
                const float left = std::clamp(room.x * 0.36f, px(330), px(520));
                const bool is_idle = !workspace.running() && workspace.waiting().empty();
                const float queue = is_idle ? px(84) : std::clamp(room.y * 0.3f, px(150), px(280));
                begin_card("##what", ImVec2(left, room.y), true);
                draw_model(*form);
                draw_data(*form);
                ImGui::Dummy(ImVec2(0, px(2)));
                draw_settings(*form);
                end_card();
                ImGui::SameLine(0, gap);
                ImGui::BeginGroup();
                const float start = px(72);
                begin_card("##rungs", ImVec2(0, room.y - queue - start - 2 * gap), true);
                draw_rungs(*form, workspace);
                end_card();
                ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
                begin_card("##start", ImVec2(0, start), true);
                draw_start(*form, workspace, commands);
                end_card();
                ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
                begin_card("##queue", ImVec2(0, 0), true);
                draw_queue(workspace, commands);
                end_card();
                ImGui::EndGroup();
              },
          .least_width = 660};
}

}  // namespace stepladder
