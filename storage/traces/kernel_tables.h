// Reads tables of kernels with their times, which don't say when a kernel ran: what Triton's proton writes (.hatchet, a
// tree of scopes), and what llm.c's profile_gpt2cu.py prints. Their kernels are laid end to end on one stream, and what
// is known of their place in the step becomes ranges of a CPU thread that launch them.
#pragma once

#include <string_view>

#include "storage/traces/trace.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

// By the beginning of a file.
bool is_proton(std::string_view head);
bool is_llmc_table(std::string_view head);

// `head` is what `bytes` gave so far; valid until its next call. At most 64 MiB in all. Throw TraceError.
Trace read_proton(TraceBytes& bytes, std::string_view head);
Trace read_llmc_table(TraceBytes& bytes, std::string_view head);

}  // namespace stepladder
