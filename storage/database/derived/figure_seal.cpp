// The key is made at first use and read once by each process.
#include "storage/database/derived/figure_seal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "storage/own_folder.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t key_bytes = 16;

std::string random_key() {
  std::random_device device;
  std::string key;
  while (key.size() < key_bytes) key += static_cast<char>(device() & 0xFF);
  return key;
}

std::string read_key(const fs::path& folder, const fs::path& name) {
  const Descriptor file = open_own_file(folder, name, O_RDONLY);
  return file ? read_at(file.get(), 0, key_bytes) : std::string();
}

// The user's key; of a home that can't be written one of this process.
std::string user_key() {
  const fs::path folder = user_folder("XDG_STATE_HOME", ".local/state") / "stepladder";
  const char* const name = "figures.key";
  if (std::string key = read_key(folder, name); key.size() == key_bytes) return key;
  std::string key = random_key();
  make_private_folders(folder.parent_path());
  if (!make_own_folder(folder)) return key;
  const fs::path part = "figures.key." + std::to_string(::getpid());
  {
    const Descriptor file = open_own_file(folder, part, O_WRONLY | O_CREAT | O_EXCL);
    if (!file || !write_at(file.get(), 0, key)) return key;
  }
  name_new_file(folder / part, folder / name);  // unless another process was faster
  std::error_code gone;
  fs::remove(folder / part, gone);
  std::string kept = read_key(folder, name);
  return kept.size() == key_bytes ? kept : key;
}

std::uint64_t word_at(std::string_view bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

}  // namespace

SealedContent& SealedContent::add(std::int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

SealedContent& SealedContent::add(std::string_view text) {
  bytes_ += text;
  return add(std::ssize(text));
}

SealedContent& SealedContent::add(double value) {
  return add(std::bit_cast<std::int64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value + 0.0));
}

std::uint64_t keyed_hash(std::string_view key, std::string_view bytes) {
  const std::uint64_t k0 = word_at(key, 0), k1 = word_at(key, 8);
  std::array<std::uint64_t, 4> v{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                                 k1 ^ 0x7465646279746573};
  const auto round = [&] {
    v[0] += v[1], v[1] = std::rotl(v[1], 13) ^ v[0], v[0] = std::rotl(v[0], 32);
    v[2] += v[3], v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = std::rotl(v[1], 17) ^ v[2], v[2] = std::rotl(v[2], 32);
  };
  const auto take = [&](std::uint64_t word) {
    v[3] ^= word;
    round();
    round();
    v[0] ^= word;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) take(word_at(bytes, at));
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  if (at < bytes.size()) std::memcpy(&last, bytes.data() + at, bytes.size() - at);  // the size is in the top byte
  take(last);
  v[2] ^= 0xFF;
  for (int i = 0; i < 4; ++i) round();
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

std::int64_t FigureSeal::of(const SealedContent& content) {
  static const std::string key = user_key();
  return static_cast<std::int64_t>(keyed_hash(key, content.bytes()) >> (64 - bits)) | 1;
}

std::int64_t FigureSeal::here(const SealedContent& content) {
  if (!file_) {
    struct stat status = {};
    const bool has_file = !database_.file().empty() && ::stat(database_.file().c_str(), &status) == 0;
    file_ = SealedContent("").add(static_cast<std::int64_t>(has_file ? status.st_ino : 0)).bytes();
  }
  return of(SealedContent(*file_).add(content.bytes()));
}

}  // namespace stepladder
