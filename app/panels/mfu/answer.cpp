// Draws the calculator's results: MFU and HFU by every convention, and the chosen one's arithmetic so that a reader can
// check it. The formulas are storage/analysis's.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/mfu/parts.h"
#include "app/text/format.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

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

Answer answer(const MfuForm& form, MfuConvention convention, double peak) {
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

void draw_conventions(const MfuForm& form, MfuConvention& chosen, double peak) {
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoBordersInBody |
                                    ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings |
                                    ImGuiTableFlags_PadOuterX;
  const bool is_wide = ImGui::GetContentRegionAvail().x > px(520);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(8), px(4)));
  const ImVec2 room(std::min(ImGui::GetContentRegionAvail().x, px(1100)), 0);
  if (!ImGui::BeginTable(table_id("##conventions", is_wide ? 6 : 5).c_str(), is_wide ? 6 : 5, flags, room))
    return ImGui::PopStyleVar();
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  ImGui::TableSetupColumn("convention", fixed, px(98));
  if (is_wide) ImGui::TableSetupColumn("FLOPs per token");
  ImGui::TableSetupColumn("FLOPs", fixed, px(52));
  ImGui::TableSetupColumn("TFLOP/s", fixed, px(form.gpus > 1 ? 84 : 52));
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
    text_quiet("FLOPs per token");
  }
  // Of one device, as in the roofline.
  for (const char* name : {"FLOPs", form.gpus > 1 ? "TFLOP/s each" : "TFLOP/s", "MFU", "HFU"})
    number(name, fonts().regular, small_size, palette().quiet);
  for (const MfuConvention convention : all_conventions) {
    const Answer found = answer(form, convention, peak);
    const bool is_chosen = convention == chosen;
    ImFont* font = is_chosen ? fonts().semibold : fonts().regular;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string name(to_string(convention));
    ImGui::PushFont(font, 13.5f);
    if (ImGui::Selectable(name.c_str(), is_chosen, ImGuiSelectableFlags_SpanAllColumns)) chosen = convention;
    ImGui::PopFont();
    if (is_wide) {
      ImGui::TableNextColumn();
      text_cut(std::string(formula_of(convention)), ImGui::GetContentRegionAvail().x,
               is_chosen ? palette().text : palette().quiet, fonts().regular, small_size);
    }
    const auto share = [&](double value) {
      const Tone tone = tone_of_share(value);
      number(percent(value), font, 13.5f, tone == Tone::neutral ? palette().text : tone_colour(tone));
    };
    number(compact(found.flops), font, 13.5f, palette().text);
    number(compact(is_missing(found.tflops) ? missing : found.tflops / std::max(form.gpus, 1)), font, 13.5f,
           palette().text);
    share(found.mfu);
    share(found.hfu);
  }
  ImGui::EndTable();
  ImGui::PopStyleVar();
}

// The arithmetic, so that a reader can recalculate it, and its meaning.
void draw_sum(const MfuForm& form, MfuConvention convention, double peak, const HardwareTable& table) {
  const ModelShape shape = shape_of(form);
  const Answer found = answer(form, convention, peak);
  if (shape.params == 0)
    return text_sentence("Enter N, or layers, width, context and vocabulary, to get FLOPs per token.");
  if (is_missing(found.flops))
    return text_sentence("This convention needs layers, width and context; 6N needs only N.");
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(3)));
  text_sentence(flops_sum(convention, shape) + " = " + compact(found.flops) + " FLOPs per token");
  if (is_missing(found.tflops)) {
    text_sentence("Enter tokens per second to get TFLOP/s.");
  } else {
    text_sentence("\xC3\x97 " + compact(form.values[number_tokens]) + " tokens/s = " + compact(found.tflops) +
                  " TFLOP/s" +
                  (form.gpus > 1 ? " on " + plural(form.gpus, form.is_cpu ? "core" : "device") + ", " +
                                       compact(found.tflops / form.gpus) + " each"
                                 : ""));
  }
  const Hardware* hardware = hardware_of(form, table);
  if (!is_missing(peak) && !is_missing(found.mfu)) {
    const bool by_hand = !is_missing(form.values[number_peak]) || !hardware;
    text_sentence(
        "/ " + (form.gpus > 1 ? grouped(form.gpus) + " x " : std::string()) + compact(peak) + " TFLOP/s (" +
        (by_hand ? "entered by hand"
                 : hardware->name + ", " + std::string(to_string(form.precision)) + ", dense; " + hardware->source) +
        ") = " + percent(found.mfu) + (form.recomputed ? ", with recomputation " + percent(found.hfu) : ""));
  }
  if (!form.assumed.empty()) text_quiet_wrapped("Assumed: " + form.assumed + ".");
  ImGui::PopStyleVar();
}

// Why no share of the peak is known.
std::string unknown_text(const MfuForm& form, double peak, const HardwareTable& table) {
  const Hardware* hardware = hardware_of(form, table);
  if (!is_missing(peak)) return "Enter the model's shape and tokens per second to get the share of the peak.";
  const std::string precision(to_string(form.precision));
  if (hardware) return "The hardware table has no " + precision + " peak for " + hardware->name + ". Enter it.";
  if (form.unknown_hardware.empty()) return "Choose hardware, or enter its peak.";
  return "The hardware table has no peak for " + form.unknown_hardware +
         ". Enter it, or measure it if that is this machine.";
}

