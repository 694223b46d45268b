// What window and command line do with a text before they show it. storage/wording.h formats numbers and times.
#pragma once

#include <string>
#include <string_view>

#include "storage/records.h"
#include "storage/wording.h"

namespace stepladder {

struct Unstored;

// Replaces the terminal's signs by those of print, in text without names: "1.42 x" becomes 1.42 and a multiplication
// sign without space, "6 x 2" keeps its spaces; "1.38 - 1.46" gets an en dash and "-0.05" a minus sign; also for +/-
// and ->.
std::string in_print(const std::string& text);

std::string capitalised(std::string text);  // "Batch 16" of "batch 16"

bool has_word(std::string_view words, std::string_view word);  // of words with single spaces between them

// Replaces control characters (is_control) other than line ends and tabs by dots, and bytes that aren't UTF-8 by
// U+FFFD: foreign text (logs, names, untrained models) must not steer the terminal.
std::string harmless(std::string text);

// "270 ms", "40 s", "4 min", "2.5 h": no more digits than an estimate has.
std::string rough_duration_text(double seconds);

// From this age of a run's newest value on, lateness_text is worth showing.
inline constexpr double late_after_s = 15;

// "newest value 95 s old; TensorBoard's writer holds values back for up to 120 s"; empty if writers of this format (an
// importer's id) pass on values at once.
std::string lateness_text(std::string_view format, double age_s);

// The same for a run that `follow` or `watch` imports from a store, if its newest value (unix seconds) is late; else
// empty.
std::string lateness_text(const Run& run, double newest_at);

// "1,204 steps wait to be stored since 12:04:31: stepladder.db is locked by another process."; empty if none wait.
std::string unstored_text(const Unstored& unstored);

}  // namespace stepladder
