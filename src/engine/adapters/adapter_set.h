// The LoRA adapters of an engine by name: which are loaded, which slots are free, and who uses
// them. The engine's thread; list() is safe from any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/adapters/loaded_adapter.h"

namespace banyan {

class Runner;

class AdapterSet {
 public:
  // Slots are those of `runner`, which must outlive this.
  explicit AdapterSet(Runner& runner);

  // kInvalidArgument: the name is in use; kExhausted: no slot is free.
  Status add(const PackedAdapter& adapter);
  // kNotFound names those that exist. The slot is free once nothing uses the adapter.
  Status remove(const std::string& name);
  // By name, or by digest; kInvalidArgument names those that exist.
  Result<AdapterUse> find(const std::string& name) const;
  std::vector<AdapterInfo> list() const;

 private:
  std::string names() const;

  Runner& runner_;
  std::vector<std::weak_ptr<const LoadedAdapter>> slots_;
  mutable std::mutex mutex_;  // of the rest; only this thread changes it
  std::map<std::string, AdapterUse, std::less<>> loaded_;
};

}  // namespace banyan
