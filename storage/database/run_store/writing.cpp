// Events and steps are written here.
#include "storage/database/events/event_rows.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store/run_store_impl.h"
#include "storage/database/slices.h"
#include "storage/database/step_rows.h"

namespace stepladder {

std::vector<RunId> RunStore::apply(std::span<const RunEvent> events) {
  if (events.empty()) return {};
  const auto counted = count_steps_of_finished(impl_->database, events);
  Transaction transaction(impl_->database);
  const WrittenEvents written = write_events(impl_->database, events, std::nullopt, counted);
  for (const RunId id : written.outdated) impl_->derived.forget(id);
  transaction.commit();
  // After the commit, since reading the steps of a long run takes a while and others want to write too.
  for (const RunId id : written.ended) refresh(id);
  return written.missing;
}

// Another process may have deleted the run since the transaction that ended it.
void RunStore::refresh(RunId id) {
  try {
    if (const auto ended = run(id)) impl_->derived.refresh(*ended);
    impl_->metrics.keep_figures(id);
  } catch (const StorageError&) {  // only a cache: computed when somebody asks for it
  }
}

RunId RunStore::insert_finished(Run run, std::span<const StepRecord> steps) {
  if (!is_over(run.status)) run.status = RunStatus::finished;
  Transaction transaction(impl_->database);
  run.id = insert_run(impl_->database, run, std::nullopt);
  insert_steps(impl_->database, run.id, steps);
  transaction.commit();
  impl_->derived.refresh(run);
  return run.id;
}

void RunStore::append_steps(RunId run, std::span<const StepRecord> steps) {
  insert_steps(impl_->database, run, steps);
  impl_->derived.forget(run);
}

void RunStore::in_slices(const std::function<bool()>& piece) {
  stepladder::in_slices(impl_->database, piece);
}

void RunStore::in_one_transaction(const std::function<void()>& work) {
  Transaction transaction(impl_->database);
  work();
  transaction.commit();
}

}  // namespace stepladder
