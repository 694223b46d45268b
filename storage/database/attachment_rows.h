// Rows about a run besides its steps: system metrics, text samples, console output, operator times. Inside storage/
// only.
#pragma once

#include <string>
#include <vector>

#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

void insert_system_metrics(Database& database, const SystemMetrics& sample);
void insert_text_sample(Database& database, const TextSample& sample);
void insert_console(Database& database, const ConsoleText& printed);
void replace_profile(Database& database, const StepProfile& profile);

std::vector<SystemMetrics> read_system_metrics(Database& database, RunId run);
std::vector<TextSample> read_text_samples(Database& database, RunId run);
std::string read_console(Database& database, RunId run, std::size_t most);
StepProfile read_profile(Database& database, RunId run);

}  // namespace stepladder
