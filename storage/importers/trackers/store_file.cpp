#include "storage/importers/trackers/store_file.h"

#include <utility>

namespace stepladder {
namespace {

constexpr std::size_t piece_size = 65536;

}  // namespace

StoreFile::StoreFile(std::filesystem::path path)
    : path_(std::move(path)), owned_(std::make_unique<RegularFile>(path_)), file_(*owned_) {
  if (!file_) throw ImportError(file_.why());
  head_ = read_piece();
}

StoreFile::StoreFile(const RegularFile& file, std::filesystem::path path, std::uint64_t begin)
    : path_(std::move(path)), file_(file), next_(static_cast<std::int64_t>(begin)) {
  head_ = read_piece();
}

std::string StoreFile::read_piece() {
  std::string piece = file_.read_at(next_, piece_size);
  if (piece.empty() && next_ < file_.size()) throw ImportError("could not be read to its end");
  next_ += std::ssize(piece);
  return piece;
}

std::string_view StoreFile::next() {
  if (!std::exchange(head_given_, true)) return head_;
  return following_ = read_piece();
}

}  // namespace stepladder
