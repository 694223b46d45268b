#include "app/desktop/system/portal.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "app/process/run_program.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds patience{1000};

const std::string bus_name = "org.freedesktop.portal.Desktop";
const std::string object = "/org/freedesktop/portal/desktop";
const std::string interface = "org.freedesktop.portal.Settings";
const std::string space = "org.freedesktop.appearance";
const std::string scheme_key = "color-scheme";

// "(<<uint32 1>>,)", "v v u 1", "... uint32 1": the last number; -1 if there isn't one.
int last_number(const std::string& text) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto digit = std::find_if(text.rbegin(), text.rend(), is_digit);
  return digit == text.rend() ? -1 : *digit - '0';
}

}  // namespace

bool session_bus_is_there() {
  if (const char* address = std::getenv("DBUS_SESSION_BUS_ADDRESS"); address && *address) return true;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  return runtime && *runtime && std::filesystem::exists(std::filesystem::path(runtime) / "bus", error);
}

std::optional<bool> portal_prefers_dark() {
  if (!session_bus_is_there()) return std::nullopt;
  const Clock::time_point deadline = Clock::now() + patience;
  for (const Words& command : {
           Words{"gdbus", "call", "--session", "--dest", bus_name, "--object-path", object, "--method",
                 interface + ".Read", space, scheme_key},
           Words{"busctl", "--user", "call", bus_name, object, interface, "Read", "ss", space, scheme_key},
           Words{"dbus-send", "--session", "--print-reply", "--dest=" + bus_name, object, interface + ".Read",
                 "string:" + space, "string:" + scheme_key},
       }) {
    const ProgramResult answer = run_program(command, deadline);
    if (!answer.succeeded()) continue;
    // 0: no preference, 1: dark, 2: light; the portal's specification treats any other as 0.
    const int scheme = last_number(answer.output);
    return scheme == 1 || scheme == 2 ? std::optional(scheme == 1) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stepladder
