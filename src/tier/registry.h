// Which stores there are, and how one is opened.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/status.h"
#include "cache/page_key.h"
#include "cache/state_classes.h"
#include "tier/record_key.h"
#include "tier/store.h"

namespace banyan {

// What a person sets. A backend refuses what it needs and lacks; registered_tiers() says which
// fields it reads.
struct TierConfig {
  // A name of registered_tiers(), or two: a local store, a comma, and a shared one for what the
  // local one lacks.
  std::string backend = "disk";
  std::string directory;         // disk, file: made if need be
  std::string shared_directory;  // file, after a local store
  int64_t size_bytes = 0;        // disk: of a rank's files, those of other digests too
  // disk: of size_bytes, for classes of slots where there are any; 0: a half.
  double slot_fraction = 0;
  int64_t write_budget_bytes_per_day = 0;  // 0: none
  // disk, file: writes leave so much of the file system free; -1: 5% of it, 10 GB at most.
  int64_t min_free_bytes = -1;
  double write_share = 0.3;  // disk, file: of the time, while nobody waits in sync(); at most 1
  int64_t slab_bytes = int64_t{1} << 30;  // disk: smaller where size_bytes is small
  // redis: redis://[[user]:password@]host[:port][/database] or
  // unix://[[user]:password@]/path[?db=database].
  std::string url;
  int connections = 2;                               // redis: 1 to 4
  std::chrono::milliseconds timeout{2000};           // redis: of an operation, connecting included
  std::chrono::seconds time_to_live{7 * 24 * 3600};  // redis: of a record that nobody uses
  std::optional<RecordKey> key;
  int rank = 0, ranks = 1;
};

// Whose states a store keeps.
struct TierStates {
  StateDigest digest;
  std::string model;                                       // for people
  std::vector<std::pair<std::string, std::string>> parts;  // of the digest, for people
  StateClasses classes;
  UnitCounts unit_bytes = {};  // on this rank; 0: units of the class are not stored
};

// Errors are those that a person should hear of at the start: values that make no sense, a
// directory that is no cache, that may not be opened or that another process has open. A device or
// a server that does not work now is no error but the store's health.
Result<std::unique_ptr<TierStore>> make_store(const TierConfig& config, const TierStates& states);

struct TierBackend {
  std::string_view name;
  bool shared;  // by machines
  std::string_view summary;
  Result<std::unique_ptr<TierStore>> (*make)(const TierConfig&, const TierStates&);
};
std::span<const TierBackend> registered_tiers();
// Those that TierConfig::backend names, in the order in which they are asked.
Result<std::vector<const TierBackend*>> find_backends(std::string_view text);

}  // namespace banyan
