#include "storage/importers/trackers/byte_stream.h"

#include <algorithm>
#include <utility>

namespace stepladder {
namespace {

constexpr std::size_t piece_size = 65536;

}  // namespace

bool ByteStream::refill() {
  piece_ = input_.next();
  return !piece_.empty();
}

std::string_view ByteStream::take(std::size_t size) {
  if (piece_.empty() && size > 0 && !refill()) return {};
  if (piece_.size() >= size) {
    const std::string_view taken = piece_.substr(0, size);
    piece_.remove_prefix(size);
    offset_ += size;
    return taken;
  }
  kept_.clear();
  do {
    const std::size_t part = std::min(size - kept_.size(), piece_.size());
    kept_.append(piece_.substr(0, part));
    piece_.remove_prefix(part);
  } while (kept_.size() < size && refill());
  offset_ += kept_.size();
  return kept_;
}

bool ByteStream::skip(std::uint64_t size) {
  while (size > 0) {
    if (piece_.empty() && !refill()) return false;
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size, piece_.size()));
    piece_.remove_prefix(part);
    offset_ += part;
    size -= part;
  }
  return true;
}

StoreFile::StoreFile(std::filesystem::path path)
    : path_(std::move(path)), owned_(std::make_unique<RegularFile>(path_)), file_(*owned_) {
  if (!file_) throw ImportError(file_.why());
  buffer_ = read_piece();
}

StoreFile::StoreFile(const RegularFile& file, std::filesystem::path path, std::uint64_t begin)
    : path_(std::move(path)), file_(file), next_(static_cast<std::int64_t>(begin)) {
  buffer_ = read_piece();
}

std::string StoreFile::read_piece() {
  std::string piece = file_.read_at(next_, piece_size);
  if (piece.empty() && next_ < file_.size()) throw ImportError("could not be read to its end");
  next_ += std::ssize(piece);
  return piece;
}

std::string_view StoreFile::next() {
  if (!std::exchange(head_given_, true)) return buffer_;
  return following_ = read_piece();
}

}  // namespace stepladder
