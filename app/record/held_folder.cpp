#include "app/record/held_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <span>

#include "app/exit_status.h"
#include "engine/files/files.h"
#include "storage/errors.h"

namespace stepladder {

HeldFolder::HeldFolder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "held";
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw StorageError(file.string() + " cannot be made");
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  if (::fcntl(descriptor_, F_SETLK, &whole) == 0) return;
  ::close(descriptor_);
  throw UsageError(folder.parent_path().string() + " is being worked on by another stepladder");
}

HeldFolder::~HeldFolder() {
  ::close(descriptor_);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw StorageError(folder.string() + " cannot be made: " + error.message());
}

void write_whole(const std::filesystem::path& file, const std::string& text) {
  OutputFile out(file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
  sync_folder(file.parent_path());
}

}  // namespace stepladder
