#include "app/import/file_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t piece_size = 256 * 1024;
constexpr std::size_t head_size = 64 * 1024;

}  // namespace

FileInput::FileInput(const fs::path& path) : path_(path), owned_(true), buffer_(piece_size) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw ImportError(std::string("cannot be opened: ") + std::strerror(errno));
}

FileInput::FileInput(int descriptor) : descriptor_(descriptor), owned_(false), buffer_(piece_size) {}

FileInput::~FileInput() {
  if (owned_) ::close(descriptor_);
}

// Reads at least `least` bytes, or to the end.
std::string_view FileInput::read_piece(std::size_t least) {
  filled_ = 0;
  while (filled_ < least) {
    const ssize_t count = ::read(descriptor_, buffer_.data() + filled_, buffer_.size() - filled_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw ImportError(std::string("cannot be read: ") + std::strerror(errno));
    if (count == 0) break;
    filled_ += static_cast<std::size_t>(count);
  }
  return {buffer_.data(), filled_};
}

std::string_view FileInput::head() {
  if (!head_read_) {
    head_ = read_piece(head_size).substr(0, head_size);
    head_read_ = first_piece_waits_ = true;
  }
  return head_;
}

std::string_view FileInput::next() {
  if (std::exchange(first_piece_waits_, false)) return {buffer_.data(), filled_};
  return read_piece(1);
}

}  // namespace stepladder
