// Recognises the words of a line without a step: a heading, an entry of a list, a warning, a family of programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "storage/importers/logs/lines/step_line.h"

namespace stepladder {

bool is_letter(char c);  // or part of one that is not ASCII

// The text's first `size` bytes at most and "...", whole characters only.
std::string shortened(std::string_view text, std::size_t size);

// Whether a line could hold a step at all: one look at each byte, before any number is read.
bool may_say_step(std::string_view line);

// "W0818 17:17:31.970000 1354 torch/...]", "UserWarning: ...": messages of compilers and libraries.
bool is_warning(std::string_view line);

// "## Speed-up 2", "# ----- BASELINE ----- #", "=== run 3: bf16 ===": the words, or nothing.
std::string_view heading_of(std::string_view line);

// "3. Speed-up-2: ..." in a list.
struct Item {
  std::size_t indent = 0;
  std::string_view text;
};
std::optional<Item> item_of(std::string_view line);

// Whether the line begins a definition or an import: source code that was printed in front of a run.
bool is_code_line(std::string_view line);

bool speaks_of_resuming(std::string_view line);
bool speaks_of_the_end(std::string_view line);  // "Training completed"

// The family of programs that prints such a line; a run's recipe keeps it as "log_family".
std::string_view family_of(std::string_view text, const StepLine& line);

}  // namespace stepladder
