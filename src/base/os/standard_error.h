// Messages for people on stderr. Nothing here throws or ends the process, even if the descriptor is
// unusable. Any thread may call.
#pragma once

#include <string_view>

namespace banyan {

void write_stderr(std::string_view text);

// For servers: write_stderr() no longer blocks on a slow reader, but may drop text
// (base/os/background_writer.h).
void write_stderr_in_background();

// Waits briefly for queued text; call before the process exits.
void flush_stderr();

// Routes spdlog's output through write_stderr().
void log_to_stderr();

// Opens missing standard streams on a descriptor that fails, so that no file or connection gets
// their numbers. Call before anything else.
void occupy_standard_streams();

}  // namespace banyan
