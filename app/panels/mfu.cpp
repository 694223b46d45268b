// MFU: what share of the device's peak a model's arithmetic used, by every convention side by side; the project's runs
// beside those that MosaicML has published; and the roofline that says what could be had.
#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "app/desktop/fields.h"
#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/environment.h"
#include "app/format.h"
#include "engine/recipe.h"
#include "storage/plausibility.h"
#include "storage/roofline.h"

namespace stepladder {
namespace {

// --- the calculator's numbers
// -----------------------------------------------------------------------------------------

enum Number {
  number_params,
  number_layers,
  number_width,
  number_seq,
  number_vocab,
  number_tokens,
  number_peak,
  number_count
};

struct Form {
  std::array<double, number_count> values;
  std::array<NumberField, number_count> fields;
  int gpus = 1;
  std::string hardware;  // a name of the table; empty: the peak is given by hand
  Precision precision = Precision::bf16;
  bool recomputed = false;
  RunId run = 0;                 // whose numbers these are; 0: nobody's, or a published run's
  std::string from;              // its name
  std::string assumed;           // what had to be assumed about them
  std::string unknown_hardware;  // that it ran on and the table does not know

  Form() { values.fill(missing); }
  void leave() {  // the numbers are somebody's own from here on
    run = 0;
    from.clear();
    assumed.clear();
    unknown_hardware.clear();
  }
  void set(Number which, double value) {
    values[which] = value > 0 ? value : missing;
    fields[which].show(values[which]);
  }
  void set_shape(const ModelShape& shape) {
    set(number_params, static_cast<double>(shape.params));
    set(number_layers, static_cast<double>(shape.layers));
    set(number_width, static_cast<double>(shape.d_model));
    set(number_seq, static_cast<double>(shape.seq_len));
    set(number_vocab, static_cast<double>(shape.vocab));
  }
};

std::int64_t whole(double value) {
  return is_missing(value) ? 0 : std::llround(value);
}

// Where N was left out it follows from the rest, for a GPT-2 with its head tied to the embedding.
ModelShape shape_of(const Form& form) {
  ModelShape shape{.params = whole(form.values[number_params]),
                   .layers = whole(form.values[number_layers]),
                   .d_model = whole(form.values[number_width]),
                   .seq_len = whole(form.values[number_seq]),
                   .vocab = whole(form.values[number_vocab])};
  constexpr std::int64_t most = 10'000'000;  // keeps what follows within an int
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

const Hardware* hardware_of(const Form& form, const HardwareTable& table) {
  const auto found = std::find_if(table.all().begin(), table.all().end(),
                                  [&](const Hardware& hardware) { return hardware.name == form.hardware; });
  return found == table.all().end() ? nullptr : &*found;
}

double peak_of(const Hardware& hardware, Precision precision) {
  return precision == Precision::unknown ? missing : hardware.peak_tflops[static_cast<std::size_t>(precision)];
}

// Of one device.
double peak_of(const Form& form, const HardwareTable& table) {
  if (!is_missing(form.values[number_peak])) return form.values[number_peak];
  const Hardware* hardware = hardware_of(form, table);
  return hardware ? peak_of(*hardware, form.precision) : missing;
}

// Without what the sentence says to users of the command line.
std::string words_of(const AssumedParams& params) {
  return params.why.substr(0, params.why.find("; --params"));
}

void take_run(Form& form, const RunEntry& entry, const HardwareTable& table) {
  form = Form();
  form.run = entry.run.id;
  form.from = entry.run.name;
  form.set_shape(shape_of(entry.run, entry.summary));
  form.set(number_tokens, is_missing(entry.summary.tokens_per_s) ? 0 : entry.summary.tokens_per_s);
  const Peak peak = peak_of(entry.run, table);
  form.gpus = peak.devices;
  form.precision = peak.known() ? peak.precision : Precision::bf16;
  const AssumedParams params = params_of(entry.run, entry.summary);
  const auto assume = [&](const std::string& what) { form.assumed += (form.assumed.empty() ? "" : "; ") + what; };
  if (!params.why.empty()) assume(words_of(params));
  if (peak.hardware) {
    form.hardware = peak.hardware->name;
    if (peak.assumed)
      assume("the peak is that of " + std::string(to_string(peak.precision)) +
             ", since the run's precision is not known");
  } else if (!entry.run.hardware.empty()) {
    form.unknown_hardware = entry.run.hardware;
  }
}

void take_published(Form& form, const PublishedRow& row, const HardwareTable& table) {
  form = Form();
  form.from = row.model + ", T " + grouped(row.shape.seq_len) + ", published";
  form.set_shape(row.shape);
  form.set(number_tokens, row.tokens_per_s);
  form.gpus = row.gpus;
  form.recomputed = row.recomputed;
  if (const Hardware* hardware = table.find(row.gpu)) form.hardware = hardware->name;
}

// --- the table's rows
// -------------------------------------------------------------------------------------------------

struct TableRow {
  RunId run = 0;              // 0: published
  std::size_t published = 0;  // which of them
  std::string name;
  std::string hardware;
  int devices = 1;
  std::int64_t seq = 0;
  std::int64_t params = 0;
  double tokens_per_s = missing;
  double said = missing;      // as published, by the nearest convention that was published
  double computed = missing;  // by that convention again
  double mfu = missing;       // by the convention of the view
  std::string remark;         // what was assumed, or why there is no figure
  bool is_assumed = false;

  double difference() const { return is_missing(said) ? missing : computed - said; }
};

struct Point {
  RunId run = 0;
  std::string name;
  double intensity = missing;
  double tflops = missing;  // of one device
  std::string hardware;     // of the table
  std::string bytes;        // the sum
};

enum Column {
  column_name,
  column_hardware,
  column_seq,
  column_params,
  column_tokens,
  column_said,
  column_computed,
  column_difference,
  column_mfu,
  column_count
};

struct State {
  MfuConvention convention = MfuConvention::six_n;  // as everywhere else in the program: the lowest
  Form form;
  bool is_filled = false;
  std::array<char, 128> run_filter{};
  std::array<char, 128> filter{};
  bool has_read = false;
  std::vector<PublishedRow> published;
  std::string published_problem;

  // Derived again when the runs, the convention, the filter or the order have changed.
  const RunEntry* seen_runs = nullptr;
  std::size_t seen_count = 0;
  std::int64_t seen_steps = -1;
  MfuConvention seen_convention = MfuConvention::six_n;
  std::vector<TableRow> all;
  std::vector<Point> points;
  std::size_t not_drawn = 0;  // runs without a place on the roofline
  std::vector<std::size_t> shown;
  std::string seen_filter;
  bool must_sort = true;
  int sorted_by = column_mfu;
  bool ascending = false;
};

std::string percent(double share) {
  if (is_missing(share)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), std::fabs(share) < 9.995 ? "%.1f %%" : "%.0f %%", 100 * share);
  return text.data();
}

std::string points_text(double difference) {
  if (is_missing(difference)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.2f", 100 * difference);
  return std::fabs(difference) < 0.00005 ? "0.00" : text.data();
}

void read_published_once(State& state) {
  if (std::exchange(state.has_read, true)) return;
  try {
    state.published = read_published(assets_folder() / "mosaic-mfu.csv");
  } catch (const StorageError& error) {
    state.published_problem = error.what();
  }
}

TableRow row_of(const RunEntry& entry, MfuConvention convention, const HardwareTable& table) {
  const Run& run = entry.run;
  const ModelShape shape = shape_of(run, entry.summary);
  const Peak peak = peak_of(run, table);
  const AssumedParams params = params_of(run, entry.summary);
  // A table this narrow shows the beginning only: the stage tells runs of one file apart.
  TableRow row{.run = run.id,
               .name = run.title.empty() ? run.name : run.title + ", " + run.name,
               .hardware = run.hardware,
               .devices = peak.devices,
               .seq = shape.seq_len,
               .params = shape.params,
               .tokens_per_s = entry.summary.tokens_per_s};
  const double flops = flops_per_token(convention, shape);
  row.mfu = utilisation(flops, row.tokens_per_s, peak.known() ? peak.total_tflops() : missing);
  if (is_missing(row.mfu)) {
    row.remark = is_missing(row.tokens_per_s) ? "Its throughput is not known."
                 : shape.params == 0 ? "Its parameters are not known: import it again with them, or give them above."
                 : is_missing(flops)
                     ? "Layers, width or context are not known, which this convention needs; 6N does not."
                 : run.hardware.empty() ? "It is not known what it ran on."
                                        : "The table of hardware has no peak for " + run.hardware + ".";
    return row;
  }
  row.is_assumed = !params.why.empty() || peak.assumed;
  if (!params.why.empty()) row.remark = "Not certain: " + words_of(params) + ".";
  if (peak.assumed)
    row.remark += (row.remark.empty() ? "" : " ") + std::string("The peak is that of ") +
                  std::string(to_string(peak.precision)) + ", since the run's precision is not known.";
  return row;
}

TableRow row_of(const PublishedRow& published, std::size_t index, MfuConvention convention,
                const HardwareTable& table) {
  const Hardware* gpu = table.find(published.gpu);
  // 6N is what the tables star; every other convention counts attention, as their MFU without a star does.
  const bool starred = convention == MfuConvention::six_n;
  const MosaicFigures again = recompute(published);
  TableRow row{.published = index,
               .name = published.model,
               .hardware = gpu ? gpu->name : published.gpu,
               .devices = published.gpus,
               .seq = published.shape.seq_len,
               .params = published.shape.params,
               .tokens_per_s = published.tokens_per_s,
               .said = starred ? published.published.mfu_star : published.published.mfu,
               .computed = starred ? again.mfu_star : again.mfu,
               .remark = disagreement(published.published, again)};
  if (gpu)
    row.mfu = utilisation(flops_per_token(convention, published.shape), published.tokens_per_s,
                          peak_of(*gpu, Precision::bf16) * published.gpus);
  return row;
}

std::string bytes_sum(const StepTraffic& traffic) {
  return "weights " + bytes_text(traffic.weights) + " + gradients " + bytes_text(traffic.gradients) + " + optimiser " +
         bytes_text(traffic.optimizer) + " + activations " + bytes_text(traffic.activations) + " = " +
         bytes_text(traffic.total());
}

void derive(State& state, const Workspace& workspace) {
  std::int64_t steps = 0;
  for (const RunEntry& entry : workspace.runs()) steps += entry.summary.steps;
  const RunEntry* runs = workspace.runs().data();
  if (runs == state.seen_runs && workspace.runs().size() == state.seen_count && steps == state.seen_steps &&
      state.convention == state.seen_convention)
    return;
  state.seen_runs = runs;
  state.seen_count = workspace.runs().size();
  state.seen_steps = steps;
  state.seen_convention = state.convention;
  state.all.clear();
  state.points.clear();
  state.not_drawn = 0;
  state.must_sort = true;
  for (const RunEntry& entry : workspace.runs()) {
    state.all.push_back(row_of(entry, state.convention, workspace.hardware));
    const StepShape shape = step_shape_of(entry.run, entry.summary);
    const double flops = flops_per_token(state.convention, shape.model);
    const Peak peak = peak_of(entry.run, workspace.hardware);
    if (!shape.known() || is_missing(flops) || is_missing(entry.summary.tokens_per_s)) {
      ++state.not_drawn;
      continue;
    }
    state.points.push_back({.run = entry.run.id,
                            .name = entry.run.name,
                            .intensity = arithmetic_intensity(state.convention, shape),
                            .tflops = flops * entry.summary.tokens_per_s / peak.devices / 1e12,
                            .hardware = peak.hardware ? peak.hardware->name : "",
                            .bytes = bytes_sum(step_traffic(shape))});
  }
  for (std::size_t i = 0; i < state.published.size(); ++i)
    state.all.push_back(row_of(state.published[i], i, state.convention, workspace.hardware));
}

double sort_value(const TableRow& row, int column) {
  switch (column) {
    case column_seq:
      return static_cast<double>(row.seq);
    case column_params:
      return static_cast<double>(row.params);
    case column_tokens:
      return row.tokens_per_s;
    case column_said:
      return row.said;
    case column_computed:
      return row.computed;
    case column_difference:
      return row.difference();
    default:
      return row.mfu;
  }
}

void take_shown(State& state) {
  if (!state.must_sort && state.seen_filter == state.filter.data()) return;
  state.must_sort = false;
  state.seen_filter = state.filter.data();
  state.shown.clear();
  for (std::size_t i = 0; i < state.all.size(); ++i) {
    const TableRow& row = state.all[i];
    const char* kind = row.run == 0 ? " published by MosaicML" : " yours";
    if (holds(row.name + " " + row.hardware + kind, state.seen_filter)) state.shown.push_back(i);
  }
  const int column = state.sorted_by;
  std::stable_sort(state.shown.begin(), state.shown.end(), [&](std::size_t a, std::size_t b) {
    const TableRow& x = state.all[a];
    const TableRow& y = state.all[b];
    if (column == column_name || column == column_hardware) {
      const std::string& left = column == column_name ? x.name : x.hardware;
      const std::string& right = column == column_name ? y.name : y.hardware;
      return state.ascending ? left < right : right < left;
    }
    const double left = sort_value(x, column);
    const double right = sort_value(y, column);
    // What is not known comes last, in either order.
    if (is_missing(left) || is_missing(right)) return !is_missing(left) && is_missing(right);
    return state.ascending ? left < right : right < left;
  });
}

// The selected run's numbers to begin with, else the newest's that has any, else GPT-2's.
void fill_once(State& state, const Workspace& workspace) {
  if (std::exchange(state.is_filled, true)) return;
  const RunEntry* chosen = nullptr;
  for (const RunEntry& entry : workspace.runs()) {
    if (is_missing(entry.summary.tokens_per_s)) continue;
    if (!chosen || workspace.selected_runs.contains(entry.run.id) || !workspace.selected_runs.contains(chosen->run.id))
      chosen = &entry;
  }
  if (chosen) return take_run(state.form, *chosen, workspace.hardware);
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == "gpt2") state.form.set_shape(shape_of(preset));
  }
  if (const Hardware* a100 = workspace.hardware.find("a100")) state.form.hardware = a100->name;
}

// --- drawing
// ----------------------------------------------------------------------------------------------------------

void gap(float height) {
  ImGui::Dummy(ImVec2(0, px(height) - ImGui::GetStyle().ItemSpacing.y * 2));
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

void draw_run_combo(State& state, const Workspace& workspace) {
  const std::string shown = state.form.from.empty() ? "numbers of your own" : state.form.from;
  ImGui::SetNextWindowSizeConstraints(ImVec2(0, 0), ImVec2(px(540), px(430)));
  if (!ImGui::BeginCombo("##run", shown.c_str())) return;
  if (ImGui::IsWindowAppearing()) {
    state.run_filter[0] = 0;
    ImGui::SetKeyboardFocusHere();
  }
  ImGui::SetNextItemWidth(px(320));
  ImGui::InputTextWithHint("##filter", "type to search", state.run_filter.data(), state.run_filter.size());
  constexpr int most_listed = 200;
  int listed = 0;
  for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend() && listed < most_listed; ++entry) {
    if (!holds(entry->run.name, state.run_filter.data())) continue;
    ++listed;
    const std::string label = entry->run.name + "##" + std::to_string(entry->run.id);
    if (ImGui::Selectable(label.c_str(), entry->run.id == state.form.run))
      take_run(state.form, *entry, workspace.hardware);
  }
  if (workspace.runs().empty()) text_quiet("There are no runs yet.");
  ImGui::EndCombo();
}

void draw_preset_combo(Form& form) {
  const ModelShape now = shape_of(form);
  const auto is_now = [&](const ModelPreset& preset) {
    const ModelShape shape = shape_of(preset);
    return shape.params == now.params && shape.layers == now.layers && shape.d_model == now.d_model;
  };
  const auto& presets = model_presets();
  const auto current = std::find_if(presets.begin(), presets.end(), is_now);
  if (!ImGui::BeginCombo("##preset", current == presets.end() ? "by hand" : std::string(current->name).c_str())) return;
  for (const ModelPreset& preset : presets) {
    if (!ImGui::Selectable(std::string(preset.name).c_str(), current != presets.end() && preset.name == current->name))
      continue;
    form.set_shape(shape_of(preset));
    form.leave();
  }
  ImGui::EndCombo();
}

void draw_precision_combo(Form& form, const Hardware* hardware) {
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

void draw_calculator(State& state, const Workspace& workspace) {
  Form& form = state.form;
  const float room = ImGui::GetContentRegionAvail().x;
  const float space = px(14);
  const Grid grid{ImGui::GetCursorPosX(), (room - space) / 2, space};
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(6)));
  const auto number = [&](int place, Number which, const char* label, const char* id, const char* hint) {
    grid.begin(place, 1, label);
    const auto kind =
        which == number_tokens || which == number_peak ? NumberField::Kind::any : NumberField::Kind::whole;
    if (form.fields[which].draw(id, hint, form.values[which], kind)) form.leave();
  };
  grid.begin(0, 2, "Take from");
  draw_run_combo(state, workspace);
  mark("mfu.run");
  grid.begin(0, 1, "Model");
  draw_preset_combo(form);
  mark("mfu.preset");
  const ModelShape shape = shape_of(form);
  number(1, number_params, "N", "##params", shape.params > 0 ? grouped(shape.params).c_str() : "parameters");
  mark("mfu.params");
  number(0, number_layers, "Layers L", "##layers", "not known");
  number(1, number_width, "Width d", "##width", "not known");
  number(0, number_seq, "Context T", "##seq", "not known");
  number(1, number_vocab, "Vocabulary", "##vocab", "not known");
  grid.begin(0, 2, "Hardware");
  if (pick_hardware("##hardware", form.hardware, workspace.hardware, "none: the peak by hand", false)) {
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
  number(0, number_tokens, "Tokens/s", "##tokens", "not known");
  ImGui::SetItemTooltip("Of all devices together");
  mark("mfu.tokens");
  grid.begin(1, 1, "Devices");
  if (ImGui::InputInt("##gpus", &form.gpus, 0)) form.leave();
  form.gpus = std::clamp(form.gpus, 1, 1'000'000);
  mark("mfu.gpus");
  ImGui::SetCursorPosX(grid.left + Grid::label_width(0));
  ImGui::Checkbox("activations are recomputed", &form.recomputed);
  ImGui::SetItemTooltip(
      "The forward pass is done again in the backward pass: the hardware works more, the model does not");
  ImGui::PopStyleVar();
}

// "6 x 124,439,808 + 12 x 12 x 768 x 1,024", as the convention counts.
std::string flops_sum(MfuConvention convention, const ModelShape& shape) {
  const auto attention = [&](int factor) {
    return " + " + std::to_string(factor) + " x " + grouped(shape.layers) + " x " + grouped(shape.d_model) + " x " +
           grouped(shape.seq_len);
  };
  const std::string n = grouped(shape.params);
  switch (convention) {
    case MfuConvention::six_n:
      break;
    case MfuConvention::llm_c: {
      const std::int64_t padding = (128 - shape.vocab % 128) % 128;
      return (padding > 0 ? "6 x (" + n + " + " + grouped(padding) + " x " + grouped(shape.d_model) + ")"
                          : "6 x " + n) +
             attention(6);
    }
    case MfuConvention::nano_gpt:
      return "6 x (" + n + " - " + grouped(shape.seq_len) + " x " + grouped(shape.d_model) + ")" + attention(12);
    case MfuConvention::palm:
      return "6 x " + n + attention(12);
    case MfuConvention::mosaic_tables:
      return "6 x " + n + attention(4);
  }
  return "6 x " + n;
}

struct Answer {
  double flops = missing;
  double tflops = missing;  // of all devices
  double mfu = missing;
  double hfu = missing;
};

Answer answer(const Form& form, MfuConvention convention, double peak) {
  const ModelShape shape = shape_of(form);
  const double tokens = form.values[number_tokens];
  const double total = is_missing(peak) ? missing : peak * form.gpus;
  Answer result{.flops = flops_per_token(convention, shape)};
  const double done = form.recomputed ? flops_per_token_recomputed(convention, shape) : result.flops;
  if (!is_missing(result.flops) && !is_missing(tokens)) result.tflops = result.flops * tokens / 1e12;
  result.mfu = utilisation(result.flops, tokens, total);
  result.hfu = utilisation(done, tokens, total);
  return result;
}

Tone tone_of(double share) {
  return is_missing(share) || share <= suspicious_share ? Tone::neutral : share > 1 ? Tone::bad : Tone::warning;
}

void draw_conventions(State& state, double peak) {
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoBordersInBody |
                                    ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings;
  const bool is_wide = ImGui::GetContentRegionAvail().x > px(520);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(8), px(2)));
  if (!ImGui::BeginTable("##conventions", is_wide ? 6 : 5, flags)) return ImGui::PopStyleVar();
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  ImGui::TableSetupColumn("convention", fixed, px(98));
  if (is_wide) ImGui::TableSetupColumn("FLOPs per token");
  ImGui::TableSetupColumn("FLOPs", fixed, px(52));
  ImGui::TableSetupColumn("TFLOP/s", fixed, px(52));
  ImGui::TableSetupColumn("MFU", fixed, px(52));
  ImGui::TableSetupColumn("HFU", fixed, px(52));
  const auto number = [](const std::string& text, ImFont* font, float size, const ImVec4& colour) {
    ImGui::TableNextColumn();
    text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, font, size, &colour);
  };
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  text_quiet("convention");
  if (is_wide) {
    ImGui::TableNextColumn();
    text_quiet("its FLOPs per token");
  }
  for (const char* name : {"FLOPs", "TFLOP/s", "MFU", "HFU"})
    number(name, fonts().regular, small_size, palette().quiet);
  for (const MfuConvention convention : all_conventions) {
    const Answer found = answer(state.form, convention, peak);
    const bool is_chosen = convention == state.convention;
    ImFont* font = is_chosen ? fonts().semibold : fonts().regular;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string name(to_string(convention));
    ImGui::PushFont(font, 13.5f);
    if (ImGui::Selectable(name.c_str(), is_chosen, ImGuiSelectableFlags_SpanAllColumns)) state.convention = convention;
    ImGui::PopFont();
    if (is_wide) {
      ImGui::TableNextColumn();
      text_cut(std::string(formula_of(convention)), ImGui::GetContentRegionAvail().x,
               is_chosen ? palette().text : palette().quiet, fonts().regular, small_size);
    }
    const auto share = [&](double value) {
      const Tone tone = tone_of(value);
      number(percent(value), font, 13.5f, tone == Tone::neutral ? palette().text : tone_colour(tone));
    };
    number(compact(found.flops), font, 13.5f, palette().text);
    number(compact(found.tflops), font, 13.5f, palette().text);
    share(found.mfu);
    share(found.hfu);
  }
  ImGui::EndTable();
  ImGui::PopStyleVar();
}

