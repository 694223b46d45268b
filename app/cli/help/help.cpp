// Prints what CLI11's tree of commands holds: options by their first name only, since the others are old spellings.
#include "app/cli/help/help.h"

#include <algorithm>
#include <sstream>

#include "app/cli/help/arguments.h"
#include "app/cli/subcommand.h"
#include "app/cli/table.h"

namespace stepladder {
namespace {

using Options = std::vector<const CLI::Option*>;

constexpr std::size_t widest_left = 28;  // of the column with the options' names
constexpr std::string_view statuses = "0 done, 1 failed or not there, 2 malformed command line, 130 interrupted";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool is_listed(const CLI::Option& option) {
  return !option.get_group().empty() && option.get_group() != hidden_group;
}

Options options_of(const CLI::App& command, bool positional) {
  Options found;
  for (const CLI::Option* option : command.get_options())
    if (is_listed(*option) && option->get_positional() == positional) found.push_back(option);
  return found;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> found;
  for (const CommandHelp& row : all_command_help())
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      if (command_path(*command) == row.command) found.push_back(command);
  return found;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// "-o, --out FILE"
std::string option_head(const CLI::Option& option) {
  if (option.get_positional()) return metavar(option);
  std::string head;
  if (!option.get_snames().empty()) head = "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) head += (head.empty() ? "" : ", ") + ("--" + option.get_lnames().front());
  if (!takes_value(option)) return head;
  const std::string value = metavar(option);
  return head + (option.get_items_expected_min() == 0 ? " [" + value + "]" : " " + value);
}

std::string option_default(const CLI::Option& option) {
  std::string shown = option.get_default_str();
  if (shown.find('\n') != std::string::npos) shown = Json(shown).dump();
  const bool says_so = option.get_description().find("efault") != std::string::npos;
  const bool is_nothing = (shown == "0" && option.get_group() != "Recipe") || shown == "nan" || shown == "false" ||
                          shown == "\"\"" || shown == "[]" || shown == "{}" || shown == "-1" ||
                          shown.starts_with("-nan");
  return says_so || is_nothing || !takes_value(option) ? "" : shown;
}

// What the option does, the range of its numbers, its default.
std::string option_what(const CLI::Option& option) {
  std::string what = option.get_description();
  const std::string type = option.get_type_name();
  if (const std::size_t colon = type.find(':'); colon != std::string::npos && type.find(" to ") != std::string::npos)
    what += " (" + type.substr(colon + 1) + ")";
  if (const std::string usual = option_default(option); !usual.empty()) what += " (default " + usual + ")";
  if (option.get_required() && !option.get_positional()) what += " (required)";
  return what;
}

// "COMMAND" of the usage line: what must be given, then what may be.
std::string usage_of(const CLI::App& command) {
  const std::string path = command_path(command);
  std::string usage = "stepladder" + (path.empty() ? "" : " " + path);
  for (const CLI::Option* option : options_of(command, true)) {
    if (path.empty()) continue;
    const bool several = option->get_items_expected_max() > 1;
    const std::string value = metavar(*option) + (several ? "..." : "");
    usage += option->get_required() ? " " + value : " [" + value + "]";
  }
  for (const CLI::Option* option : options_of(command, false))
    if (option->get_required()) usage += " " + option_head(*option);
  return usage + (path.empty() ? " COMMAND" : "") + " [OPTIONS]";
}

// One entry of a list: its head at the left, its text beside it, or below if the head is too long.
std::string entry(const std::string& head, const std::string& text, std::size_t left, std::size_t columns) {
  const std::size_t width = std::max<std::size_t>(columns > left + 2 ? columns - left - 2 : 0, 20);
  const std::vector<std::string> lines = wrap(text, width);
  std::string shown = "  " + head;
  bool is_beside = head.size() + 2 <= left;
  if (is_beside) shown.resize(left + 2, ' ');
  for (const std::string& line : lines) {
    if (!is_beside) shown += "\n" + std::string(left + 2, ' ');
    shown += line;
    is_beside = false;
  }
  return shown + "\n";
}

std::string paragraph(const std::string& text, std::size_t columns) {
  std::string shown;
  for (const std::string& line : wrap(text, columns)) shown += line + "\n";
  return shown;
}

std::string list_of(const std::string& title, const Options& options, std::size_t columns) {
  if (options.empty()) return {};
  std::size_t left = 0;
  for (const CLI::Option* option : options)
    if (const std::size_t size = option_head(*option).size() + 2; size <= widest_left) left = std::max(left, size);
  if (left == 0) left = 8;
  std::string text = "\n" + title + "\n";
  for (const CLI::Option* option : options) text += entry(option_head(*option), option_what(*option), left, columns);
  return text;
}

// The options in their groups, in the order in which they were declared.
std::string option_lists(const CLI::App& command, std::size_t columns) {
  std::string text = list_of("Arguments", options_of(command, true), columns);
  std::vector<std::string> groups;
  Options options = options_of(command, false);
  std::erase_if(options, [&](const CLI::Option* option) {  // listed once, below
    return option->check_lname("json") || option == command.get_help_ptr();
  });
  for (const CLI::Option* option : options)
    if (std::ranges::find(groups, option->get_group()) == groups.end()) groups.push_back(option->get_group());
  std::ranges::stable_partition(groups, [](const std::string& name) { return name == "Options"; });
  for (const std::string& group : groups) {
    Options of_group;
    std::copy_if(options.begin(), options.end(), std::back_inserter(of_group),
                 [&](const CLI::Option* option) { return option->get_group() == group; });
    text += list_of(group, of_group, columns);
  }
  return text;
}

std::string examples_text(const CommandHelp& help, std::size_t columns) {
  std::string text = "\nExamples\n";
  for (const std::string& line : lines_of(help.examples)) {
    const std::size_t tab = line.find('\t');
    text += "  stepladder " + line.substr(0, tab) + "\n";
    for (const std::string& what : wrap(line.substr(tab + 1), columns - 6)) text += "      " + what + "\n";
  }
  return text;
}

std::string commands_text(const CLI::App& app, std::size_t columns) {
  std::string text, group;
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::size_t left = 0;
  for (const CLI::App* command : commands) left = std::max(left, command->get_name().size() + 2);
  if (!commands.empty() && app.get_parent()) text += "\nCommands\n";
  for (const CLI::App* command : commands) {
    if (const CommandHelp* help = help_of(*command); !app.get_parent() && group != help->group)
      text += "\n" + (group = help->group) + "\n";
    text += entry(command->get_name(), command->get_description(), left, columns);
  }
  return text;
}

std::string roff(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  if (safe.starts_with('.') || safe.starts_with('\'')) safe = "\\&" + safe;
  return safe;
}

std::string roff_options(const CLI::App& command) {
  std::string text;
  for (const bool positional : {true, false})
    for (const CLI::Option* option : options_of(command, positional))
      if (option->get_name() != "--help")
        text += ".TP\n\\fB" + roff(option_head(*option)) + "\\fR\n" + roff(option_what(*option)) + "\n";
  return text;
}

std::string roff_command(const CLI::App& command) {
  const CommandHelp* help = help_of(command);
  std::string text = ".SS \"" + roff(usage_of(command)) + "\"\n" + roff(command.get_description()) + "\n";
  text += roff_options(command);
  if (help)
    for (const std::string& line : lines_of(help->examples)) {
      const std::size_t tab = line.find('\t');
      text += ".PP\n" + roff(line.substr(tab + 1)) + ":\n.RS 4\n.nf\nstepladder " + roff(line.substr(0, tab)) +
              "\n.fi\n.RE\n";
    }
  if (help && *help->statuses) text += ".PP\nExit status: " + roff(help->statuses) + "\n";
  for (const CLI::App* beneath : commands_of(command)) text += roff_command(*beneath);
  return text;
}

}  // namespace

std::string help_text(const CLI::App& command, std::size_t columns) {
  if (columns == 0) columns = 100;
  const CLI::App& root = root_of(command);
  const CommandHelp* help = help_of(command);
  std::string text = paragraph(command.get_description(), columns) + "\nUsage: " + usage_of(command) + "\n";
  if (!command.get_parent())
    text += "       stepladder [FILE.stepladder]\n" +
            paragraph("           opens the window; without a display, prints this help", columns);
  text += commands_text(command, columns);
  if (command.get_parent()) text += option_lists(command, columns);
  if (help) text += examples_text(*help, columns);
  text += list_of("Options of every command", options_of(root, false), columns);
  text += "\nExit status\n";
  for (const std::string& line : wrap(std::string(statuses), columns - 2)) text += "  " + line + "\n";
  if (help && *help->statuses)
    for (const std::string& line : wrap(help->statuses, columns - 2)) text += "  " + line + "\n";
  if (!command.get_parent())
    text += "\n" + paragraph("`stepladder help COMMAND` explains a command. The manual: docs/command-line.md", columns);
  return text;
}

std::string man_page(const CLI::App& app) {
  std::string text = ".TH STEPLADDER 1 \"\" \"stepladder " STEPLADDER_VERSION "\" \"\"\n.SH NAME\nstepladder \\- " +
                     roff("measures what each training optimisation buys") + "\n.SH SYNOPSIS\n\\fB" +
                     roff(usage_of(app)) + "\\fR\n.SH DESCRIPTION\n" + roff(app.get_description()) + "\n";
  text += ".SH OPTIONS OF EVERY COMMAND\n" + roff_options(app);
  std::string group;
  for (const CLI::App* command : commands_of(app)) {
    const CommandHelp* help = help_of(*command);
    if (group != help->group) text += ".SH \"" + (group = help->group) + "\"\n";
    text += roff_command(*command);
  }
  return text + ".SH EXIT STATUS\n" + roff(std::string(statuses)) + "\n";
}

std::string commands_markdown(const CLI::App& app) {
  std::string text = "| group | command | what it does |\n| --- | --- | --- |\n";
  for (const CLI::App* command : commands_of(app))
    text += "| " + std::string(help_of(*command)->group) + " | `" + command->get_name() + "` | " +
            command->get_description() + " |\n";
  return text;
}

Json help_json(const CLI::App& command) {
  Json options = Json::array(), examples = Json::array(), commands = Json::array();
  for (const bool positional : {true, false})
    for (const CLI::Option* option : options_of(command, positional)) {
      const std::string usual = option_default(*option);
      options.push_back({{"name", positional ? option->get_name(true) : option->get_name()},
                         {"value", takes_value(*option) ? Json(metavar(*option)) : Json()},
                         {"required", option->get_required()},
                         {"default", usual.empty() ? Json() : Json(usual)},
                         {"what", option->get_description()}});
    }
  const CommandHelp* help = help_of(command);
  if (help)
    for (const std::string& line : lines_of(help->examples))
      examples.push_back(
          {{"command", "stepladder " + line.substr(0, line.find('\t'))}, {"what", line.substr(line.find('\t') + 1)}});
  for (const CLI::App* beneath : commands_of(command)) commands.push_back(help_json(*beneath));
  return {{"name", command_path(command)},
          {"group", help && *help->group ? Json(help->group) : Json()},
          {"what", command.get_description()},
          {"usage", usage_of(command)},
          {"options", options},
          {"examples", examples},
          {"exit_statuses", help && *help->statuses ? Json(help->statuses) : Json()},
          {"commands", commands}};
}

}  // namespace stepladder
