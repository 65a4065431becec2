#include "engine/tiers/open.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "engine/startup/state_identity.h"
#include "tier/registry.h"

namespace banyan {
namespace {

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TierConfig tier_config(const CacheStorageConfig& config) {
  return {.backend = config.backend,
          .directory = config.directory,
          .size_bytes = config.size_bytes,
          .write_budget_bytes_per_day = config.write_budget_bytes_per_day,
          .url = config.url};
}

}  // namespace

Result<std::unique_ptr<TierSetup>> open_tiers(const EngineConfig& config, const Runner& runner,
                                              EngineAssembly::Storage given) {
  if (!config.radix_cache) {
    return invalid_argument(
        "cache_storage keeps cached prefixes, and nothing is cached without the radix cache");
  }
  if (!runner.queue().ops().host_memory) {
    return unsupported(
        "cache_storage: layers' states lie on {}; only those in the host's memory are kept yet",
        runner.queue().ops().name);
  }
  const EngineInfo& info = runner.info();
  CHECK(!info.state_digest_parts.empty());
  StateDigest digest = StateIdentity{.parts = info.state_digest_parts}.digest();
  UnitPieces pieces(runner.pools());
  if (given.store == nullptr) {
    TierStates states{.digest = digest,
                      .model = info.architecture,
                      .parts = info.state_digest_parts,
                      .classes = runner.classes()};
    for (int c = 0; c < states.classes.count; ++c) {
      if (!states.classes[c].decides()) continue;
      states.unit_bytes[static_cast<size_t>(c)] = pieces.bytes(c);
    }
    given.store = TRY(make_store(tier_config(config.cache_storage), states));
  }
  return std::make_unique<TierSetup>(
      TierSetup{.store = std::move(given.store),
                .states = digest,
                .config = config.cache_storage,
                .pieces = std::move(pieces),
                .prefill = PrefillCost(info),
                .load = given.load.value_or(LoadCost()),
                .now_ns = given.now_ns ? std::move(given.now_ns) : steady_ns});
}

}  // namespace banyan