// What published runs reach by the view's convention: "30.1 % to 62.3 %".
std::string published_range(const State& state) {
  double low = missing;
  double high = missing;
  for (const TableRow& row : state.all) {
    if (row.run != 0 || is_missing(row.mfu)) continue;
    low = is_missing(low) ? row.mfu : std::min(low, row.mfu);
    high = is_missing(high) ? row.mfu : std::max(high, row.mfu);
  }
  return is_missing(low) ? "" : percent(low) + " to " + percent(high);
}

// The sum that a reader can redo, and what it means.
void draw_sum(const State& state, const Workspace& workspace, double peak) {
  const Form& form = state.form;
  const ModelShape shape = shape_of(form);
  const Answer found = answer(form, state.convention, peak);
  if (shape.params == 0)
    return text_sentence("Give N, or layers, width, context and vocabulary, and the FLOPs per token follow.");
  if (is_missing(found.flops))
    return text_sentence("This convention needs layers, width and context beside N; 6N does not.");
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(3)));
  text_sentence(flops_sum(state.convention, shape) + " = " + compact(found.flops) + " FLOPs per token");
  if (is_missing(found.tflops)) {
    text_sentence("Give tokens per second, and TFLOP/s follow.");
  } else {
    text_sentence("x " + compact(form.values[number_tokens]) + " tokens/s = " + compact(found.tflops) + " TFLOP/s");
  }
  const Hardware* hardware = hardware_of(form, workspace.hardware);
  if (is_missing(peak)) {
    text_sentence(
        hardware ? hardware->name + " has no " + std::string(to_string(form.precision)) + " peak in the table."
        : !form.unknown_hardware.empty()
            ? "The table of hardware has no " + form.unknown_hardware + ": give its peak, and the share of it follows."
            : "Choose the hardware or give its peak, and the share of it follows.");
  } else if (!is_missing(found.mfu)) {
    const bool by_hand = !is_missing(form.values[number_peak]) || !hardware;
    text_sentence(
        "/ " + (form.gpus > 1 ? grouped(form.gpus) + " x " : std::string()) + compact(peak) + " TFLOP/s (" +
        (by_hand ? "given by hand"
                 : hardware->name + ", " + std::string(to_string(form.precision)) + ", dense; " + hardware->source) +
        ") = " + percent(found.mfu) + (form.recomputed ? ", with recomputation " + percent(found.hfu) : ""));
    const std::string range = published_range(state);
    if (found.mfu > 1) {
      text_sentence(
          "That cannot be: it is over the peak. Most likely the clock was read before the device had finished, or "
          "the unit of the throughput is another.",
          Tone::bad);
    } else if (found.mfu > suspicious_share) {
      text_sentence("Whole training steps hardly ever reach 70 %" +
                        (range.empty() ? "" : "; the published ones: " + range) + ". Check how it was timed.",
                    Tone::warning);
    } else if (!range.empty()) {
      text_quiet_wrapped("By the same convention MosaicML's published runs reach " + range + ".");
    }
  }
  if (!form.assumed.empty()) text_quiet_wrapped("Not certain: " + form.assumed + ".");
  ImGui::PopStyleVar();
}

