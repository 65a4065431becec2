#include "tier/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "tier/disk/disk_store.h"
#include "tier/file_store.h"
#include "tier/layered_store.h"
#include "tier/redis/redis_store.h"

namespace banyan {
namespace {

Status check_config(const TierConfig& config) {
  if (config.ranks < 1 || config.rank < 0 || config.rank >= config.ranks) {
    return invalid_argument("rank {} does not exist among {} ranks", config.rank, config.ranks);
  }
  if (config.write_budget_bytes_per_day < 0) {
    return invalid_argument("the write budget is {} bytes a day; it must be 0 (no limit) or more",
                            config.write_budget_bytes_per_day);
  }
  if (!(config.write_share > 0 && config.write_share <= 1)) {
    return invalid_argument("the share of time for writing is {}; it must be above 0 and at most 1",
                            config.write_share);
  }
  return {};
}

}  // namespace

std::span<const TierBackend> registered_tiers() {
  static const std::array kTiers = std::to_array<TierBackend>({
      {"disk", false, "a folder on a local disk, of this process alone", make_disk_store},
      {"file", true, "a folder of a file system that machines share, a file for each unit",
       make_file_store},
      {"redis", true, "a server that speaks Redis' protocol", make_redis_store},
  });
  return kTiers;
}

Result<std::vector<const TierBackend*>> find_backends(std::string_view text) {
  std::vector<const TierBackend*> found;
  for (size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
    end = text.find(',', begin);
    std::string_view name = text.substr(begin, end == text.npos ? end : end - begin);
    auto backend = std::ranges::find(registered_tiers(), name, &TierBackend::name);
    if (backend == registered_tiers().end()) {
      std::vector<std::string_view> names;
      for (const TierBackend& known : registered_tiers()) names.push_back(known.name);
      return invalid_argument("'{}' is not a storage backend; supported: {}", name,
                              fmt::join(names, ", "));
    }
    found.push_back(&*backend);
  }
  bool layered = found.size() == 2 && !found[0]->shared && found[1]->shared;
  if (found.size() == 1 || layered) return found;
  return invalid_argument("'{}' is not supported; give one backend, disk,file or disk,redis", text);
}

Result<std::unique_ptr<TierStore>> make_store(const TierConfig& config, const TierStates& states) {
  TRY(check_config(config));
  std::vector<const TierBackend*> backends = TRY(find_backends(config.backend));
  std::unique_ptr<TierStore> store = TRY(backends[0]->make(config, states));
  if (backends.size() == 1) return store;
  TierConfig below = config;
  below.directory = config.shared_directory;
  return make_layered_store(std::move(store), TRY(backends[1]->make(below, states)));
}

}  // namespace banyan
