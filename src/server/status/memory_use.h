// Where the process's memory is, and giving back what a burst of load no longer needs.
#pragma once

#include <cstdint>

namespace banyan {

// Bytes by part, for /metrics. Each part's limit stands next to it.
struct MemoryUse {
  int64_t weights = 0;         // as packed
  int64_t pools = 0;           // of pages and states, all of them; touched as they are used
  int64_t step = 0;            // activations of the largest step
  int64_t grammars = 0;        // compiled, with their masks: GrammarCompiler::Options::bytes_max
  int64_t request_bodies = 0;  // ServerConfig::bodies_bytes_max
  int64_t connection_buffers = 0;  // connections_max times send_buffer_bytes_max
  int64_t heap_used = 0;           // of the allocator: grammars, bodies and buffers are in it
  int64_t heap_free = 0;           // that it has yet to give back
  int64_t resident = 0;            // of the whole process, as the system counts
};

// Fills in what the system knows: the heap and the resident set.
void measure_memory(MemoryUse& use);

// Has the allocator keep large blocks (bodies, answers) apart, so that they go back as they are
// freed, and share its arenas between threads. For the process, once, before it has threads.
void configure_allocator();

// Gives back what is free if it is much; takes some milliseconds. Says whether it did.
bool give_back_memory();

}  // namespace banyan
