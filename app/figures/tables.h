// A study as tables: for people (Markdown, booktabs), and for other programs (CSV, JSON) at full precision.
#pragma once

#include <span>
#include <string>

#include "app/figures/study.h"
#include "app/text/text_table.h"

namespace stepladder {

TextTable study_table(const Study& study);      // a row for each rung
TextTable operators_table(const Study& study);  // milliseconds of a step by kind of operator; profiled rungs only

// GitHub's Markdown: headline, table, flags with their arithmetic, and how it was measured.
std::string study_markdown(const Study& study);

// All steps, one row each, units in the names. Numbers have the fewest digits that give them back exactly; a value that
// was not recorded is empty, a loss that is not finite is NaN, inf or -inf. RFC 4180, but lines end in \n.
std::string steps_csv_head();
std::string steps_csv(const Run& run, std::span<const StepRecord> steps);  // all of them, or some and then the next

// One row for each run: the scalar fields of `show --json`, and the gain and trust of the run's rung.
std::string summaries_csv(const Study& study, const RunContext& context);

}  // namespace stepladder
