#include "app/text/unstored_text.h"

#include <array>
#include <ctime>

#include "app/text/format.h"

namespace stepladder {
namespace {

std::string clock_text(double unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm local{};
  localtime_r(&time, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

}  // namespace

std::string unstored_text(const Unstored& unstored) {
  if (unstored.why.empty()) return {};
  const std::string what =
      unstored.steps == 0 ? "The end of a run waits" : plural(unstored.steps, "step waits", "steps wait");
  const std::string lost =
      unstored.refused == 0 ? "" : " " + grouped(unstored.refused) + " more are lost, since memory and disk were full.";
  return what + " to be stored since " + clock_text(unstored.since) + ": " + harmless(unstored.why) + "." + lost;
}

}  // namespace stepladder
