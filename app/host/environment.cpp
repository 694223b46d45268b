#include "app/host/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/host/git.h"
#include "app/text/secrets.h"

namespace stepladder {
namespace {

std::string command_line;

nlohmann::json git_state() {
  try {
    const GitCheckout here(std::filesystem::current_path(), std::chrono::seconds(10));
    return {
        {"commit", first_line(here.git({"rev-parse", "HEAD"}))},
        {"branch", first_line(here.git({"rev-parse", "--abbrev-ref", "HEAD"}))},
        {"dirty", !here.git({"status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"}).empty()}};
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::string describe_environment(const nlohmann::json& git) {
  utsname system{};
  uname(&system);
  std::error_code ignored;
  return nlohmann::json{{"program", std::string("stepladder ") + STEPLADDER_VERSION},
                        {"command_line", command_line},
                        {"folder", std::filesystem::current_path(ignored).string()},
                        {"host", system.nodename},
                        {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
                        {"compiler", __VERSION__},
                        {"git", git}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::filesystem::path assets_folder() {
  if (const char* given = std::getenv("STEPLADDER_ASSETS"); given && *given) return given;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (error ? std::filesystem::current_path() : program.parent_path()) / "assets";
}

bool display_is_there() {
#ifdef __linux__
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
#else
  return true;
#endif
}

void remember_command_line(int argc, char** argv) {
  command_line = without_secrets({argv, argv + argc});
}

std::string continued_environment(const std::string& before) {
  nlohmann::json environment = nlohmann::json::parse(before, nullptr, false);
  if (!environment.is_object() || !environment.contains("host")) return before;
  nlohmann::json hosts = environment.value("hosts", nlohmann::json::array({environment["host"]}));
  const nlohmann::json here = nlohmann::json::parse(environment_json())["host"];
  if (!hosts.is_array() || hosts.empty() || hosts.back() == here) return before;
  hosts.push_back(here);
  environment["hosts"] = std::move(hosts);
  return environment.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string environment_of(const std::string& commit, bool is_dirty) {
  return describe_environment(commit.empty() ? nlohmann::json()
                                             : nlohmann::json{{"commit", commit}, {"dirty", is_dirty}});
}

std::string environment_at(const std::string& machine, const std::string& host, const std::string& commit,
                           bool is_dirty) {
  nlohmann::json environment = nlohmann::json::parse(environment_of(commit, is_dirty));
  for (const char* ours : {"folder", "system", "compiler"}) environment.erase(ours);
  environment["host"] = host;
  environment["machine"] = machine;
  return environment.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string this_host() {
  utsname system{};
  ::uname(&system);
  return system.nodename;
}

const std::string& environment_json() {
  static const std::string json = describe_environment(git_state());
  return json;
}

}  // namespace stepladder
