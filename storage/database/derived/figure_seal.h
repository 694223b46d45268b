// Marks cached figures as this user's own. Project files are passed on, and a stranger may have written anything into
// their caches; a figure is believed only with the seal that this user's key gives it, else it is computed from the
// steps again. The key is $XDG_STATE_HOME/stepladder/figures.key (else below ~/.local/state), which only this user may
// read; without one, figures that other processes cached aren't believed. Inside storage/ only.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/database/database.h"

namespace stepladder {

// The content of a cached row, in the order of its columns.
class SealedContent {
 public:
  explicit SealedContent(std::string_view table) : bytes_(table) {}
  SealedContent& add(std::int64_t value);
  SealedContent& add(std::string_view text);
  // Every NaN is one, since SQLite keeps none, and so are both zeros.
  SealedContent& add(double value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// SipHash-2-4 (Aumasson and Bernstein 2012) of 16 bytes of key.
std::uint64_t keyed_hash(std::string_view key, std::string_view bytes);

// Of one project. One thread, as Database.
class FigureSeal {
 public:
  static constexpr int bits = 60;

  explicit FigureSeal(Database& database) : database_(database) {}

  // Never 0. `here` holds for this file where it is: a copy, which a stranger may have changed, has another.
  std::int64_t of(const SealedContent& content);
  std::int64_t here(const SealedContent& content);

 private:
  Database& database_;
  std::optional<std::string> file_;  // its inode, as bytes
};

}  // namespace stepladder