void draw_answer(State& state, const Workspace& workspace) {
  const double peak = peak_of(state.form, workspace.hardware);
  const Answer found = answer(state.form, state.convention, peak);
  ImGui::PushFont(fonts().display, title_size);
  const Tone tone = tone_of(found.mfu);
  ImGui::TextColored(tone == Tone::neutral ? palette().text : tone_colour(tone), "%s",
                     is_missing(found.mfu) ? "MFU" : ("MFU " + percent(found.mfu)).c_str());
  ImGui::PopFont();
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(8));
  text_cut(
      "by " + std::string(to_string(state.convention)) + (state.form.from.empty() ? "" : "  -  " + state.form.from),
      ImGui::GetContentRegionAvail().x - px(100), palette().quiet, fonts().regular, small_size);
  if (tone != Tone::neutral) {
    const char* word = tone == Tone::bad ? "impossible" : "suspicious";
    ImGui::SameLine(ImGui::GetContentRegionMax().x - pill_size(word).x);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(4));
    pill(word, tone);
  }
  draw_conventions(state, peak);
  draw_sum(state, workspace, peak);
}

bool is_number(int column) {
  return column >= column_seq;
}

// As ImGui's own, with the names of numbers over the numbers' right edge.
void draw_head_row(int sorted_by) {
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < column_count; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const char* name = ImGui::TableGetColumnName(column);
    ImGui::PushID(column);
    if (is_number(column)) {
      const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
      const ImVec2 at = ImGui::GetCursorPos();
      ImGui::TableHeader("##number");
      ImGui::SetCursorPos(at);
      const bool has_arrow = column == sorted_by;  // which ImGui puts at the right edge
      text_right(name, right - (has_arrow ? px(14) : 0), fonts().regular, small_size, &palette().quiet);
    } else {
      ImGui::TableHeader(name);
    }
    ImGui::PopID();
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void draw_table_row(State& state, const TableRow& row, int place, const Workspace& workspace) {
  ImGui::PushID(place);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool is_shown = row.run != 0 && row.run == state.form.run;
  if (ImGui::Selectable("##row", is_shown, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(20)))) {
    if (row.run == 0) {
      take_published(state.form, state.published[row.published], workspace.hardware);
    } else if (const RunEntry* entry = workspace.find(row.run)) {
      take_run(state.form, *entry, workspace.hardware);
    }
  }
  mark("mfu.row." + std::to_string(place));
  if (!row.remark.empty() && ImGui::IsItemHovered()) {
    ImGui::BeginTooltip();
    ImGui::PushTextWrapPos(px(440));
    ImGui::TextUnformatted(row.remark.c_str());
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
  ImGui::SameLine(0, 0);
  colour_square(row.run == 0 ? faded(palette().quiet, 0.35f) : palette().accent);
  ImGui::SameLine(0, px(8));
  text_cut(row.name, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, 13.5f);
  if (ImGui::TableNextColumn()) {
    const std::string count =
        row.devices > 1 && !row.hardware.empty() && row.run == 0 ? grouped(row.devices) + " x " : "";
    text_cut(row.hardware.empty() ? "-" : count + row.hardware, ImGui::GetContentRegionAvail().x, palette().quiet,
             fonts().regular, 13.5f);
  }
  const auto number = [&](const std::string& text, const ImVec4& colour) {
    if (!ImGui::TableNextColumn()) return;
    text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular, 13.5f, &colour);
  };
  number(row.seq > 0 ? grouped(row.seq) : "-", palette().quiet);
  number(row.params > 0 ? compact(static_cast<double>(row.params)) : "-", palette().quiet);
  number(tokens_per_s_text(row.tokens_per_s), palette().text);
  number(percent(row.said), palette().text);
  number(percent(row.computed), palette().quiet);
  const bool differs = std::fabs(row.difference()) >= 0.00005;
  number(points_text(row.difference()), differs ? palette().warning : palette().quiet);
  const Tone tone = tone_of(row.mfu);
  number((row.is_assumed ? "~ " : "") + percent(row.mfu), tone != Tone::neutral ? tone_colour(tone)
                                                          : row.is_assumed      ? palette().quiet
                                                                                : palette().text);
  ImGui::PopID();
}

