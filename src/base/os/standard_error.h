// What the process says on stderr, for people. Nothing here throws or ends the process, whatever
// has become of the descriptor; from any thread.
#pragma once

#include <string_view>

namespace banyan {

void write_stderr(std::string_view text);

// From now on write_stderr() does not wait for a reader either, and what it is given may be lost
// (base/os/background_writer.h). For servers.
void write_stderr_in_background();

// Waits a moment for what is on its way; to be called before the process ends.
void flush_stderr();

// Makes spdlog's lines go through write_stderr().
void log_to_stderr();

// Gives standard streams that the process was started without a descriptor that fails, so that no
// file or connection takes their numbers. To be called first of all.
void occupy_standard_streams();

}  // namespace banyan
