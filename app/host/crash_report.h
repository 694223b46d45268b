// What is left of a crash: signal, the last exception's text and the stack, in crash.txt beside the settings.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stepladder {

// $XDG_CONFIG_HOME/stepladder/crash.txt, else the same under ~/.config.
std::filesystem::path crash_file();

// From now on a fatal signal, also one of an uncaught exception, writes the file before the process ends by it. Each
// line of the stack is module(+offset), which `addr2line -e module offset` resolves. `version` is the first line. Call
// once, on the main thread, whose stack overflow is reported too.
void report_crashes(const std::string& version);

// The report of a crash that nobody was told of yet, under the name that it keeps (crash-DATE.txt): told once.
std::optional<std::filesystem::path> take_crash_report();

// The newest report, told or not.
std::optional<std::filesystem::path> newest_crash_report();

}  // namespace stepladder
