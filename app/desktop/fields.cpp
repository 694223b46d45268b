// Input fields that panels share, and the parsing of what people type or paste into them: numbers with commas and
// suffixes, file URLs, patterns. A field with an unreadable number keeps the text and the old value.
#include "app/desktop/fields.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"
#include "storage/name_pattern.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

// One factor; 0 if it isn't a number.
double factor_of(std::string text) {
  std::erase_if(text, [](char c) { return c == ',' || c == '_' || c == ' ' || c == '\t'; });
  double scale = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'k':
        scale = 1e3;
        break;
      case 'm':
        scale = 1e6;
        break;
      case 'g':
      case 'b':
        scale = 1e9;
        break;
      default:
        break;
    }
    if (scale > 1) text.pop_back();
  }
  return parse_number<double>(text).value_or(0) * scale;
}

}  // namespace

std::optional<double> read_number(std::string_view text) {
  std::string rest = lower_case(text);
  double product = 1;
  while (true) {
    const std::size_t times = rest.find_first_of("x*");
    product *= factor_of(rest.substr(0, times));
    if (times == std::string::npos) break;
    rest.erase(0, times + 1);
  }
  if (!(product > 0) || std::isinf(product)) return std::nullopt;
  return product;
}

std::optional<std::int64_t> read_count(std::string_view text) {
  const auto number = read_number(text);
  // Beyond 2^53 not every whole number is a double.
  if (!number || *number > 9e15 || *number < 1 || std::fabs(*number - std::round(*number)) > 1e-6) return std::nullopt;
  return std::llround(*number);
}

std::string plain_path(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  while (!text.empty() && is_space(text.front())) text.erase(0, 1);
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  if (text.starts_with("file://")) {
    text.erase(0, 7);
    for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos && at + 2 < text.size(); ++at)
      text.replace(at, 3, 1, static_cast<char>(std::strtol(text.substr(at + 1, 2).c_str(), nullptr, 16)));
  }
  const char* home = std::getenv("HOME");
  if (home && (text == "~" || text.starts_with("~/"))) text.replace(0, 1, home);
  return text;
}

void NumberField::show(double value) {
  is_wrong_ = false;
  text_[0] = 0;
  if (is_missing(value) || !(value > 0)) return;
  if (value < 9e15 && (value >= 1000 || value == std::round(value))) {
    std::snprintf(text_.data(), text_.size(), "%s", grouped(std::llround(value)).c_str());
  } else {
    std::snprintf(text_.data(), text_.size(), "%.4g", value);
  }
}

bool NumberField::draw(const char* id, const char* hint, double& value, Kind kind) {
  const bool was_wrong = is_wrong_;
  if (was_wrong) ImGui::PushStyleColor(ImGuiCol_Border, palette().bad);
  ImGui::InputTextWithHint(id, hint, text_.data(), text_.size());
  if (was_wrong) {
    ImGui::PopStyleColor();
    ImGui::SetItemTooltip("'%s' isn't a number. Examples: 524,288, 64 x 1024, 124M", text_.data());
  }
  if (!ImGui::IsItemDeactivatedAfterEdit()) return false;
  const bool is_empty = text().find_first_not_of(' ') == std::string::npos;
  double number = missing;
  if (!is_empty) {
    const auto any = read_number(text());
    is_wrong_ = !any || (kind == Kind::whole && !read_count(text()));
    if (is_wrong_) return false;
    number = *any;
  }
  const bool is_other = is_missing(number) != is_missing(value) || (!is_empty && number != value);
  value = number;
  show(value);
  return is_other;
}

bool holds(std::string_view text, std::string_view typed) {
  return lower_case(text).find(lower_case(typed)) != std::string::npos;
}

bool is_meant(std::string_view name, std::string_view typed) {
  const std::size_t first = typed.find_first_not_of(' ');
  if (first == std::string_view::npos) return true;
  typed = typed.substr(first, typed.find_last_not_of(' ') - first + 1);
  if (typed.find('*') == std::string_view::npos) return holds(name, typed);
  return matches_pattern(lower_case(typed), lower_case(name));
}

bool hardware_matches(const Hardware& hardware, std::string_view typed) {
  return holds(hardware.name, typed) ||
         std::ranges::any_of(hardware.aliases, [&](const std::string& alias) { return holds(alias, typed); });
}

bool pick_hardware(const char* id, std::string& name, const HardwareTable& table, const char* none, bool any_name) {
  static std::array<char, 128> typed{};  // one list is open at a time
  if (!ImGui::BeginCombo(id, name.empty() ? none : name.c_str(), ImGuiComboFlags_HeightLarge)) return false;
  if (ImGui::IsWindowAppearing()) {
    typed[0] = 0;
    ImGui::SetKeyboardFocusHere();
  }
  bool changed = false;
  const auto choose = [&](const std::string& chosen) {
    name = chosen;
    changed = true;
    ImGui::CloseCurrentPopup();
  };
  ImGui::SetNextItemWidth(px(320));
  const bool entered = ImGui::InputTextWithHint("##typed", "Search, e.g. 4090", typed.data(), typed.size(),
                                                ImGuiInputTextFlags_EnterReturnsTrue);
  if (ImGui::Selectable(none, name.empty())) choose("");
  const std::string wanted = typed.data();
  const Hardware* first = wanted.empty() ? nullptr : table.find(wanted);
  for (const Hardware& hardware : table.all()) {
    if (!hardware_matches(hardware, wanted)) continue;
    if (!first) first = &hardware;
    if (ImGui::Selectable(hardware.name.c_str(), hardware.name == name)) choose(hardware.name);
  }
  if (any_name && !wanted.empty() && ImGui::Selectable(("Use as typed: " + wanted).c_str())) choose(wanted);
  if (entered && !wanted.empty() && (first || any_name)) {
    const int devices = any_name ? device_count(wanted) : 1;
    choose(!first ? wanted : (devices > 1 ? std::to_string(devices) + "x " : "") + first->name);
  }
  ImGui::EndCombo();
  return changed;
}

}  // namespace stepladder