void draw_table(State& state, const Workspace& workspace) {
  text_strong("Runs");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  const float field = px(150);
  const std::size_t own = state.all.size() - state.published.size();
  // What the tables star is 6N; every other convention is held against their MFU without a star.
  const char* figure = state.convention == MfuConvention::six_n ? "MFU* (6 N)" : "MFU (6 N + 4 L d T)";
  const std::string counts = state.published_problem.empty()
                                 ? grouped(static_cast<std::int64_t>(own)) + " yours, " +
                                       grouped(static_cast<std::int64_t>(state.published.size())) +
                                       " of MosaicML, published as " + figure
                                 : "the published ones are missing: " + state.published_problem;
  text_cut(counts, std::max(px(20), ImGui::GetContentRegionAvail().x - field - px(20)),
           state.published_problem.empty() ? palette().quiet : palette().bad, fonts().regular, small_size);
  ImGui::SameLine(ImGui::GetContentRegionMax().x - field);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(9));
  ImGui::SetNextItemWidth(field);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::InputTextWithHint("##filter", "filter", state.filter.data(), state.filter.size());
  ImGui::PopFont();
  mark("mfu.filter");
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable | ImGuiTableFlags_Hideable |
                                    ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(6), px(3)));
  if (!ImGui::BeginTable("##runs", column_count, flags, room)) return ImGui::PopStyleVar();
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  constexpr ImGuiTableColumnFlags most_first = fixed | ImGuiTableColumnFlags_PreferSortDescending;
  const ImGuiTableColumnFlags if_wide = room.x < px(840) ? ImGuiTableColumnFlags_Disabled : 0;
  const ImGuiTableColumnFlags if_not_narrow = room.x < px(500) ? ImGuiTableColumnFlags_Disabled : 0;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch | ImGuiTableColumnFlags_NoHide, 1.8f);
  ImGui::TableSetupColumn("hardware", if_not_narrow | ImGuiTableColumnFlags_WidthStretch, 1.3f);
  ImGui::TableSetupColumn("T", if_wide | fixed, px(58));
  ImGui::TableSetupColumn("N", if_wide | most_first, px(66));
  ImGui::TableSetupColumn("tokens/s", if_not_narrow | most_first, px(56));
  ImGui::TableSetupColumn("published", if_not_narrow | most_first, px(62));
  ImGui::TableSetupColumn("recomputed", if_wide | most_first, px(78));
  ImGui::TableSetupColumn("off by, pp", most_first, px(64));
  ImGui::TableSetupColumn("MFU", most_first | ImGuiTableColumnFlags_DefaultSort, px(66));
  draw_head_row(state.sorted_by);
  if (ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs(); specs && specs->SpecsDirty && specs->SpecsCount > 0) {
    state.sorted_by = specs->Specs[0].ColumnIndex;
    state.ascending = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
    state.must_sort = true;
    specs->SpecsDirty = false;
  }
  take_shown(state);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(state.shown.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_table_row(state, state.all[state.shown[static_cast<std::size_t>(i)]], i, workspace);
  }
  ImGui::EndTable();
  ImGui::PopStyleVar();
}

