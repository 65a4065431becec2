#include "engine/announce.h"

#include <random>

#include "engine/startup/state_identity.h"

namespace banyan {

// An epoch is random, so that no two processes share one.
std::unique_ptr<KvAnnouncer> announce(RadixTree& tree, const EngineInfo& info) {
  if (info.state_digest_parts.empty()) return nullptr;
  std::random_device random;
  uint64_t epoch = uint64_t{random()} << 32 | random() | 1;
  StateDigest states = StateIdentity{.parts = info.state_digest_parts}.digest();
  return std::make_unique<KvAnnouncer>(tree, states, epoch);
}

}  // namespace banyan
