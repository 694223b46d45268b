#include "storage/database/traces/pass_store.h"

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

constexpr const char* pass_columns =
    "SELECT id, name, measured_at, host, hardware, device, model, batch, seq, vocab, threads, is_synced FROM passes ";

StoredPasses read_passes(const Statement& row) {
  StoredPasses passes{.id = row.integer(0), .name = bounded(row.text(1), longest_name), .measured_at = row.real(2)};
  passes.host = bounded(row.text(3), longest_name);
  passes.hardware = bounded(row.text(4), longest_name);
  passes.device = bounded(row.text(5), longest_name);
  passes.model = bounded(row.text(6), longest_name);
  passes.batch = count_of(row, 7);
  passes.seq = count_of(row, 8);
  passes.vocab = count_of(row, 9);
  passes.threads = count_of(row, 10);
  passes.is_synced = row.integer(11) != 0;
  return passes;
}

}  // namespace

std::int64_t PassStore::insert(const StoredPasses& passes) {
  Transaction transaction(database_);
  database_.insert("INTO passes",
                   "name, measured_at, host, hardware, device, model, batch, seq, vocab, threads, is_synced",
                   bounded(passes.name, longest_name), is_missing(passes.measured_at) ? unix_now() : passes.measured_at,
                   known(passes.host), known(passes.hardware), passes.device, passes.model, passes.batch, passes.seq,
                   passes.vocab, known(passes.threads), passes.is_synced);
  const std::int64_t id = database_.last_insert_id();
  for (const StoredCalls& each : passes.rows) {
    for (std::size_t call = 0; call < each.ms.size(); ++call) {
      database_.insert("INTO pass_calls", "pass_id, computation, precision, warmup, call, ms", id, each.computation,
                       each.precision, each.warmup, static_cast<std::int64_t>(call), each.ms[call]);
    }
  }
  transaction.commit();
  return id;
}

std::vector<StoredPasses> PassStore::list() {
  return read_all(Statement(database_, std::string(pass_columns) + "ORDER BY id"), read_passes);
}

std::optional<StoredPasses> PassStore::find(std::int64_t id) {
  Transaction one_state(database_, Transaction::Kind::read);
  Statement row(database_, std::string(pass_columns) + "WHERE id = ?", id);
  if (!row.step()) return std::nullopt;
  StoredPasses passes = read_passes(row);
  Statement calls(database_,
                  "SELECT computation, precision, warmup, ms FROM pass_calls WHERE pass_id = ? ORDER BY computation, "
                  "precision, warmup, call",
                  id);
  while (calls.step()) {
    const std::string computation = bounded(calls.text(0), longest_name);
    const std::string precision = bounded(calls.text(1), longest_name);
    const auto warmup = static_cast<int>(calls.integer(2));
    if (passes.rows.empty() || passes.rows.back().computation != computation ||
        passes.rows.back().precision != precision || passes.rows.back().warmup != warmup)
      passes.rows.push_back({.computation = computation, .precision = precision, .warmup = warmup, .ms = {}});
    passes.rows.back().ms.push_back(measure_of(calls, 3));
  }
  return passes;
}

void PassStore::remove(std::int64_t id) {
  database_.run("DELETE FROM passes WHERE id = ?", id);
}

}  // namespace stepladder
