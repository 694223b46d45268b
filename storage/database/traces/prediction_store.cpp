// SQL for predictions. A recipe is compared as JSON without the values that don't change a step: to_json writes them in
// one order, so equal recipes are equal texts.
#include "storage/database/traces/prediction_store.h"

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

// Of a recipe in this column or parameter.
std::string of_step(const std::string& recipe) {
  return "CASE WHEN json_valid(" + recipe + ") THEN json_remove(" + recipe +
         ", '$.steps', '$.warmup', '$.eval_every', '$.eval_batches', '$.sample_every', '$.sample_tokens', "
         "'$.sample_prompt', '$.tokenizer', '$.save_every', '$.keep', '$.seed', '$.lr', '$.lr_warmup', '$.device', "
         "'$.data') "
         "ELSE '' END";
}

constexpr const char* prediction_columns =
    "p.id, p.made_at, p.trace_id, p.run_id, p.stage, p.device, p.hardware, p.base_recipe, p.recipe, p.at_most, "
    "p.step_ms, p.predicted_ms, p.low_ms, p.high_ms";

KeptPrediction read_prediction(const Statement& row) {
  KeptPrediction made{.id = row.integer(0),
                      .made_at = row.real(1),
                      .stage = bounded(row.text(4), longest_name),
                      .device = bounded(row.text(5), longest_name),
                      .hardware = bounded(row.text(6), longest_name),
                      .base_recipe = bounded(row.text(7), longest_line),
                      .recipe = bounded(row.text(8), longest_line),
                      .at_most = row.integer(9) != 0,
                      .step_ms = measure_of(row, 10),
                      .predicted_ms = measure_of(row, 11),
                      .low_ms = measure_of(row, 12),
                      .high_ms = measure_of(row, 13)};
  if (!row.is_null(2)) made.trace = row.integer(2);
  if (!row.is_null(3)) made.run = row.integer(3);
  return made;
}

}  // namespace

void PredictionStore::keep(const KeptPrediction& prediction) {
  Transaction transaction(database_);
  database_.run("DELETE FROM predictions WHERE trace_id = ? AND stage = ?", prediction.trace, prediction.stage);
  database_.run(
      "INSERT INTO predictions (made_at, trace_id, run_id, stage, device, hardware, base_recipe, recipe, "
      "at_most, step_ms, predicted_ms, low_ms, high_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, " +
          of_step("?7") + ", " + of_step("?8") + ", ?9, ?10, ?11, ?12, ?13)",
      is_missing(prediction.made_at) ? unix_now() : prediction.made_at, prediction.trace, prediction.run,
      prediction.stage, prediction.device, known(prediction.hardware), prediction.base_recipe, prediction.recipe,
      prediction.at_most, prediction.step_ms, prediction.predicted_ms, prediction.low_ms, prediction.high_ms);
  transaction.commit();
}

std::vector<KeptPrediction> PredictionStore::list() {
  return read_all(
      Statement(database_, std::string("SELECT ") + prediction_columns + " FROM predictions p ORDER BY p.id"),
      read_prediction);
}

std::optional<TraceId> PredictionStore::trace_of(const std::string& recipe) {
  return database_.find(
      "SELECT max(t.id) FROM traces t LEFT JOIN runs r ON r.id = t.run_id AND r.source = 'launched' WHERE " +
          of_step("coalesce(t.recipe, r.recipe)") + " = " + of_step("?1") +
          " AND EXISTS (SELECT 1 FROM "
          "trace_slices s WHERE s.trace_id = t.id)",
      recipe);
}

bool PredictionStore::is_measured(const std::string& recipe) {
  return database_.has("SELECT 1 FROM runs WHERE source = 'launched' AND status = 'finished' AND hidden = 0 AND " +
                           of_step("recipe") + " = " + of_step("?1") + " LIMIT 1",
                       recipe);
}

std::vector<MeasuredPrediction> PredictionStore::measured() {
  return read_all(
      Statement(
          database_,
          "WITH measured AS MATERIALIZED (SELECT id, ladder_id, hardware, " + of_step("recipe") +
              " AS step_recipe FROM runs WHERE source = 'launched' AND status = 'finished' AND hidden = 0 AND NOT "
              "EXISTS "
              "(SELECT 1 FROM curation WHERE curation.run_id = runs.id AND deleted_at IS NOT NULL)) SELECT " +
              prediction_columns +
              ", b.id, max(a.id) FROM predictions p JOIN measured b ON b.step_recipe = p.base_recipe AND b.hardware IS "
              "p.hardware JOIN measured a ON a.step_recipe = p.recipe AND a.hardware IS p.hardware AND a.ladder_id IS "
              "b.ladder_id WHERE p.base_recipe <> '' AND p.recipe <> p.base_recipe GROUP BY p.id ORDER BY p.id"),
      [](const Statement& row) {
        return MeasuredPrediction{read_prediction(row), row.integer(14), row.integer(15)};
      });
}

}  // namespace stepladder
