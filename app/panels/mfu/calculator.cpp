// Draws the calculator's fields and fills them from a run, a preset or a published row. As soon as the user changes a
// number, the form no longer names its source (`leave`).
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/mfu/parts.h"
#include "app/text/format.h"
#include "engine/recipe.h"

namespace stepladder {
namespace {

std::int64_t whole(double value) {
  return is_missing(value) ? 0 : std::llround(value);
}

ModelShape shape_of(const ModelPreset& preset) {
  Recipe recipe;
  apply_preset(recipe, preset.name);
  if (recipe.vocab == 0) recipe.vocab = 256;  // bytes
  return {.params = parameter_count(recipe),
          .layers = recipe.layers,
          .d_model = recipe.d_model,
          .seq_len = recipe.seq,
          .vocab = recipe.vocab};
}

// Two fields to a line, or one over both: a label and room for the field after it.
struct Grid {
  float left, column, space;

  static float label_width(int place) { return px(place == 0 ? 74 : 64); }
  void begin(int place, int span, const char* text) const {
    const float x = left + static_cast<float>(place) * (column + space);
    const float label = label_width(place);
    if (place > 0) ImGui::SameLine();
    ImGui::SetCursorPosX(x);
    ImGui::AlignTextToFramePadding();
    text_quiet(text);
    ImGui::SameLine(x + label);
    ImGui::SetNextItemWidth(static_cast<float>(span) * column + static_cast<float>(span - 1) * space - label);
  }
};

void draw_run_combo(MfuForm& form, const Workspace& workspace, float width) {
  const std::string shown = form.from.empty() ? "custom numbers" : form.from;
  const auto picked = run_combo("##run", shown, workspace, form.run, width);
  if (const RunEntry* entry = picked ? workspace.find(*picked) : nullptr)
    fill_from_run(form, *entry, workspace.hardware);
}

void draw_preset_combo(MfuForm& form) {
  const ModelShape now = shape_of(form);
  const auto is_now = [&](const ModelPreset& preset) {
    const ModelShape shape = shape_of(preset);
    return shape.params == now.params && shape.layers == now.layers && shape.d_model == now.d_model;
  };
  const auto& presets = model_presets();
  const auto current = std::ranges::find_if(presets, is_now);
  if (!ImGui::BeginCombo("##preset", current == presets.end() ? "custom" : std::string(current->name).c_str())) return;
  for (const ModelPreset& preset : presets) {
    if (!ImGui::Selectable(std::string(preset.name).c_str(), current != presets.end() && preset.name == current->name))
      continue;
    form.set_shape(shape_of(preset));
    form.leave();
  }
  ImGui::EndCombo();
}

void draw_precision_combo(MfuForm& form, const Hardware* hardware) {
  const std::string shown(to_string(form.precision));
  if (!ImGui::BeginCombo("##precision", shown.c_str())) return;
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8}) {
    const double peak = hardware ? peak_of(*hardware, precision) : missing;
    ImGui::BeginDisabled(hardware && is_missing(peak));
    const std::string label = std::string(to_string(precision)) + (is_missing(peak) ? "" : "   " + compact(peak));
    if (ImGui::Selectable(label.c_str(), precision == form.precision)) form.precision = precision;
    ImGui::EndDisabled();
  }
  ImGui::EndCombo();
}

}  // namespace

ModelShape shape_of(const MfuForm& form) {
  ModelShape shape{.params = whole(form.values[number_params]),
                   .layers = whole(form.values[number_layers]),
                   .d_model = whole(form.values[number_width]),
                   .seq_len = whole(form.values[number_seq]),
                   .vocab = whole(form.values[number_vocab])};
  constexpr std::int64_t most = 10'000'000;  // keeps the results within an int
  const bool is_given = shape.layers > 0 && shape.d_model > 0 && shape.seq_len > 0 && shape.vocab > 0;
  if (shape.params == 0 && is_given && std::max({shape.layers, shape.d_model, shape.seq_len, shape.vocab}) < most) {
    Recipe recipe;
    recipe.layers = static_cast<int>(shape.layers);
    recipe.d_model = static_cast<int>(shape.d_model);
    recipe.seq = static_cast<int>(shape.seq_len);
    recipe.vocab = static_cast<int>(shape.vocab);
    recipe.tied_head = true;
    shape.params = parameter_count(recipe);
  }
  return shape;
}

const Hardware* hardware_of(const MfuForm& form, const HardwareTable& table) {
  const auto found =
      std::ranges::find_if(table.all(), [&](const Hardware& hardware) { return hardware.name == form.hardware; });
  return found == table.all().end() ? nullptr : &*found;
}

double peak_of(const Hardware& hardware, Precision precision) {
  return precision == Precision::unknown ? missing : hardware.peak_tflops[static_cast<std::size_t>(precision)];
}

double peak_of(const MfuForm& form, const HardwareTable& table) {
  if (!is_missing(form.values[number_peak])) return form.values[number_peak];
  const Hardware* hardware = hardware_of(form, table);
  return hardware ? peak_of(*hardware, form.precision) : missing;
}

