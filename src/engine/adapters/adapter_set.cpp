#include "engine/adapters/adapter_set.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/signed.h"
#include "engine/adapters/adapter_room.h"
#include "engine/runner.h"

namespace banyan {

AdapterSet::AdapterSet(Runner& runner)
    : runner_(runner), slots_(as_size(runner.info().adapters_max)) {}

Status AdapterSet::add(const PackedAdapter& adapter) {
  const std::string& name = adapter.info.name;
  if (loaded_.contains(name)) {
    return invalid_argument("adapter {} is already loaded; unload it first", quote(name));
  }
  auto free = std::ranges::find_if(slots_, [](const auto& slot) { return slot.expired(); });
  if (free == slots_.end()) {
    size_t ending = slots_.size() - loaded_.size();
    return exhausted(
        "adapter {}: there is room for {} adapters (--max-loaded-loras), {} are loaded{}",
        quote(name), slots_.size(), loaded_.size(),
        ending > 0 ? fmt::format(" and {} unloaded ones are still in use", ending) : "");
  }
  auto slot = narrow<int32_t>(free - slots_.begin());
  runner_.put_adapter(slot, adapter);
  auto loaded = std::make_shared<const LoadedAdapter>(slot, adapter.info);
  *free = loaded;
  spdlog::info("adapter {} is loaded: rank {}, {} matrices, from {}", quote(name),
               adapter.info.rank, adapter.info.modules, adapter.info.path);
  std::lock_guard lock(mutex_);
  loaded_.emplace(name, std::move(loaded));
  return {};
}

Status AdapterSet::remove(const std::string& name) {
  auto found = loaded_.find(name);
  if (found == loaded_.end()) {
    return not_found("there is no adapter {}; {}", quote(name), names());
  }
  spdlog::info("adapter {} is unloaded", quote(name));
  std::lock_guard lock(mutex_);
  loaded_.erase(found);
  return {};
}

Result<AdapterUse> AdapterSet::find(const std::string& name) const {
  if (auto found = loaded_.find(name); found != loaded_.end()) return found->second;
  for (const auto& [known, adapter] : loaded_) {
    if (adapter->info.digest == name) return adapter;
  }
  return invalid_argument("there is no adapter {}; {}", quote(name), names());
}

std::string AdapterSet::names() const {
  if (loaded_.empty()) return "none is loaded";
  std::vector<std::string> all;
  for (const auto& [name, adapter] : loaded_) all.push_back(quote(name));
  return fmt::format("there are: {}", fmt::join(all, ", "));
}

std::vector<AdapterInfo> AdapterSet::list() const {
  std::lock_guard lock(mutex_);
  std::vector<AdapterInfo> all;
  for (const auto& [name, adapter] : loaded_) {
    AdapterInfo info = adapter->info;
    info.running = adapter->running;
    info.sequences = adapter.use_count() - 1;
    all.push_back(std::move(info));
  }
  return all;
}

}  // namespace banyan