// --- the roofline
// -----------------------------------------------------------------------------------------------------

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  void include(double value) {
    if (!std::isfinite(value) || value <= 0) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// 1, 2 and 5 of each decade, or the decades alone where that would be too many.
std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  const bool few = std::log10(high / low) > 3;
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (few && factor > 1) continue;
      if (decade * factor >= low && decade * factor <= high) ticks.push_back(decade * factor);
    }
  }
  return ticks;
}

int axis_number(double value, char* text, int size, void*) {
  return std::snprintf(text, static_cast<std::size_t>(size), "%.4g", value);
}

struct Ceiling {
  Precision precision;
  double tflops;
};

// The table's peaks of the device, or the one that was given by hand.
std::vector<Ceiling> ceilings_of(const Form& form, const Hardware* hardware) {
  std::vector<Ceiling> ceilings;
  if (!is_missing(form.values[number_peak])) return {{form.precision, form.values[number_peak]}};
  if (!hardware) return ceilings;
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8}) {
    const double peak = peak_of(*hardware, precision);
    if (is_missing(peak)) continue;
    const bool is_there = std::any_of(ceilings.begin(), ceilings.end(), [&](Ceiling& it) {
      if (it.tflops != peak) return false;
      if (precision == form.precision) it.precision = precision;
      return true;
    });
    if (!is_there) ceilings.push_back({precision, peak});
  }
  return ceilings;
}