void fill_from_run(MfuForm& form, const RunEntry& entry, const HardwareTable& table) {
  form = MfuForm();
  form.run = entry.run.id;
  form.from = entry.run.name;
  form.set_shape(shape_of(entry.run, entry.summary));
  form.set(number_tokens, is_missing(entry.summary.tokens_per_s) ? 0 : entry.summary.tokens_per_s);
  const Peak peak = peak_of(entry.run, table);
  form.gpus = peak.devices;
  form.precision = peak.known() ? peak.precision : precision_from(entry.run.precision);
  if (form.precision == Precision::unknown) form.precision = Precision::bf16;
  const AssumedParams params = params_of(entry.run, entry.summary);
  const auto assume = [&](const std::string& what) { form.assumed += (form.assumed.empty() ? "" : "; ") + what; };
  if (!params.why.empty()) assume(params.why);
  if (peak.hardware) {
    form.hardware = peak.hardware->name;
    if (peak.assumed) assume(std::string(to_string(peak.precision)) + " peak, since the run's precision is unknown");
  } else if (!entry.run.hardware.empty()) {
    form.unknown_hardware = hardware_text(entry.run);
  }
  form.is_cpu = entry.run.device == "cpu";
}

void fill_from_published(MfuForm& form, const PublishedRow& row, const HardwareTable& table) {
  form = MfuForm();
  form.from = row.model + ", T " + grouped(row.shape.seq_len) + ", published";
  form.set_shape(row.shape);
  form.set(number_tokens, row.tokens_per_s);
  form.gpus = row.gpus;
  form.recomputed = row.recomputed;
  if (const Hardware* hardware = table.find(row.gpu)) form.hardware = hardware->name;
}

MfuForm first_form(const Workspace& workspace) {
  const RunEntry* chosen = workspace.current_run();
  if (chosen && is_missing(chosen->summary.tokens_per_s)) chosen = nullptr;
  for (auto entry = workspace.runs().rbegin(); !chosen && entry != workspace.runs().rend(); ++entry)
    if (!is_missing(entry->summary.tokens_per_s)) chosen = &*entry;
  MfuForm form;
  if (chosen) {
    fill_from_run(form, *chosen, workspace.hardware);
    return form;
  }
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == "gpt2") form.set_shape(shape_of(preset));
  }
  if (const Hardware* a100 = workspace.hardware.find("a100")) form.hardware = a100->name;
  return form;
}

void draw_calculator(MfuForm& form, const Workspace& workspace) {
  const float room = ImGui::GetContentRegionAvail().x;
  const float space = px(14);
  text_strong("Calculator");
  spacing(2);
  const Grid grid{ImGui::GetCursorPosX(), (room - space) / 2, space};
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(6)));
  const auto number = [&](int place, Number which, const char* label, const char* id, const char* hint) {
    grid.begin(place, 1, label);
    const auto kind =
        which == number_tokens || which == number_peak ? NumberField::Kind::any : NumberField::Kind::whole;
    // A value of the table or of the shape is as legible as one that was typed.
    const bool is_value = *hint >= '0' && *hint <= '9';
    ImGui::PushStyleColor(ImGuiCol_TextDisabled, is_value ? palette().text : palette().quiet);
    if (form.fields[which].draw(id, hint, form.values[which], kind)) form.leave();
    ImGui::PopStyleColor();
  };
  grid.begin(0, 2, "Run");
  draw_run_combo(form, workspace, room - Grid::label_width(0));
  mark("mfu.run");
  grid.begin(0, 1, "Model");
  draw_preset_combo(form);
  mark("mfu.preset");
  const ModelShape shape = shape_of(form);
  number(1, number_params, "N", "##params", shape.params > 0 ? grouped(shape.params).c_str() : "parameters");
  mark("mfu.params");
  number(0, number_layers, "Layers L", "##layers", "unknown");
  number(1, number_width, "Width d", "##width", "unknown");
  number(0, number_seq, "Context T", "##seq", "unknown");
  number(1, number_vocab, "Vocabulary", "##vocab", "unknown");
  grid.begin(0, 2, "Hardware");
  if (pick_hardware("##hardware", form.hardware, workspace.hardware, "none (enter the peak)", false)) {
    form.leave();
    const Hardware* chosen = hardware_of(form, workspace.hardware);
    if (chosen && is_missing(peak_of(*chosen, form.precision)))
      form.precision = workspace.hardware.peak(chosen->name, "").precision;
  }
  mark("mfu.hardware");
  const Hardware* hardware = hardware_of(form, workspace.hardware);
  grid.begin(0, 1, "Precision");
  draw_precision_combo(form, hardware);
  mark("mfu.precision");
  const double listed = hardware ? peak_of(*hardware, form.precision) : missing;
  number(1, number_peak, "Peak", "##peak", is_missing(listed) ? "TFLOP/s" : (compact(listed) + " TFLOP/s").c_str());
  mark("mfu.peak");
  number(0, number_tokens, "Tokens/s", "##tokens", "unknown");
  wrapped_tooltip(form.is_cpu ? "Total of all cores" : "Total of all devices", 300);
  mark("mfu.tokens");
  grid.begin(1, 1, form.is_cpu ? "Cores" : "Devices");
  if (ImGui::InputInt("##gpus", &form.gpus, 0)) form.leave();
  form.gpus = std::clamp(form.gpus, 1, 1'000'000);
  mark("mfu.gpus");
  ImGui::SetCursorPosX(grid.left + Grid::label_width(0));
  ImGui::Checkbox("Activation recomputation", &form.recomputed);
  wrapped_tooltip("The backward pass repeats the forward pass: HFU counts that work, MFU doesn't", 360);
  ImGui::PopStyleVar();
}

}  // namespace stepladder
