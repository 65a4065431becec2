#include "engine/tiers/open.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "engine/startup/state_identity.h"
#include "tier/host_store.h"
#include "tier/layered_store.h"
#include "tier/registry.h"

namespace banyan {
namespace {

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<TierConfig> tier_config(const CacheStorageConfig& config) {
  TierConfig tier{.backend = config.backend,
                  .directory = config.directory,
                  .size_bytes = config.size_bytes,
                  .slot_fraction = config.snapshot_fraction,
                  .write_budget_bytes_per_day = config.write_budget_bytes_per_day,
                  .url = config.url};
  constexpr std::string_view kFile = "file://";
  if (config.url.starts_with(kFile)) tier.shared_directory = config.url.substr(kFile.size());
  if (!config.key_file.empty()) tier.key = TRY(read_record_key(config.key_file));
  return tier;
}

// Stores read and write the host's memory, so a device needs some of it in between.
Status check_memory(const CacheStorageConfig& config, const DeviceOps& device) {
  bool host = config.host_size_bytes > 0 || config.host_ratio > 0;
  if (config.host_size_bytes > 0 && config.host_ratio > 0) {
    return invalid_argument(
        "cache_storage: host_size_bytes and host_ratio set the same size; give only one of them");
  }
  if (device.host_memory && host) {
    return invalid_argument(
        "cache_storage: host_size_bytes and host_ratio need a device; here the cache is in the "
        "host's memory already");
  }
  if (device.host_memory || host) return {};
  return invalid_argument(
      "cache_storage: states are on {} and are stored through the host's memory: give "
      "host_size_bytes or host_ratio (--hicache-size, --hicache-ratio)",
      device.name);
}

// Each class gets as much of the host's memory as it has of the device's.
Result<HostUnits> host_units(const CacheStorageConfig& config, const Runner& runner,
                             const UnitPieces& pieces) {
  HostUnits units{.classes = runner.classes()};
  double device_bytes = 0;
  for (int c = 0; c < units.classes.count; ++c) {
    auto i = as_size(c);
    if (!units.classes[c].decides()) continue;
    units.bytes[i] = pieces.bytes(c);
    units.slots[i] = runner.pools().units(c);
    device_bytes += units.bytes[i] * units.slots[i];
  }
  double ratio = config.host_ratio;
  if (ratio == 0) ratio = config.host_size_bytes / device_bytes;
  for (int c = 0; c < units.classes.count; ++c) {
    auto i = as_size(c);
    if (units.bytes[i] == 0 || units.slots[i] == 0) continue;
    units.slots[i] = static_cast<int64_t>(ratio * units.slots[i]);
    if (units.slots[i] >= 1) continue;
    return invalid_argument(
        "cache_storage: host memory of {} times the device's has no room for a unit of {}", ratio,
        describe(units.classes[c]));
  }
  return units;
}

}  // namespace

// Records with another key, or without one, need another folder or name: each side would remove the
// other's.
TierStates tier_states(const Runner& runner, const UnitPieces& pieces, const TierConfig& config) {
  const EngineInfo& info = runner.info();
  StateIdentity identity{.parts = info.state_digest_parts};
  if (config.key) identity.parts.emplace_back("storage key", config.key->fingerprint());
  TierStates states{.digest = identity.digest(),
                    .model = info.architecture,
                    .parts = identity.parts,
                    .classes = runner.classes()};
  for (int c = 0; c < states.classes.count; ++c) {
    if (!states.classes[c].decides()) continue;
    at(states.unit_bytes, c) = pieces.bytes(c);
  }
  return states;
}

Result<std::unique_ptr<TierSetup>> open_tiers(const EngineConfig& config, const Runner& runner,
                                              EngineAssembly::Storage given) {
  if (!config.radix_cache) {
    return invalid_argument("cache_storage needs the radix cache, without which nothing is cached");
  }
  TRY(check_memory(config.cache_storage, runner.queue().ops()));
  const EngineInfo& info = runner.info();
  CHECK(!info.state_digest_parts.empty());
  StateDigest digest = StateIdentity{.parts = info.state_digest_parts}.digest();
  UnitPieces pieces(runner.pools());
  if (given.store == nullptr && !config.cache_storage.backend.empty()) {
    TierConfig tier = TRY(tier_config(config.cache_storage));
    given.store = TRY(make_store(tier, tier_states(runner, pieces, tier)));
  }
  if (given.last) {
    std::unique_ptr<TierStore> last = TRY(given.last(tier_states(runner, pieces, {})));
    bool lone = given.store == nullptr;
    given.store =
        lone ? std::move(last) : make_layered_store(std::move(given.store), std::move(last));
  }
  if (!runner.queue().ops().host_memory) {
    HostUnits units = TRY(host_units(config.cache_storage, runner, pieces));
    given.store = make_host_store(runner.queue(), units, std::move(given.store));
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
