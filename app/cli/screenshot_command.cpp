#include <cstdio>
#include <memory>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

struct ScreenshotOptions {
  ScreenshotRequest request;
  std::string size = "1600x900";
  std::string theme = "dark";
};

int screenshot(ScreenshotOptions& options, const CommonOptions& common) {
  if (!common.screenshot) throw UsageError("this build has no desktop, so it cannot take screenshots");
  ScreenshotRequest& request = options.request;
  if (request.view.empty() && request.saved_view.empty()) throw UsageError("screenshot needs --view or --saved-view");
  char end = 0;
  if (std::sscanf(options.size.c_str(), "%dx%d%c", &request.width, &request.height, &end) != 2 || request.width < 320 ||
      request.height < 240 || request.width > 8192 || request.height > 8192)
    throw UsageError("--size: '" + options.size + "' is not WIDTHxHEIGHT between 320x240 and 8192x8192");
  if (request.view == "advisor") request.view = "profile";  // whose What next answers what the Advisor did
  request.dark = options.theme == "dark";
  request.database = common.database;
  keep_off_database(request.out, request.database);
  if (const std::string ending = lower_case(request.out.extension().string()); !ending.empty() && ending != ".png")
    throw UsageError("--out: " + request.out.string() + " doesn't end in .png, which the picture is");
  open_to_list(common);  // throws if --db names a file that isn't there
  const std::string out = request.out.string();
  const int status = common.screenshot(request);
  if (status == exit_done && common.json)
    print({{"file", out}, {"width", request.width}, {"height", request.height}, {"view", request.view}});
  return status;
}

}  // namespace

Subcommand screenshot_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ScreenshotOptions>();
  CLI::App* command = add_with_json(app, common, "screenshot", "Save a picture of a view; needs no display");
  command->add_option("--view", options->request.view, "The view; advisor is profile by its old name")
      ->check(one_of({"launch", "live", "ladder", "compare", "history", "run", "profile", "mfu", "tries", "record",
                      "advisor", "import", "machines"}));
  command->add_option("--saved-view", options->request.saved_view,
                      "A view that was saved by name; with --view, that part of it alone");
  command->add_option("-o,--out,--output", options->request.out, "PNG file to write")->required();
  command->add_option("--size", options->size, "WIDTHxHEIGHT in pixels (default 1600x900)");
  command
      ->add_option("--scale", options->request.scale,
                   "Scale of text and marks (default: 1, and more than that above 2560x1440)")
      ->type_name("FACTOR")
      ->check(between(0.5, 4));
  command->add_option("--theme", options->theme, "dark or light (default dark)")->check(one_of({"dark", "light"}));
  return {command, [options, &common] { return screenshot(*options, common); }};
}

}  // namespace stepladder
