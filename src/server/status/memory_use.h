// Memory use of the process by part, and returning free memory to the system after a burst of load.
// Thread-safe, except configure_allocator().
#pragma once

#include <cstdint>

namespace banyan {

// Bytes by part, for /metrics. Each part has its limit with it.
struct MemoryUse {
  int64_t weights = 0;             // as packed
  int64_t pools = 0;               // all pages and state slots; touched on first use
  int64_t step = 0;                // activations of the largest step
  int64_t grammars = 0;            // compiled, with masks: GrammarCompiler::Options::bytes_max
  int64_t request_bodies = 0;      // ServerConfig::bodies_bytes_max
  int64_t connection_buffers = 0;  // connections_max x send_buffer_bytes_max
  int64_t heap_used = 0;           // allocator, including grammars, bodies and buffers
  int64_t heap_free = 0;           // not yet returned by the allocator
  int64_t resident = 0;            // of the whole process, from the kernel
};

// Fills in the heap and the resident set.
void measure_memory(MemoryUse& use);

// Configures malloc: large blocks (bodies, answers) are mapped separately, so that freeing them
// returns their memory, and threads share arenas. Call once per process, before it starts threads.
void configure_allocator();

// Returns free heap memory to the system if there is much; takes some milliseconds. Returns whether
// it did.
bool give_back_memory();

}  // namespace banyan
