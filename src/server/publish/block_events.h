// Events of the prefix cache in vLLM's schema (vllm/distributed/kv_events.py), which other routers
// read: Dynamo, and llm-d for Kubernetes.
//
// A block is a page. Its hash is the first 8 bytes of its key as a little-endian number, so it
// covers what a PageKey covers, including adapter and salt. Only the path's pages are reported; a
// model with windows or recurrent states may resume less than these promise.
//
// One thread adds, another takes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_event.h"
#include "cache/prefix_key.h"

namespace banyan {

struct BlockEvent {
  KvOperation operation = KvOperation::kStored;
  std::vector<uint64_t> hashes;    // with kStored, each the parent of the next
  std::optional<uint64_t> parent;  // of the first; none: it begins a prefix
  std::vector<TokenId> tokens;     // with kStored, of all blocks
};

uint64_t block_hash(const PageKey& key);

// A batch as msgpack: [seconds since 1970, [event...], 0]. The last element is the number of a
// data-parallel rank. An event is an array that begins with its name.
std::string encode_batch(double time_s, const std::vector<BlockEvent>& events, int64_t block_size);

class BlockQueue {
 public:
  // If more than `blocks_max` wait, all events are replaced by one that clears everything.
  // Subscribers then know too little, but nothing wrong.
  explicit BlockQueue(int64_t blocks_max) : blocks_max_(blocks_max) {}

  // Returns whether it was empty before.
  bool add(const KvEvent& event, std::span<const PrefixToken> tokens, bool first);
  std::vector<BlockEvent> take();
  int64_t overflows() const;

 private:
  void append(BlockEvent event);

  const int64_t blocks_max_;
  mutable std::mutex mutex_;
  std::vector<BlockEvent> events_;
  int64_t blocks_ = 0;  // total in the events
  int64_t overflows_ = 0;
};

}  // namespace banyan