// Names of the precisions that share a ceiling: "bf16, fp16".
std::string ceiling_words(const Ceiling& ceiling, const Form& form, const Hardware* hardware) {
  if (!is_missing(form.values[number_peak]) || !hardware) return "by hand";
  std::string words;
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8}) {
    if (peak_of(*hardware, precision) == ceiling.tflops)
      words += (words.empty() ? "" : ", ") + std::string(to_string(precision));
  }
  return words;
}

void label_at(double x, double y, const std::string& text, const ImVec4& colour, float align_x) {
  const ImVec2 at = ImPlot::PlotToPixels(x, y);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddText(ImVec2(at.x - size.x * align_x, at.y - size.y - px(2)), u32(colour), text.c_str());
  ImPlot::PopPlotClipRect();
}

void plot_line(const char* id, double x0, double y0, double x1, double y1, const ImVec4& colour, float weight) {
  const std::array<double, 2> x = {x0, x1};
  const std::array<double, 2> y = {y0, y1};
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.LineWeight = px(weight);
  spec.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotLine(id, x.data(), y.data(), 2, spec);
}

bool is_impossible(const Point& point, double peak) {
  return !is_missing(peak) && point.tflops > peak;
}

// Points of other devices are hollow: this roof is not theirs. Over the roof is a cross.
void draw_points(const State& state, const Hardware* hardware, double peak) {
  const Point* under_mouse = nullptr;
  float nearest = px(9) * px(9);
  const ImVec2 mouse = ImGui::GetMousePos();
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  for (const Point& point : state.points) {
    const ImVec2 at = ImPlot::PlotToPixels(point.intensity, point.tflops);
    const bool is_own = hardware && point.hardware == hardware->name;
    const bool is_chosen = point.run == state.form.run;
    const bool is_over = is_own && is_impossible(point, peak);
    const float radius = px(is_chosen ? 5.5f : 4);
    const ImU32 colour = u32(is_over     ? palette().bad
                             : is_chosen ? palette().accent
                                         : palette().text,
                             is_own || is_chosen ? 0.9f : 0.45f);
    if (is_over) {
      draw->AddLine(ImVec2(at.x - radius, at.y - radius), ImVec2(at.x + radius, at.y + radius), colour, px(2));
      draw->AddLine(ImVec2(at.x - radius, at.y + radius), ImVec2(at.x + radius, at.y - radius), colour, px(2));
    } else if (is_own) {
      draw->AddCircleFilled(at, radius, colour);
    } else {
      draw->AddCircle(at, radius, colour, 0, px(1.5f));
    }
    const float far = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
    if (far < nearest) {
      nearest = far;
      under_mouse = &point;
    }
  }
  ImPlot::PopPlotClipRect();
  if (!under_mouse || !ImPlot::IsPlotHovered()) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(460));
  text_strong(under_mouse->name);
  ImGui::TextUnformatted((compact(under_mouse->tflops) + " TFLOP/s a device at " + compact(under_mouse->intensity) +
                          " FLOP/byte, by " + std::string(to_string(state.convention)))
                             .c_str());
  text_quiet_wrapped("A step moves about " + under_mouse->bytes);
  if (!hardware || under_mouse->hardware != hardware->name)
    text_quiet_wrapped(
        "Hollow: it ran on " +
        (under_mouse->hardware.empty() ? std::string("hardware that the table does not know") : under_mouse->hardware) +
        ", so this roof is not its own.");
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

