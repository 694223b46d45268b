// The first screen's pictures of the examples. The figures are those that opening an example shows, rounded; the tries
// are every third of a hundred.
#include "app/desktop/example_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

// Thousands of tokens a second on one card, and the most that it can do in its fastest training precision.
constexpr std::array rtx3080_rates{11.5f,  149.0f,  122.0f,  148.0f,  148.0f, 208.0f,
                                   709.0f, 1340.0f, 1350.0f, 1100.0f, 1100.0f};
constexpr float rtx3080_limit = 79.7f;
constexpr std::array a100_rates{3.15f, 13.6f, 32.6f};
constexpr float a100_limit = 418;

struct PastTry {
  float factor;  // of its metric against the state kept before it; less is better
  bool is_kept;
};
constexpr std::array<PastTry, 37> past_tries{
    {{0.979f, false}, {0.994f, false}, {1.067f, false}, {1.008f, false}, {0.971f, false}, {0.958f, false},
     {0.981f, false}, {0.978f, false}, {1.012f, false}, {0.987f, false}, {0.980f, false}, {1.057f, false},
     {1.023f, false}, {1.011f, false}, {1.039f, false}, {1.046f, false}, {0.982f, false}, {1.015f, false},
     {0.972f, false}, {0.949f, true},  {0.981f, false}, {1.012f, false}, {0.902f, true},  {0.974f, false},
     {1.004f, false}, {1.058f, false}, {0.928f, true},  {1.054f, false}, {0.971f, false}, {1.025f, false},
     {0.978f, false}, {0.944f, false}, {1.065f, false}, {1.134f, false}, {1.043f, false}, {0.921f, true},
     {1.013f, false}}};

// Milliseconds of a step by kind: products, norms, loss, attention, element-wise, activation, communication, the rest.
constexpr std::array<std::array<float, 8>, 2> trace_kinds{
    {{26.8f, 7.1f, 5.6f, 5.2f, 4.8f, 3.6f, 3.2f, 4.7f}, {26.5f, 7.1f, 5.7f, 5.1f, 4.8f, 3.6f, 3.0f, 4.6f}}};

// A word in the picture, its left edge or its middle at `at`.
void label(const char* words, ImVec2 at, const ImVec4& colour, bool is_centred = false) {
  ImGui::PushFont(fonts().regular, 11);
  if (is_centred) at.x -= ImGui::CalcTextSize(words).x / 2;
  ImGui::GetWindowDrawList()->AddText(at, u32(colour), words);
  ImGui::PopFont();
}

// Bars on a log scale, hatched where they pass the limit.
void draw_bars(std::span<const float> rates, float limit, ImVec2 low, ImVec2 high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  high.y -= px(13);
  const float row = (high.y - low.y) / static_cast<float>(rates.size());
  const float least = rates.front() * 0.7f, most = 1.1f * std::max(limit, std::ranges::max(rates));
  const auto place = [&](float rate) {
    return low.x + (high.x - low.x) * std::log(rate / least) / std::log(most / least);
  };
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const ImVec2 from(low.x, low.y + row * static_cast<float>(i));
    const ImVec2 to(place(rates[i]), from.y + row - px(2));
    if (rates[i] > limit)
      hatch(from, to);
    else
      draw->AddRectFilled(from, to, u32(palette().accent), px(2));
  }
  draw->AddLine(ImVec2(place(limit), low.y - px(3)), ImVec2(place(limit), high.y + px(1)), u32(palette().bad), px(2));
  label("the card's limit", ImVec2(std::min(place(limit), high.x - px(40)), high.y + px(2)), palette().bad, true);
}

}  // namespace

void draw_impossible_picture(ImVec2 low, ImVec2 high) {
  draw_bars(rtx3080_rates, rtx3080_limit, low, high);
}

void draw_real_picture(ImVec2 low, ImVec2 high) {
  draw_bars(a100_rates, a100_limit, low, high);
}

void draw_tries_picture(ImVec2 low, ImVec2 high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  constexpr float best = 0.70f, worst = 1.10f;  // of the metric against the first state
  const float each = (high.x - low.x) / static_cast<float>(past_tries.size());
  const auto place = [&](float metric) {
    return low.y + (high.y - low.y) * std::clamp((worst - metric) / (worst - best), 0.0f, 1.0f);
  };
  float kept = 1, begin = low.x;
  for (std::size_t i = 0; i < past_tries.size(); ++i) {
    const float x = low.x + each * (static_cast<float>(i) + 0.5f);
    const float y = place(kept * past_tries[i].factor);
    if (past_tries[i].is_kept) {
      draw->AddLine(ImVec2(begin, place(kept)), ImVec2(x, place(kept)), u32(palette().good), px(1.5f));
      draw->AddLine(ImVec2(x, place(kept)), ImVec2(x, y), u32(palette().good), px(1.5f));
      kept *= past_tries[i].factor;
      begin = x;
    }
    draw->AddCircleFilled(ImVec2(x, y), px(past_tries[i].is_kept ? 3.5f : 2),
                          u32(past_tries[i].is_kept ? palette().good : palette().quiet));
  }
  draw->AddLine(ImVec2(begin, place(kept)), ImVec2(high.x, place(kept)), u32(palette().good), px(1.5f));
  label("kept", ImVec2(low.x + (high.x - low.x) * 0.62f, high.y - px(13)), palette().good);
  label("not kept", ImVec2(low.x, low.y + px(34)), palette().quiet);
}

void draw_traces_picture(ImVec2 low, ImVec2 high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  constexpr float longest_ms = 61.0f;
  const float height = (high.y - low.y - px(8)) / 2;
  for (std::size_t step = 0; step < trace_kinds.size(); ++step) {
    ImVec2 at(low.x, low.y + static_cast<float>(step) * (height + px(8)));
    for (std::size_t kind = 0; kind < trace_kinds[step].size(); ++kind) {
      const float width = (high.x - low.x) * trace_kinds[step][kind] / longest_ms;
      const bool is_rest = kind + 1 == trace_kinds[step].size();
      draw->AddRectFilled(at, ImVec2(at.x + width - px(1), at.y + height),
                          is_rest ? u32(palette().quiet, 0.4f) : u32(rung_colour(static_cast<int>(kind)), 0.85f),
                          px(2));
      at.x += width;
    }
    label(step == 0 ? "before" : "after", ImVec2(low.x + px(6), at.y + height / 2 - px(7)),
          theme_is_dark() ? ImVec4(0.05f, 0.07f, 0.09f, 1) : ImVec4(1, 1, 1, 1));
  }
}

}  // namespace stepladder
