// Announces an engine's prefixes under the keys that other machines know them by.
#pragma once

#include <memory>

#include "banyan/engine.h"
#include "cache/kv_announcer.h"

namespace banyan {

// Null without a state digest. The tree must outlive it.
std::unique_ptr<KvAnnouncer> announce(RadixTree& tree, const EngineInfo& info);

}  // namespace banyan
