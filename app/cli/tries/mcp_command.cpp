// `stepladder mcp`: the loop of `try` for programs that speak the Model Context Protocol, over stdin and stdout: one
// JSON-RPC message a line. Each call runs this program's own command line with --json, so a tool can't do more or
// answer otherwise than the command does.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <list>
#include <memory>
#include <string_view>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/process/awaited_program.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_message = 4 << 20;
constexpr int look_again_ms = 20;  // at programs that run
constexpr const char* known_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};  // newest first

enum RpcError { parse_error = -32700, bad_request = -32600, no_such_method = -32601, bad_parameters = -32602 };

struct BadParameters : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A parameter of a tool: as the option of the same name with "-", unless it is the folder, the command or a run.
struct Parameter {
  const char* name;
  const char* type;  // of JSON; "array" is of texts
  const char* what;
  bool is_required = false;
};

struct Tool {
  const char* name;
  const char* what;
  std::vector<std::string> command;
  std::vector<Parameter> parameters;
};

const Parameter in_folder{"folder", "string", "Folder of the git checkout; default: where the server was started"};

const std::vector<Tool>& tools() {
  static const std::vector<Tool> all = {
      {"status",
       "Where the series of tries of a checkout is: kept try, noise, verdicts, runs left",
       {"try", "status"},
       {in_folder}},
      {"begin",
       "Begins a series of tries: runs the unchanged checkout a few times and measures the noise. May take long.",
       {"try", "begin"},
       {in_folder,
        {"command", "array", "Words of the command that trains and prints its figures: [\"python\", \"train.py\"]",
         true},
        {"metric", "string", "What counts, as the output names it: val_bpb; default: the throughput"},
        {"lower", "boolean", "Lower values of the metric are better"},
        {"higher", "boolean", "Higher values of the metric are better"},
        {"also", "array", "Figures that may give way by so much: memory_mb=2%"},
        {"seal", "array", "Files or folders that no change may touch"},
        {"runs", "integer", "Runs of the unchanged state; default 6"},
        {"budget_runs", "integer", "Most runs of the whole series"},
        {"budget_time", "string", "Longest time of the whole series: 8h"},
        {"holdout", "string", "Shell command that prints the metric on held-out data; runs at the end only"},
        {"strict", "boolean", "No false keep in the whole series, with 95 %"},
        {"on", "string", "Machine of the project to do all runs on"},
        {"there", "string", "Folder of that machine with what git ignores here"}}},
      {"try",
       "Judges the checkout as it is now against what was kept last. May take long. exit_status: 0 kept, 10 worse, 11 "
       "cannot tell, 12 implausible or sealed, 13 a guard gave way, 14 the command failed. Only 0 is a gain.",
       {"try"},
       {in_folder,
        {"message", "string", "What was changed", true},
        {"revert_if_dropped", "boolean", "Take the change back unless it is kept"},
        {"commit", "boolean", "Commit the checkout if the change is kept"}}},
      {"log", "All tries of the series with message, verdict, difference and interval", {"try", "log"}, {in_folder}},
      {"query",
       "Runs of the project. filter: as in `stepladder runs --filter`, such as \"status=finished lr=1e-4,3e-4\"",
       {"runs"},
       {{"filter", "string", "Conditions"},
        {"columns", "string", "Fields: id,name,tokens_per_s,trust"},
        {"sort", "string", "Field to sort by"},
        {"limit", "integer", "At most so many; the newest"}}},
  };
  return all;
}

Json schema_of(const Tool& tool) {
  Json properties = Json::object(), required = Json::array();
  for (const Parameter& each : tool.parameters) {
    Json& schema = properties[each.name] = {{"type", each.type}, {"description", each.what}};
    if (std::string_view(each.type) == "array") schema["items"] = {{"type", "string"}};
    if (each.is_required) required.push_back(each.name);
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}};
}

std::string checked_text(const Json& value, const std::string& name) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty() ||
      value.get_ref<const std::string&>().find('\0') != std::string::npos)
    throw BadParameters(name + " isn't a text");
  return value.get<std::string>();
}

