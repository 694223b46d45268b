#include "app/host/held_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "app/exit_status.h"
#include "engine/files/files.h"
#include "storage/errors.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t longest_text = 64 << 20;

[[noreturn]] void refuse(const fs::path& path, const char* what) {
  const bool is_link = errno == ELOOP || errno == ENOTDIR;
  throw StorageError(path.string() + " " + what + ": " + (is_link ? "it is a link" : std::strerror(errno)));
}

}  // namespace

HeldFolder::HeldFolder(const fs::path& folder) : file_(open_private(folder / "held")) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  if (::fcntl(file_.get(), F_SETLK, &whole) != 0)
    throw UsageError(folder.parent_path().string() + " is being worked on by another stepladder");
}

bool is_held(const fs::path& folder) {
  const Descriptor place = open_own_folder(folder);
  const Descriptor file = place ? open_below(place.get(), {"held"}, O_RDONLY) : Descriptor();
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  return file && ::fcntl(file.get(), F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

fs::path experiment_folder(const fs::path& folder) {
  const fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder.parent_path(), error)) make_folder(folder.parent_path());
  if (!make_own_folder(folder)) refuse(folder, "cannot be made");
}

Descriptor open_private(const fs::path& file) {
  const Descriptor folder = open_own_folder(file.parent_path());
  if (!folder) refuse(file.parent_path(), "cannot be used");
  Descriptor opened = open_below(folder.get(), {file.filename().string()}, O_RDWR | O_CREAT);
  if (!opened) refuse(file, "cannot be opened");
  opened = own_regular(std::move(opened));
  if (!opened) throw StorageError(file.string() + " isn't a file of an experiment");
  return opened;
}

void write_whole(const fs::path& file, const std::string& text, unsigned mode) {
  OutputFile out(file, mode);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

std::optional<std::string> text_of(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  try {
    const InputFile in(file);
    if (in.size_bytes() > longest_text) throw StorageError(file.string() + " is too long to be a file of Stepladder");
    std::string text(static_cast<std::size_t>(in.size_bytes()), '\0');
    in.read(0, text.data(), in.size_bytes());
    return text;
  } catch (const DataError& failure) {
    throw StorageError(failure.what());
  }
}

}  // namespace stepladder
