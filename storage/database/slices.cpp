#include "storage/database/slices.h"

#include <chrono>
#include <thread>

namespace stepladder {
namespace {

using namespace std::chrono_literals;
using SliceClock = std::chrono::steady_clock;

constexpr auto slice_work = 30ms;  // the commit adds to it, which waits for the disk
constexpr auto slice_gap = 4ms;    // waiting connections ask every 1 to 2 ms

bool write_slice(Database& database, const std::function<bool()>& piece) {
  Transaction transaction(database);
  const auto until = SliceClock::now() + slice_work;
  bool more = true;
  while (more && SliceClock::now() < until) more = piece();
  transaction.commit();
  return more;
}

}  // namespace

void in_slices(Database& database, const std::function<bool()>& piece) {
  if (database.in_transaction() || database.file().empty()) {
    Transaction transaction(database);
    while (piece()) {
    }
    return transaction.commit();
  }
  for (bool more = true; more;) {
    const auto begun = SliceClock::now();
    more = write_slice(database, piece);
    // Pauses also after the last one, since the caller may continue with more of the same.
    if (SliceClock::now() - begun > slice_gap) std::this_thread::sleep_for(slice_gap);
  }
}

}  // namespace stepladder