// The words of the command line that a call asks for. A value is never a word of its own, so none becomes an option.
std::vector<std::string> words_of_call(const Tool& tool, const Json& arguments, std::string& folder) {
  for (const auto& [name, value] : arguments.items())
    if (std::ranges::none_of(tool.parameters, [&](const Parameter& it) { return name == it.name; }))
      throw BadParameters(std::string(tool.name) + " has no parameter " + name);
  std::vector<std::string> words = tool.command, after = {"--"};
  words.emplace_back("--json");
  for (const Parameter& each : tool.parameters) {
    const std::string name = each.name, type = each.type;
    if (!arguments.contains(name) || arguments[name].is_null()) {
      if (each.is_required) throw BadParameters(std::string(tool.name) + " needs " + name);
      continue;
    }
    const Json& value = arguments[name];
    std::string option = "--" + name;
    std::ranges::replace(option, '_', '-');
    if (name == "folder") {
      folder = checked_text(value, name);
    } else if (type == "boolean") {
      if (!value.is_boolean()) throw BadParameters(name + " isn't true or false");
      if (value.get<bool>()) words.push_back(option);
    } else if (type == "integer") {
      if (!value.is_number_integer()) throw BadParameters(name + " isn't a whole number");
      words.push_back(option + "=" + value.dump());
    } else if (type == "array") {
      if (!value.is_array()) throw BadParameters(name + " isn't a list of texts");
      for (const Json& word : value)
        if (name == "command")
          after.push_back(checked_text(word, name));
        else
          words.push_back(option + "=" + checked_text(word, name));
    } else {
      words.push_back(option + "=" + checked_text(value, name));
    }
  }
  if (after.size() > 1) words.insert(words.end(), after.begin(), after.end());
  return words;
}

class McpServer {
 public:
  explicit McpServer(const CommonOptions& common) : database_(common.database) {}

  // Until stdin ends and what it asked for is answered. Calls that run when nobody reads any more, or at a signal, are
  // interrupted, as by Ctrl-C.
  int serve() {
    std::string input;
    bool has_ended = false;  // stdin
    while (!has_ended || !calls_.empty()) {
      pollfd ends[] = {{.fd = STDOUT_FILENO, .events = 0, .revents = 0},
                       {.fd = has_ended ? -1 : STDIN_FILENO, .events = POLLIN, .revents = 0}};
      ::poll(ends, std::size(ends), calls_.empty() ? -1 : look_again_ms);
      if (interrupted() || ends[0].revents != 0) break;
      if (ends[1].revents != 0) {
        char piece[64 << 10];
        const ssize_t count = ::read(STDIN_FILENO, piece, sizeof piece);
        has_ended = count == 0 || (count < 0 && errno != EINTR);
        if (count > 0) input.append(piece, std::size_t(count));
        if (has_ended) input += '\n';
        take_lines(input);
        if (input.size() > longest_message) throw UsageError("a message is longer than 4 MiB");
      }
      answer_ended();
    }
    for (Call& call : calls_) call.program->process().kill(SIGINT);
    for (Call& call : calls_) call.program->process().wait(std::chrono::seconds(15));
    return exit_done;
  }

 private:
  struct Call {
    Json id;
    std::unique_ptr<AwaitedProgram> program;
    bool is_cancelled = false;
  };