constexpr const char* how_estimated =
    "Intensity is an estimate: FLOPs of a step by the chosen convention, over the bytes that its tensors need to move "
    "when "
    "each is written once and read once. Weights: 2 bytes (bf16, fp16) or 4, twice a micro-batch. Gradients: 4 N bytes "
    "written. AdamW: 28 N (weight, gradient and two moments read, weight and moments written). Activations: 16 d "
    "values a "
    "layer and token, and the logits, each written and read (Korthikanti et al. 2022, section 4.1, without dropout). "
    "Kernels that fuse less move more and stand further left; a model that stays in the cache moves less. The roof: "
    "min(peak, bandwidth x intensity) (Williams et al. 2009).\n\nA point is a run: filled where it ran on this "
    "hardware, "
    "hollow where on another, a cross where it is over the peak. Runs whose shape, tokens per step or throughput are "
    "not "
    "known are left out.";

void draw_roofline(const State& state, const Workspace& workspace) {
  const Form& form = state.form;
  const Hardware* hardware = hardware_of(form, workspace.hardware);
  const double peak = peak_of(form, workspace.hardware);
  const double bandwidth = hardware ? hardware->bandwidth_gb_s : missing;
  const std::vector<Ceiling> ceilings = ceilings_of(form, hardware);
  text_strong("Roofline");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  std::string note = hardware ? hardware->name : "no hardware chosen";
  if (!state.points.empty())
    note += "  -  " + grouped(static_cast<std::int64_t>(state.points.size())) + " of " +
            grouped(static_cast<std::int64_t>(state.seen_count)) + " runs";
  const float help = px(92);
  text_cut(note, std::max(px(20), ImGui::GetContentRegionAvail().x - help - px(8)), palette().quiet, fonts().regular,
           small_size);
  ImGui::SameLine(ImGui::GetContentRegionMax().x - help);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(9));
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::Button("How estimated", ImVec2(help, 0));
  ImGui::PopFont();
  if (ImGui::IsItemHovered()) {
    ImGui::BeginTooltip();
    ImGui::PushTextWrapPos(px(480));
    ImGui::TextUnformatted(how_estimated);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
  if (ceilings.empty() && state.points.empty()) {
    empty_state("No roof and no runs.", "Choose hardware above: its peaks and its memory bandwidth are drawn here.");
    return;
  }
  Range x;
  Range y;
  for (const Point& point : state.points) {
    x.include(point.intensity);
    y.include(point.tflops);
  }
  for (const Ceiling& ceiling : ceilings) {
    y.include(ceiling.tflops);
    x.include(ridge_intensity(ceiling.tflops, bandwidth));
  }
  if (!(x.high > 0)) x = {10, 1000};
  x = {x.low / 4, x.high * 5};
  y = {std::min(y.low / 2, y.high / 50), y.high * 2.2};
  const float foot = ImGui::GetTextLineHeight() * (small_size / text_size) + px(6);
  const ImVec2 size(ImGui::GetContentRegionAvail().x, ImGui::GetContentRegionAvail().y - foot);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot("##roofline", size,
                        ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend)) {
    ImPlot::SetupAxes("FLOP per byte", "TFLOP/s", ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    ImPlot::SetupAxisFormat(ImAxis_X1, axis_number);
    ImPlot::SetupAxisFormat(ImAxis_Y1, axis_number);
    const std::vector<double> x_ticks = log_ticks(x.low, x.high);
    const std::vector<double> y_ticks = log_ticks(y.low, y.high);
    if (x_ticks.size() > 1) ImPlot::SetupAxisTicks(ImAxis_X1, x_ticks.data(), static_cast<int>(x_ticks.size()));
    if (y_ticks.size() > 1) ImPlot::SetupAxisTicks(ImAxis_Y1, y_ticks.data(), static_cast<int>(y_ticks.size()));
    ImPlot::SetupAxisLimits(ImAxis_X1, x.low, x.high, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, y.low, y.high, ImPlotCond_Always);
    ImPlot::SetupFinish();
    double highest = 0;
    for (const Ceiling& ceiling : ceilings) highest = std::max(highest, ceiling.tflops);
    for (const Ceiling& ceiling : ceilings) {
      const bool is_chosen = ceiling.tflops == peak;
      const double ridge = ridge_intensity(ceiling.tflops, bandwidth);
      const ImVec4 colour = is_chosen ? palette().text : faded(palette().quiet, 0.7f);
      plot_line(("##" + std::string(to_string(ceiling.precision))).c_str(), is_missing(ridge) ? x.low : ridge,
                ceiling.tflops, x.high, ceiling.tflops, colour, is_chosen ? 2.0f : 1.2f);
      label_at(x.high * 0.97, ceiling.tflops, ceiling_words(ceiling, form, hardware) + "  " + compact(ceiling.tflops),
               is_chosen ? palette().text : palette().quiet, 1);
    }
    const double ridge = ridge_intensity(highest, bandwidth);
    if (!is_missing(ridge)) {
      plot_line("##memory", x.low, attainable_tflops(x.low, highest, bandwidth), ridge, highest, palette().text, 2);
      const double middle = std::max(x.low * 1.25, y.low * 1.6e3 / bandwidth);
      const ImVec2 at = ImPlot::PlotToPixels(middle, attainable_tflops(middle, highest, bandwidth));
      const std::string words = "memory  " + grouped(std::llround(bandwidth)) + " GB/s";
      ImPlot::PushPlotClipRect();
      ImPlot::GetPlotDrawList()->AddText(ImVec2(at.x + px(10), at.y - px(2)), u32(palette().quiet), words.c_str());
      ImPlot::PopPlotClipRect();
    }
    draw_points(state, hardware, peak);
    ImPlot::EndPlot();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  // What is left out, and what it says of the run in the calculator.
  std::string line;
  const auto point =
      std::find_if(state.points.begin(), state.points.end(), [&](const Point& it) { return it.run == form.run; });
  const double ridge = ridge_intensity(peak, bandwidth);
  if (point != state.points.end() && !is_missing(ridge)) {
    line = compact(point->intensity) + " FLOP/byte at best, the ridge is at " + compact(ridge) +
           (point->intensity < ridge ? ": memory binds before arithmetic" : ": arithmetic can bind");
  } else if (ceilings.empty()) {
    line = "No roof is drawn: choose hardware, or give a peak";
  } else if (state.not_drawn > 0) {
    line = grouped(static_cast<std::int64_t>(state.not_drawn)) + (state.not_drawn == 1 ? " run is" : " runs are") +
           " not drawn: shape, batch or throughput not known";
  } else if (state.points.empty()) {
    line = "Runs whose shape and batch are known are drawn as points";
  } else {
    line = "Filled: on this hardware; hollow: on another; cross: over the peak";
  }
  text_cut(line, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
}

void draw_head(State& state) {
  const float width = px(236);
  const float top = ImGui::GetCursorPosY();
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::SetCursorPosX(right - width);
  ImGui::SetNextItemWidth(width);
  if (ImGui::BeginCombo("##convention", ("Convention: " + std::string(to_string(state.convention))).c_str())) {
    for (const MfuConvention convention : all_conventions) {
      const std::string words = std::string(to_string(convention)) + ":  " + std::string(formula_of(convention));
      if (ImGui::Selectable(words.c_str(), convention == state.convention)) state.convention = convention;
    }
    ImGui::EndCombo();
  }
  mark("mfu.convention");
  ImGui::SetCursorPosY(top);
  text_title("MFU");
  text_cut(
      "Which share of the hardware's peak the model's arithmetic used; conventions differ by a sixth for the same run",
      right - width - ImGui::GetCursorPosX() - px(16), palette().quiet, fonts().regular, small_size);
}

void draw(State& state, const Workspace& workspace) {
  read_published_once(state);
  fill_once(state, workspace);
  derive(state, workspace);
  draw_head(state);
  gap(18);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(14);
  const float upper = px(310);
  // What is too small for all four scrolls, one under the other.
  if (room.x < px(760) || room.y < px(500)) {
    begin_card("##calculator", ImVec2(0, upper));
    draw_calculator(state, workspace);
    end_card();
    gap(14);
    begin_card("##answer", ImVec2(0, upper), true);
    draw_answer(state, workspace);
    end_card();
    gap(14);
    begin_card("##table", ImVec2(0, px(320)));
    draw_table(state, workspace);
    end_card();
    gap(14);
    begin_card("##roofline", ImVec2(0, px(320)));
    draw_roofline(state, workspace);
    end_card();
    return;
  }
  const float left = std::clamp(room.x * 0.36f, px(396), px(520));
  begin_card("##calculator", ImVec2(left, upper));
  draw_calculator(state, workspace);
  end_card();
  ImGui::SameLine(0, space);
  begin_card("##answer", ImVec2(0, upper), true);
  draw_answer(state, workspace);
  end_card();
  gap(14);
  const float rest = ImGui::GetContentRegionAvail().y;
  begin_card("##table", ImVec2((room.x - space) * 0.57f, rest));
  draw_table(state, workspace);
  end_card();
  ImGui::SameLine(0, space);
  begin_card("##roofline", ImVec2(0, rest));
  draw_roofline(state, workspace);
  end_card();
}

}  // namespace

Panel panels::mfu() {
  const auto state = std::make_shared<State>();
  return {.id = "mfu",
          .title = "MFU",
          .draw = [state](const Workspace& workspace, Commands&) { draw(*state, workspace); },
          .remember = [state] { return std::string(to_string(state->convention)); },
          .recall =
              [state](const std::string& text) {
                for (const MfuConvention convention : all_conventions) {
                  if (text == to_string(convention)) state->convention = convention;
                }
              }};
}

}  // namespace stepladder
