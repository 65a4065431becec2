#include "tier/registry.h"

#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "tier/disk/disk_store.h"
#include "tier/file_store.h"
#include "tier/redis/redis_store.h"

namespace banyan {
namespace {

Status check_config(const TierConfig& config) {
  if (config.ranks < 1 || config.rank < 0 || config.rank >= config.ranks) {
    return invalid_argument("rank {} of {}", config.rank, config.ranks);
  }
  if (config.write_budget_bytes_per_day < 0) {
    return invalid_argument("a write budget of {} bytes a day: 0 is none",
                            config.write_budget_bytes_per_day);
  }
  if (!(config.write_share > 0 && config.write_share <= 1)) {
    return invalid_argument("a share of writes of {}: more than 0, 1 at most", config.write_share);
  }
  return {};
}

}  // namespace

std::span<const TierBackend> registered_tiers() {
  static const std::array kTiers = std::to_array<TierBackend>({
      {"disk", "a folder on a local disk, of this process alone", make_disk_store},
      {"file", "a folder of a file system that machines share, a file for each unit",
       make_file_store},
      {"redis", "a server that speaks Redis' protocol", make_redis_store},
  });
  return kTiers;
}

Result<std::unique_ptr<TierStore>> make_store(const TierConfig& config, const TierStates& states) {
  TRY(check_config(config));
  std::vector<std::string_view> names;
  for (const TierBackend& backend : registered_tiers()) {
    if (backend.name == config.backend) return backend.make(config, states);
    names.push_back(backend.name);
  }
  return invalid_argument("'{}' is no storage backend; known: {}", config.backend,
                          fmt::join(names, ", "));
}

}  // namespace banyan
