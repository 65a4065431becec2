// What a worker tells routers of itself: what it is, and how it is doing.
#pragma once

#include <cstdint>
#include <string>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

class Service;

struct WorkerInfo {
  enum class State : uint8_t { kLoading, kReady, kDraining };

  State state = State::kLoading;
  uint64_t epoch = 0;  // of the process: another one starts with nothing cached
  // What the rest is about; only once it is loaded.
  std::string model;
  // Streams may move between workers where all of this is equal: state digest, revision of the
  // draws, kernels and types, vocabulary.
  std::string identity;
  std::string state_digest;  // empty: it was started without --state-digest
  int64_t context_length_tokens = 0, page_size_tokens = 0, pages_total = 0, pages_free = 0;
  int64_t running_max = 0, queued_max = 0, running = 0, queued = 0;
  int64_t steps = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
};

WorkerInfo worker_info_of(const Service& service);
Json to_json(const WorkerInfo& info);
// kCorrupt: a member is missing or wrong; kUnsupported: another version of the protocol.
Result<WorkerInfo> read_worker_info(std::string_view text);

}  // namespace banyan
