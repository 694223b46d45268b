#include "app/desktop/system/open_file.h"

#include <array>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "app/desktop/system/portal.h"
#include "app/process/run_program.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds start_patience{3};

#ifdef __APPLE__
constexpr const char* opener = "open";
#else
constexpr const char* opener = "xdg-open";
#endif

std::string first_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

void open_with_desktop(const std::filesystem::path& path) {
  const ProgramResult end = run_program({opener, path.string()}, Clock::now() + start_patience, Afterwards::leave);
  if (!end.started)
    throw std::runtime_error(path.string() + " cannot be opened from here: " + opener + " isn't installed.");
  if (!end.ended || end.status == 0) return;  // a viewer may run until it is closed
  const std::string reason = first_line(end.errors);
  throw std::runtime_error(
      path.string() + " could not be opened: " + opener + " " +
      (reason.empty() ? "failed with exit status " + std::to_string(end.status) : "says: " + reason) +
      (end.status == 3 ? ". The desktop has no program for it." : "."));
}

}  // namespace

std::string file_uri(const std::filesystem::path& file) {
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(file).string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~') {
      uri += c;
    } else {
      std::array<char, 4> code{};
      std::snprintf(code.data(), code.size(), "%%%02X", byte);
      uri += code.data();
    }
  }
  return uri;
}

void open_file(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) throw std::runtime_error(file.string() + " isn't there any more.");
  open_with_desktop(file);
}

void show_in_folder(const std::filesystem::path& file) {
  const std::string name = "org.freedesktop.FileManager1";
  const std::string place = "/org/freedesktop/FileManager1";
  const std::string uri = file_uri(file);
  if (!std::filesystem::exists(file)) throw std::runtime_error(file.string() + " isn't there any more.");
  if (session_bus_is_there()) {
    const Clock::time_point deadline = Clock::now() + start_patience;
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"gdbus", "call", "--session", "--dest", name, "--object-path", place, "--method",
                                   name + ".ShowItems", "['" + uri + "']", ""},
          std::vector<std::string>{"busctl", "--user", "call", name, place, name, "ShowItems", "ass", "1", uri, ""},
          std::vector<std::string>{"dbus-send", "--session", "--print-reply", "--dest=" + name, place,
                                   name + ".ShowItems", "array:string:" + uri, "string:"}})
      if (run_program(command, deadline).succeeded()) return;
  }
  open_with_desktop(file.parent_path());
}

}  // namespace stepladder
