#include "storage/user_folders.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace stepladder {
namespace fs = std::filesystem;

fs::path user_folder(const char* variable, const char* below_home) {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return fs::path(text ? text : "");
  };
  if (fs::path named = value(variable); named.is_absolute()) return named;  // the specification ignores relative ones
  fs::path home = value("HOME");
  if (home.empty())
    if (const passwd* user = ::getpwuid(::getuid())) home = user->pw_dir;
  return home / below_home;
}

}  // namespace stepladder
