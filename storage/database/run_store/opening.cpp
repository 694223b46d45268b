// How a file is opened, and the parts that have a class of their own.
#include <cstdlib>
#include <memory>
#include <utility>

#include "storage/damaged_file.h"
#include "storage/database/rescue/write_ahead_log.h"
#include "storage/database/run_store/run_store_impl.h"
#include "storage/database/schema.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// SQLite would drop committed transactions without a word.
const fs::path& with_sound_log(const fs::path& file) {
  const std::string damage = damage_of_write_ahead_log(file);
  if (!damage.empty()) throw DamagedFile(file, damage);
  return file;
}

}  // namespace

RunStore::Impl::Impl(Database::InMemory in_memory) : database(in_memory) {
  prepare_schema(database);
}

RunStore::Impl::Impl(const fs::path& file, Mode mode)
    : database(with_sound_log(file), mode == Mode::read_only ? Database::Mode::read_only : Database::Mode::read_write) {
  prepare_schema(database);
}

RunStore::RunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore& RunStore::operator=(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

RunStore RunStore::open(const fs::path& file, Mode mode) {
  return RunStore(std::make_unique<Impl>(file, mode));
}

RunStore RunStore::in_memory() {
  return RunStore(std::make_unique<Impl>(Database::InMemory()));
}

ViewStore& RunStore::views() {
  return impl_->views;
}

TraceStore& RunStore::traces() {
  return impl_->traces;
}

MachineStore& RunStore::machines() {
  return impl_->machines;
}

ProjectOrders& RunStore::orders() {
  return impl_->orders;
}

MetricStore& RunStore::metrics() {
  return impl_->metrics;
}

FollowStore& RunStore::following() {
  return impl_->following;
}

fs::path default_database_file() {
  if (const char* named = std::getenv("STEPLADDER_DB"); named && *named) return named;
  return user_folder("XDG_DATA_HOME", ".local/share") / "stepladder" / "stepladder.db";
}

}  // namespace stepladder
