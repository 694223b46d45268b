#include "app/import/file_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t piece_size = 256 * 1024;
constexpr std::size_t head_size = 64 * 1024;
constexpr int look_again_ms = 100;  // whether a user has interrupted

}  // namespace

FileInput::FileInput(const fs::path& path, std::function<bool()> interrupted)
    : path_(path),
      owned_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)),
      descriptor_(owned_.get()),
      interrupted_(std::move(interrupted)),
      buffer_(piece_size) {
  if (!owned_) throw ImportError(std::string("cannot be opened: ") + std::strerror(errno));
}

FileInput::FileInput(int descriptor, std::function<bool()> interrupted)
    : descriptor_(descriptor), interrupted_(std::move(interrupted)), buffer_(piece_size) {}

void FileInput::wait_for_more() const {
  pollfd more{.fd = descriptor_, .events = POLLIN, .revents = 0};
  do
    if (interrupted_()) throw InputInterrupted();
  while (::poll(&more, 1, look_again_ms) <= 0);
}

// Reads at least `least` bytes, or to the end.
std::string_view FileInput::read_piece(std::size_t least) {
  filled_ = 0;
  while (filled_ < least) {
    wait_for_more();
    const ssize_t count = ::read(descriptor_, buffer_.data() + filled_, buffer_.size() - filled_);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
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

std::string_view PackedInput::head() {
  if (!bytes_) {
    first_ = next();
    first_piece_waits_ = true;
  }
  return first_.substr(0, head_size);
}

std::string_view PackedInput::next() {
  if (std::exchange(first_piece_waits_, false)) return first_;
  try {
    if (!bytes_) bytes_.emplace(path_);
    return bytes_->next();
  } catch (const TraceError& error) {
    throw ImportError(error.what());
  }
}

bool is_packed(std::string_view head) {
  return head.starts_with("\x1f\x8b");
}

}  // namespace stepladder
