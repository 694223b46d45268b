// A claim to a record as JSON and as text.
#pragma once

#include <optional>
#include <string>

#include "app/runs/run_json.h"
#include "storage/speedrun/record_claim.h"

namespace stepladder {

Json record_json(const RecordClaim& claim, const std::optional<RecordRule>& rule);
std::string record_text(const RecordClaim& claim, const std::optional<RecordRule>& rule, double power);

}  // namespace stepladder
