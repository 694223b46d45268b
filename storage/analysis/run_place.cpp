#include "storage/analysis/run_place.h"

#include <nlohmann/json.hpp>

namespace stepladder {

RunPlace place_of(const Run& run) {
  RunPlace place{.hardware = run.hardware, .device = run.device.substr(0, run.device.find(':'))};
  if (place.device == "auto") place.device.clear();  // it never started, so nobody has chosen one
  if (run.environment.find("\"host") == std::string::npos) return place;
  const nlohmann::json environment = nlohmann::json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) return place;
  if (const auto hosts = environment.find("hosts"); hosts != environment.end() && hosts->is_array())
    for (const auto& host : *hosts)
      if (host.is_string()) place.hosts.push_back(host.get<std::string>());
  if (const auto host = environment.find("host"); place.hosts.empty() && host != environment.end() && host->is_string())
    place.hosts.push_back(host->get<std::string>());
  return place;
}

std::string machine_of(const Run& run) {
  if (run.environment.find("\"machine\"") == std::string::npos) return {};
  const nlohmann::json environment = nlohmann::json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) return {};
  const auto machine = environment.find("machine");
  return machine != environment.end() && machine->is_string() ? machine->get<std::string>() : "";
}

std::string place_text(const RunPlace& place) {
  std::string text;
  for (const std::string& host : place.hosts) text += (text.empty() ? "on " : ", then on ") + host;
  if (place.hardware.empty()) return !text.empty() || place.device.empty() ? text : "on " + place.device;
  return text.empty() ? "on " + place.hardware : text + " (" + place.hardware + ")";
}

static bool are_two_machines(const RunPlace& a, const RunPlace& b) {
  const bool other_hosts = !a.hosts.empty() && !b.hosts.empty() && a.hosts != b.hosts;
  return other_hosts || (!a.hardware.empty() && !b.hardware.empty() && a.hardware != b.hardware);
}

bool are_elsewhere(const RunPlace& a, const RunPlace& b) {
  const bool other_devices = !a.device.empty() && !b.device.empty() && a.device != b.device;
  return are_two_machines(a, b) || other_devices;
}

std::string why_no_factor(std::span<const RunPlace> base, const RunPlace& run) {
  for (const RunPlace& each : base) {
    if (are_elsewhere(each, run))
      return "It was measured " + place_text(run) + " and the baseline " + place_text(each) +
             ": a factor between two " + (are_two_machines(each, run) ? "machines" : "devices") +
             " says nothing about the change.";
  }
  return {};
}

}  // namespace stepladder