  static void send(const Json& message) { print_line(message, std::cout), std::cout.flush(); }
  static void answer(const Json& id, const Json& result) { send({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}); }
  static void refuse(const Json& id, RpcError code, const std::string& why) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", int(code)}, {"message", why}}}});
  }

  void take_lines(std::string& input) {
    std::size_t begin = 0;
    for (std::size_t end; (end = input.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = input.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != std::string::npos) take(line);
    }
    input.erase(0, begin);
  }

  void take(const std::string& line) {
    const Json message = nests_deep(line) ? Json() : Json::parse(line, nullptr, false);
    if (message.is_discarded() || message.is_null()) return refuse(nullptr, parse_error, "not JSON");
    const auto text = [&](const char* name) {
      return message.is_object() && message.contains(name) && message[name].is_string()
                 ? message[name].get<std::string>()
                 : "";
    };
    const std::string method = text("method");
    if (method.empty()) {
      if (!message.is_object() || !(message.contains("result") || message.contains("error")))
        refuse(nullptr, bad_request, "not a request of JSON-RPC 2.0");
      return;  // an answer; this side asks nothing
    }
    const Json parameters =
        message.contains("params") && message["params"].is_object() ? message["params"] : Json::object();
    if (!message.contains("id")) return take_notification(method, parameters);
    const Json& id = message["id"];
    try {
      take_request(id, method, parameters);
    } catch (const BadParameters& error) {
      refuse(id, bad_parameters, error.what());
    } catch (const Json::exception&) {
      refuse(id, bad_parameters, "a parameter has the wrong type");
    } catch (const std::system_error& error) {
      answer(id, {{"content", {{{"type", "text"}, {"text", error.what()}}}}, {"isError", true}});
    }
  }

  void take_notification(const std::string& method, const Json& parameters) {
    if (method != "notifications/cancelled" || !parameters.contains("requestId")) return;
    for (Call& call : calls_)
      if (call.id == parameters["requestId"]) {
        call.is_cancelled = true;
        call.program->process().kill(SIGINT);
      }
  }

  void take_request(const Json& id, const std::string& method, const Json& parameters) {
    if (method == "initialize") {
      const std::string asked = parameters.value("protocolVersion", "");
      const bool is_known = std::ranges::find(known_versions, asked) != std::end(known_versions);
      return answer(id, {{"protocolVersion", is_known ? asked : std::string(known_versions[0])},
                         {"capabilities", {{"tools", Json::object()}}},
                         {"serverInfo", {{"name", "stepladder"}, {"version", STEPLADDER_VERSION}}},
                         {"instructions",
                          "begin once, then change the checkout and call try. Keep a change only if exit_status is 0; "
                          "otherwise set revert_if_dropped. `stepladder help skill` says more."}});
    }
    if (method == "ping") return answer(id, Json::object());
    if (method == "tools/list") {
      Json list = Json::array();
      for (const Tool& tool : tools())
        list.push_back({{"name", tool.name}, {"description", tool.what}, {"inputSchema", schema_of(tool)}});
      return answer(id, {{"tools", list}});
    }
    if (method != "tools/call") return refuse(id, no_such_method, "there is no method " + method);
    const Json name = parameters.value("name", Json());
    const Json arguments = parameters.value("arguments", Json::object());
    for (const Tool& tool : tools())
      if (name == tool.name) {
        if (!arguments.is_object()) throw BadParameters("the arguments aren't an object");
        return start(id, tool, arguments);
      }
    throw BadParameters("there is no tool of this name");
  }

  void start(const Json& id, const Tool& tool, const Json& arguments) {
    std::string folder;
    std::vector<std::string> command = {"stepladder", "--db", std::filesystem::absolute(database_).string()};
    const std::vector<std::string> words = words_of_call(tool, arguments, folder);
    command.insert(command.end(), words.begin(), words.end());
    calls_.push_back(
        {.id = id,
         .program = std::make_unique<AwaitedProgram>(Launch{
             .command = command, .program = "/proc/self/exe", .folder = folder, .group = Launch::Group::session})});
  }

  void answer_ended() {
    for (auto call = calls_.begin(); call != calls_.end();) {
      Process& process = call->program->process();
      if (!process.has_ended()) {
        ++call;
        continue;
      }
      if (!call->is_cancelled) answer(call->id, result_of(*call->program));
      call = calls_.erase(call);
    }
  }

  // What the command printed; without it the error that it ended with.
  static Json result_of(AwaitedProgram& program) {
    const int status = program.process().exit_status();
    const std::string output = program.output(), errors = program.errors();
    Json printed = Json::parse(output, nullptr, false);
    const bool is_error = printed.is_discarded();
    if (is_error) {
      const std::size_t last = errors.find_last_not_of('\n');
      const std::size_t begin = last == std::string::npos ? 0 : errors.rfind('\n', last) + 1;
      const std::string line = last == std::string::npos ? "" : errors.substr(begin, last + 1 - begin);
      printed = Json::parse(line, nullptr, false);
      if (printed.is_discarded()) printed = {{"error", {{"message", line}}}};
    }
    const Json result = {{"exit_status", status}, {"result", std::move(printed)}};
    return {{"content", {{{"type", "text"}, {"text", result.dump(-1, ' ', false, Json::error_handler_t::replace)}}}},
            {"structuredContent", result},
            {"isError", is_error}};
  }

  const std::filesystem::path database_;
  std::list<Call> calls_;
};

}  // namespace

Subcommand mcp_command(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand("mcp", "Serve status, begin, try, log and query over stdin (MCP)");
  return {command, [&common] { return McpServer(common).serve(); }};
}

}  // namespace stepladder