// "Matrix products below the peak take 44 % of the step; other work, mostly copies and casts (13 %), 40 %."
std::string rest_text(double mfu, const FittedProfile* profile) {
  if (!profile) return "A step profile or a trace of the run says where the rest goes.";
  const KindTimes times(profile->profile);
  const double whole = step_ms(profile->profile);
  OperatorKind largest = OperatorKind::between;
  double products = 0;
  for (const OperatorKind kind : all_operator_kinds) {
    const bool multiplies = kind == OperatorKind::products || kind == OperatorKind::attention ||
                            kind == OperatorKind::convolution || kind == OperatorKind::graph;
    if (multiplies)
      products += times.of(kind) / whole;
    else if (times.of(kind) > times.of(largest))
      largest = kind;
  }
  if (products < mfu) return "";  // the profile is of other steps
  return "The rest: " + percent_text(products - mfu) + " of the step are matrix products below the peak, " +
         percent_text(1 - products) + " other work, most of it " + std::string(to_string(largest)) + " (" +
         percent_text(times.of(largest) / whole) + ").";
}

// The button that measures this machine's peak; while it does, how long it has taken and a button that ends it.
void draw_probe(const Workspace& workspace, Commands& commands) {
  if (is_missing(workspace.measures_peak_since)) {
    const std::string why_not = workspace.why_not_measure();
    ImGui::BeginDisabled(!why_not.empty());
    if (quiet_button("Measure this machine's peak", "mfu.probe")) commands.push_back(MeasurePeak{});
    ImGui::EndDisabled();
    return wrapped_tooltip(why_not.empty() ? "Times matrix products and copies for about ten seconds; every project of "
                                             "yours takes its peak from then on"
                                           : why_not,
                           360);
  }
  constexpr double usual_seconds = 15;
  const double seconds = std::max(0.0, unix_now() - workspace.measures_peak_since);
  ImGui::AlignTextToFramePadding();
  text_quiet("Measuring for " + duration_text(seconds) + ", usually about " + duration_text(usual_seconds));
  mark("mfu.probing");
  same_line(10);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetFrameHeight() / 2 - px(3));
  progress_bar(std::min(0.95, seconds / usual_seconds), px(120));
  same_line(10);
  if (quiet_button("Stop", "mfu.probe.stop")) commands.push_back(StopMeasuringPeak{});
}

// What share of the peak is used, whether that can be true, what bounds it, and where the rest goes.
void draw_sentence(const MfuForm& form, double mfu, double peak, const MfuContext& context, const Workspace& workspace,
                   Commands& commands) {
  const std::string words = is_missing(mfu) ? "unknown" : mfu > 1 ? "impossible" : "possible";
  mark("mfu.answer." + words + (form.is_cpu ? ".cores" : ".devices"));
  if (is_missing(mfu)) {
    text_sentence(unknown_text(form, peak, workspace.hardware));
    if (!form.unknown_hardware.empty() && is_missing(peak)) draw_probe(workspace, commands);
    return;
  }
  const std::string share = (form.assumed.empty() ? "" : "About ") + percent(mfu) + " of the peak is used";
  const std::string published =
      context.published_range.empty() ? "" : " (published runs: " + context.published_range + ")";
  if (mfu > 1)
    return text_sentence(share +
                             ", which is impossible. Most likely the clock was read before the device had "
                             "finished, or the throughput has another unit.",
                         Tone::bad);
  if (mfu > suspicious_share)
    return text_sentence(share + ", which whole training steps rarely reach" + published + ": check how it was timed.",
                         Tone::warning);
  std::string text = share + ", which can be true" + published + ".";
  if (!context.bound.empty()) text += " By the roofline it is " + context.bound + ".";
  if (form.run != 0) text += " " + rest_text(mfu, context.profile);
  text_sentence(in_print(text));
}

}  // namespace

std::string percent(double share) {
  if (is_missing(share)) return "-";
  return (std::fabs(share) < 9.995 ? decimals(100 * share, 1) : grouped(std::llround(100 * share))) + " %";
}

Tone tone_of_share(double share) {
  return is_missing(share) || share <= suspicious_share ? Tone::neutral : share > 1 ? Tone::bad : Tone::warning;
}

void draw_answer(const MfuForm& form, MfuConvention& convention, const MfuContext& context, const Workspace& workspace,
                 Commands& commands) {
  const HardwareTable& table = workspace.hardware;
  const double peak = peak_of(form, table);
  const Answer found = answer(form, convention, peak);
  ImGui::PushFont(fonts().display, title_size);
  const Tone tone = tone_of_share(found.mfu);
  const std::string about = form.assumed.empty() ? "" : "~";
  ImGui::TextColored(
      tone == Tone::neutral ? palette().text : tone_colour(tone), "%s",
      is_missing(found.mfu) ? "Share of the peak unknown" : (about + percent(found.mfu) + " of the peak").c_str());
  ImGui::PopFont();
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(8));
  text_cut("by " + std::string(to_string(convention)) + (form.from.empty() ? "" : "  \xE2\x80\x93  " + form.from),
           ImGui::GetContentRegionAvail().x - px(100), palette().quiet, fonts().regular, small_size);
  if (tone != Tone::neutral) {
    const char* word = tone == Tone::bad ? "impossible" : "suspicious";
    ImGui::SameLine(ImGui::GetContentRegionMax().x - pill_size(word).x);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(4));
    pill(word, tone);
  }
  draw_sentence(form, found.mfu, peak, context, workspace, commands);
  spacing(2);
  draw_conventions(form, convention, peak);
  draw_sum(form, convention, peak, table);
}

}  // namespace stepladder
