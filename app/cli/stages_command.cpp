#include <iostream>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "engine/engine.h"

namespace stepladder {
namespace {

int list_stages(const CommonOptions& common) {
  const DeviceReport report = probe_machine();
  const std::string device = report.resolve("auto");
  Json stages = Json::array();
  std::vector<std::vector<std::string>> rows = {{"stage", "kind", "available", "what it does"}};
  for (const Stage& stage : all_stages()) {
    const std::string reason = stage.unavailable(Recipe{}, report, device).for_command_line();
    stages.push_back(stage_json(stage, reason));
    rows.push_back({stage.id, std::string(to_string(stage.kind)), reason.empty() ? "yes" : "no",
                    reason.empty() ? stage.why : reason});
  }
  if (common.json) {
    print(stages);
  } else {
    std::cout << table(rows, {false, false, false, false});
  }
  return exit_done;
}

}  // namespace

Subcommand stages_command(CLI::App& app, CommonOptions& common) {
  return {add_with_json(app, common, "stages", "List the stages, and which of them this build and device support"),
          [&common] { return list_stages(common); }};
}

}  // namespace stepladder
