// Records and stores for tests of stores. A record's contents follow from its number and class, so
// any successful read can be verified.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/page_key.h"
#include "tier/registry.h"
#include "tier/storage.h"
#include "tier/store.h"

namespace banyan::test {

// Two classes: pages of three pieces, and a slot of one piece that is not aligned.
TierStates tier_states(const std::string& model = "model");

// A unit with its memory; `number` says which.
class TierUnit {
 public:
  // `aligned`: as pools of pages are, so that a device reads straight into them.
  TierUnit(const TierStates& states, int64_t number, int unit_class, bool aligned = true);

  TierKey key() const { return record_.key; }
  TierRecord& record() { return record_; }
  TierJob job(uint64_t id) const { return {.id = id, .record = record_, .pieces = pieces_}; }
  void fill();         // with what belongs there
  void wipe();         // with something else
  bool right() const;  // whether that is what it contains

 private:
  std::vector<std::byte> expected() const;

  int64_t number_;
  int64_t bytes_;
  std::vector<PrefixToken> tokens_;
  TierRecord record_;
  std::vector<std::byte> memory_;
  std::vector<TierPiece> pieces_;
};

// A store with blocking calls.
class TierRig {
 public:
  TierRig(const TierConfig& config, const TierStates& states, Storage& storage = system_storage());

  TierStore& store() { return *store_; }
  TierOutcome write(int64_t number, int unit_class = 0, bool aligned = true);
  // Verifies the bytes whenever a read reports success.
  TierOutcome read(int64_t number, int unit_class = 0, bool aligned = true);
  bool find(int64_t number, int unit_class = 0);
  void touch(int64_t number, int unit_class = 0);
  // The end of a job; a minute at most.
  TierDone wait_for(uint64_t id);
  void close() { store_.reset(); }
  void reopen();
  int64_t wrong() const { return wrong_; }  // successful reads with wrong bytes

 private:
  TierConfig config_;
  TierStates states_;
  Storage& storage_;
  std::unique_ptr<TierStore> store_;
  uint64_t last_id_ = 0;
  int64_t wrong_ = 0;
  std::vector<TierDone> ended_;
};

TierConfig disk_config(const std::string& folder, int64_t size_bytes = 4 << 20);

}  // namespace banyan::test
