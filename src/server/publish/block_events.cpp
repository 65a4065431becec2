#include "server/publish/block_events.h"

#include <utility>

#include "base/json.h"
#include "cache/state_classes.h"

namespace banyan {
namespace {

// vLLM's name for the memory in which blocks are used directly.
constexpr const char* kFirstTier = "GPU";

Json event_json(const BlockEvent& event, int64_t block_size) {
  switch (event.operation) {
    case KvOperation::kStored:
      // block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name
      return {"BlockStored", event.hashes, event.parent ? Json(*event.parent) : Json(nullptr),
              event.tokens,  block_size,   nullptr,
              kFirstTier,    nullptr};
    case KvOperation::kRemoved:
      return {"BlockRemoved", event.hashes, kFirstTier};
    case KvOperation::kCleared:
      break;
  }
  return Json::array({"AllBlocksCleared"});
}

}  // namespace

uint64_t block_hash(const PageKey& key) {
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof hash; ++i) hash |= uint64_t{key.bytes[i]} << (8 * i);
  return hash;
}

std::string encode_batch(double time_s, const std::vector<BlockEvent>& events, int64_t block_size) {
  Json list = Json::array();
  for (const BlockEvent& event : events) list.push_back(event_json(event, block_size));
  std::string bytes;
  Json::to_msgpack(Json::array({time_s, std::move(list), 0}), bytes);
  return bytes;
}

bool BlockQueue::add(const KvEvent& event, std::span<const PrefixToken> tokens, bool first) {
  BlockEvent block = {.operation = event.operation};
  if (event.operation != KvOperation::kCleared) {
    if (event.unit.unit_class != kPathClass) return false;
    block.hashes = {block_hash(event.unit.page)};
  }
  if (event.operation == KvOperation::kStored) {
    if (!first) block.parent = block_hash(event.parent);
    block.tokens.assign(tokens.begin(), tokens.end());
  }
  std::lock_guard lock(mutex_);
  bool empty = events_.empty();
  append(std::move(block));
  return empty;
}

// Merges events that one event can express.
void BlockQueue::append(BlockEvent event) {
  if (blocks_ >= blocks_max_ && event.operation != KvOperation::kCleared) {
    ++overflows_;
    event = {.operation = KvOperation::kCleared};
  }
  if (event.operation == KvOperation::kCleared) {  // earlier events no longer matter
    events_.assign(1, std::move(event));
    blocks_ = 0;
    return;
  }
  ++blocks_;
  BlockEvent* last = events_.empty() ? nullptr : &events_.back();
  bool same = last != nullptr && last->operation == event.operation;
  bool follows = same && event.parent.has_value() && *event.parent == last->hashes.back();
  if (!follows && !(same && event.operation == KvOperation::kRemoved)) {
    events_.push_back(std::move(event));
    return;
  }
  last->hashes.push_back(event.hashes.front());
  last->tokens.insert(last->tokens.end(), event.tokens.begin(), event.tokens.end());
}

std::vector<BlockEvent> BlockQueue::take() {
  std::lock_guard lock(mutex_);
  blocks_ = 0;
  return std::exchange(events_, {});
}

int64_t BlockQueue::overflows() const {
  std::lock_guard lock(mutex_);
  return overflows_;
}

}  // namespace banyan
