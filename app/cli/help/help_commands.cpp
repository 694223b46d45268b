// `stepladder help`, `version`, `completion`, `complete` (what the completion scripts call) and `skill`.
#include <fstream>
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/help/arguments.h"
#include "app/cli/help/help.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "engine/open_trainer.h"
#include "parts.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

struct HelpOptions {
  std::vector<std::string> command;
  std::string format = "text";
};

int print_text(const std::string& text, const CommonOptions& common) {
  if (common.json)
    print({{"text", text}});
  else
    std::cout << text;
  return exit_done;
}

int help(const CLI::App& app, const HelpOptions& options, const CommonOptions& common) {
  std::vector<std::string> words = respelled(app, options.command);
  std::erase_if(words, [](const std::string& word) { return word.starts_with('-'); });  // train --resume
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const CLI::App* beneath = command_named(*command, {word});
    if (!beneath) refuse_command(*command, word);
    command = beneath;
  }
  if (common.json) {
    print(help_json(*command));
    return exit_done;
  }
  std::cout << (options.format == "man"  ? man_page(app)
                : options.format == "md" ? commands_markdown(app)
                                         : help_text(*command, terminal_columns()));
  return exit_done;
}

int skill(const CommonOptions& common) {
  const std::filesystem::path file = assets_folder() / "SKILL.md";
  std::ifstream in(file, std::ios::binary);
  if (!in) throw StorageError(file.string() + " cannot be read");
  return print_text({std::istreambuf_iterator<char>(in), {}}, common);
}

}  // namespace

int print_version(const CommonOptions& common) {  // also for --version, parsed before --json
  const Json parts = Json::parse(STEPLADDER_PARTS);
  const std::string trainer = missing_trainer().empty() ? trainer_torch_version() : "";
  if (errors_are_json()) {
    print({{"version", STEPLADDER_VERSION},
           {"commit", text_or_null(common.commit)},
           {"parts", parts},
           {"libtorch", text_or_null(trainer)}});
    return exit_done;
  }
  std::string text =
      "stepladder " STEPLADDER_VERSION + (common.commit.empty() ? "" : " (" + common.commit + ")") + "\n";
  for (const auto& [name, version] : parts.items()) text += name + " " + version.get<std::string>() + "\n";
  text += trainer.empty() ? "no trainer\n" : "LibTorch " + trainer + ", to train\n";
  text += "By itself it connects to nothing but the machines that you add.\n";
  return print_text(text, common);
}

Subcommand help_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<HelpOptions>();
  CLI::App* command = add_with_json(app, common, "help", "Explain a command");
  command->add_option("command", options->command, "The command, such as ladder or record gate");
  command->add_option("--format", options->format, "man: the manual page; md: the table of commands")
      ->check(one_of({"text", "man", "md"}));
  return {command, [&app, options, &common] { return help(app, *options, common); }};
}

Subcommand version_command(CLI::App& app, CommonOptions& common) {
  CLI::App* command = add_with_json(app, common, "version", "Print the version");
  command->group("");
  return {command, [&common] { return print_version(common); }};
}

Subcommand completion_command(CLI::App& app, CommonOptions& common) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = add_with_json(app, common, "completion", "Print a shell's completion script");
  command->add_option("shell", *shell, "The shell")->required()->check(one_of({"bash", "zsh", "fish"}));
  return {command, [shell, &common] { return print_text(completion_script(*shell), common); }};
}

Subcommand complete_command(CLI::App& app, CommonOptions& common) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_with_json(app, common, "complete", "What a shell offers for the last of these words");
  command->group("");
  command->add_option("words", *words, "The words after the program, after --");
  return {command, [&app, words, &common] {
            for (const std::string& line : completions(app, *words, common.database)) std::cout << line << "\n";
            return +exit_done;
          }};
}

Subcommand skill_command(CLI::App& app, CommonOptions& common) {
  CLI::App* command = add_with_json(app, common, "skill", "Print SKILL.md, which tells a program how to use this one");
  return {command, [&common] { return skill(common); }};
}

}  // namespace stepladder
