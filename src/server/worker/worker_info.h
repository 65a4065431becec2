// What a worker reports to routers: its identity and its state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

class Service;

struct WorkerInfo {
  enum class State : uint8_t { kLoading, kReady, kDraining };

  State state = State::kLoading;
  uint64_t epoch = 0;  // of the process; a new one starts with an empty cache
  // Set once the model is loaded:
  std::string model;
  // Streams may move between workers with equal values: state digest, revision of the draws,
  // kernels and types, vocabulary.
  std::string identity;
  std::string state_digest;  // empty: started without --state-digest
  int64_t context_length_tokens = 0, page_size_tokens = 0, pages_total = 0, pages_free = 0;
  int64_t running_max = 0, queued_max = 0, running = 0, queued = 0;
  // Grows while the engine works: steps, and units that it has loaded.
  int64_t progress = 0;
  int64_t steps = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
};

WorkerInfo worker_info_of(const Service& service);
Json to_json(const WorkerInfo& info);
// kCorrupt: a member is missing or invalid; kUnsupported: another protocol version.
Result<WorkerInfo> read_worker_info(std::string_view text);

// The error code of the 503 that /worker/info answers while the engine hangs.
inline constexpr std::string_view kEngineHangsCode = "engine_hangs";
// The message of that error; nothing if `body` is another, such as a proxy's or that of a server
// with too many connections, whose streams may go on.
std::optional<std::string> read_engine_hangs(std::string_view body);

}  // namespace banyan
