// Asks the freedesktop portal for a file (org.freedesktop.portal.FileChooser, in its documentation), else zenity or
// kdialog. The portal's answer is a signal to the connection that asked, so no helper program can ask; libsystemd does,
// which is opened at run time. The signal is subscribed to before the call, so that it can't be missed.
#include "app/desktop/system/file_dialog.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "app/desktop/fields.h"
#include "app/desktop/system/portal.h"
#include "app/process/run_program.h"

namespace stepladder {
namespace {

struct sd_bus;
struct sd_bus_message;
struct sd_bus_slot;
struct BusError {  // sd_bus_error
  const char* name;
  const char* message;
  int need_free;
};
using Handler = int (*)(sd_bus_message*, void*, BusError*);

// The functions of libsystemd's sd-bus that are needed here; its interface is stable.
struct Library {
  int (*open_user)(sd_bus**) = nullptr;
  sd_bus* (*flush_close_unref)(sd_bus*) = nullptr;
  int (*get_unique_name)(sd_bus*, const char**) = nullptr;
  int (*match_signal)(sd_bus*, sd_bus_slot**, const char*, const char*, const char*, const char*, Handler,
                      void*) = nullptr;
  int (*call_method)(sd_bus*, const char*, const char*, const char*, const char*, BusError*, sd_bus_message**,
                     const char*, ...) = nullptr;
  int (*process)(sd_bus*, sd_bus_message**) = nullptr;
  int (*wait)(sd_bus*, std::uint64_t) = nullptr;
  int (*read)(sd_bus_message*, const char*, ...) = nullptr;
  int (*enter)(sd_bus_message*, char, const char*) = nullptr;
  int (*exit)(sd_bus_message*) = nullptr;
  int (*skip)(sd_bus_message*, const char*) = nullptr;
  sd_bus_message* (*unref)(sd_bus_message*) = nullptr;
  void (*free_error)(BusError*) = nullptr;
  bool is_complete = false;
};

const Library& library() {
  static const Library loaded = [] {
    Library bus;
    void* handle = ::dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) handle = ::dlopen("libelogind.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return bus;
    bus.is_complete = true;
    const auto take = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      bus.is_complete = bus.is_complete && function;
    };
    take(bus.open_user, "sd_bus_open_user");
    take(bus.flush_close_unref, "sd_bus_flush_close_unref");
    take(bus.get_unique_name, "sd_bus_get_unique_name");
    take(bus.match_signal, "sd_bus_match_signal");
    take(bus.call_method, "sd_bus_call_method");
    take(bus.process, "sd_bus_process");
    take(bus.wait, "sd_bus_wait");
    take(bus.read, "sd_bus_message_read");
    take(bus.enter, "sd_bus_message_enter_container");
    take(bus.exit, "sd_bus_message_exit_container");
    take(bus.skip, "sd_bus_message_skip");
    take(bus.unref, "sd_bus_message_unref");
    take(bus.free_error, "sd_bus_error_free");
    return bus;
  }();
  return loaded;
}

constexpr const char* portal = "org.freedesktop.portal.Desktop";
constexpr const char* portal_object = "/org/freedesktop/portal/desktop";
constexpr const char* request_interface = "org.freedesktop.portal.Request";

class Connection {
 public:
  Connection() {
    if (library().open_user(&bus_) < 0) bus_ = nullptr;
  }
  ~Connection() {
    if (bus_) library().flush_close_unref(bus_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  sd_bus* get() const { return bus_; }

 private:
  sd_bus* bus_ = nullptr;
};

// The answer to a request: the signal Response(u, a{sv}), in whose results "uris" are the chosen files.
struct Response {
  bool came = false;
  FileAnswer answer;
};

int take_response(sd_bus_message* message, void* data, BusError*) {
  const Library& bus = library();
  auto& response = *static_cast<Response*>(data);
  response.came = true;
  std::uint32_t code = 1;
  if (bus.read(message, "u", &code) < 0 || code != 0) return 0;  // 1: cancelled
  if (bus.enter(message, 'a', "{sv}") < 0) return 0;
  while (bus.enter(message, 'e', "sv") > 0) {
    const char* key = nullptr;
    bus.read(message, "s", &key);
    if (key && std::string(key) == "uris" && bus.enter(message, 'v', "as") >= 0 && bus.enter(message, 'a', "s") >= 0) {
      const char* uri = nullptr;
      while (bus.read(message, "s", &uri) > 0) response.answer.paths.push_back(plain_path(uri));
      bus.exit(message);
      bus.exit(message);
    } else {
      bus.skip(message, "v");
    }
    bus.exit(message);
  }
  return 0;
}

// The object of a request is known before the request, so that its signal can't be missed.
std::string request_object(sd_bus* bus, const std::string& token) {
  const char* name = nullptr;
  if (library().get_unique_name(bus, &name) < 0 || !name) return "";
  std::string sender = name;  // ":1.42"
  sender.erase(0, 1);
  std::ranges::replace(sender, '.', '_');
  return std::string(portal_object) + "/request/" + sender + "/" + token;
}

// nullopt without a session bus, without the library, or without a portal that can choose files.
std::optional<FileAnswer> ask_portal_for_file(const FileQuestion& question, const std::atomic<bool>& cancelled) {
  const Library& bus = library();
  if (!session_bus_is_there() || !bus.is_complete) return std::nullopt;
  const Connection connection;
  if (!connection.get()) return std::nullopt;
  static std::atomic<int> requests = 0;
  const std::string token = "stepladder" + std::to_string(::getpid()) + "_" + std::to_string(++requests);
  const std::string request = request_object(connection.get(), token);
  Response response;
  if (request.empty() || bus.match_signal(connection.get(), nullptr, portal, request.c_str(), request_interface,
                                          "Response", take_response, &response) < 0)
    return std::nullopt;
  BusError error{};
  sd_bus_message* reply = nullptr;
  // parent window, title, options
  const int asked =
      bus.call_method(connection.get(), portal, portal_object, "org.freedesktop.portal.FileChooser", "OpenFile", &error,
                      &reply, "ssa{sv}", "", question.title.c_str(), 3, "handle_token", "s", token.c_str(), "multiple",
                      "b", question.kind == FileQuestion::Kind::files ? 1 : 0, "directory", "b",
                      question.kind == FileQuestion::Kind::folder ? 1 : 0);
  bus.free_error(&error);
  if (reply) bus.unref(reply);
  if (asked < 0) return std::nullopt;
  while (!response.came && !cancelled) {
    const int processed = bus.process(connection.get(), nullptr);
    if (processed < 0) return FileAnswer{.paths = {}, .problem = "The desktop's file dialog ended unexpectedly."};
    if (processed == 0) bus.wait(connection.get(), 100'000);  // microseconds
  }
  if (!response.came)
    bus.call_method(connection.get(), portal, request.c_str(), request_interface, "Close", nullptr, nullptr, "");
  return response.answer;
}

using Kind = FileQuestion::Kind;
using Words = std::vector<std::string>;

constexpr std::chrono::hours dialog_patience{24};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

Words zenity(const FileQuestion& question) {
  Words command{"zenity", "--file-selection", "--title=" + question.title};
  if (question.kind == Kind::folder) command.emplace_back("--directory");
  if (question.kind == Kind::files) {
    command.emplace_back("--multiple");
    command.emplace_back("--separator=\n");
  }
  return command;
}

Words kdialog(const FileQuestion& question) {
  Words command{"kdialog", "--title", question.title};
  if (question.kind == Kind::folder) {
    command.insert(command.end(), {"--getexistingdirectory", "."});
  } else {
    command.insert(command.end(), {"--getopenfilename", "."});
    if (question.kind == Kind::files) command.insert(command.end(), {"--multiple", "--separate-output"});
  }
  return command;
}

}  // namespace

FileAnswer ask_for_file(const FileQuestion& question, const std::atomic<bool>& cancelled) {
  if (const auto answer = ask_portal_for_file(question, cancelled)) return *answer;
  for (const Words& command : {zenity(question), kdialog(question)}) {
    const ProgramResult end = run_program(command, std::chrono::steady_clock::now() + dialog_patience, Afterwards::kill,
                                          [&] { return cancelled.load(); });
    if (!end.started) continue;
    // Both exit with 1 if the user cancels.
    return {.paths = end.succeeded() ? lines_of(end.output) : std::vector<std::string>{}, .problem = {}};
  }
  return {.paths = {},
          .problem =
              "This desktop has no dialog for files: there is no portal (xdg-desktop-portal), zenity or kdialog. "
              "Drop the file on the window instead, or type its path where there is a field for it."};
}

void open_dialog(FileDialog& dialog, FileQuestion question) {
  if (dialog.is_active()) return;
  dialog.start(
      [question = std::move(question)](const JobControl& job) { return ask_for_file(question, job.interrupted()); });
}

}  // namespace stepladder
