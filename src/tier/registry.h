// The list of stores, and how one is opened.
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

// A user's settings. A backend refuses a missing field that it needs; registered_tiers() says which
// fields it reads.
struct TierConfig {
  // A name in registered_tiers(), or two separated by a comma: a local store, and a shared one for
  // what the local one lacks.
  std::string backend = "disk";
  std::string directory;         // disk, file: created if necessary
  std::string shared_directory;  // file, if it follows a local store
  int64_t size_bytes = 0;        // disk: of a rank's files, other digests included
  // disk: the share of size_bytes for classes of slots, if there are any; 0: a half.
  double slot_fraction = 0;
  int64_t write_budget_bytes_per_day = 0;  // 0: none
  // disk, file: bytes of the file system that writes leave free; -1: 5% of it, 10 GB at most.
  int64_t min_free_bytes = -1;
  double write_share = 0.3;  // disk, file: of the time, while no caller waits in sync(); at most 1
  int64_t slab_bytes = int64_t{1} << 30;  // disk: smaller if size_bytes is small
  // redis: redis://[[user]:password@]host[:port][/database], rediss:// (TLS; with
  // ?ssl_ca_certs=FILE and others of redis-py's), or unix://[[user]:password@]/path[?db=database].
  std::string url;
  int connections = 2;                               // redis: 1 to 4
  std::chrono::milliseconds timeout{2000};           // redis: of an operation, including connecting
  std::chrono::seconds time_to_live{7 * 24 * 3600};  // redis: of an unused record
  std::optional<RecordKey> key;
  int rank = 0, ranks = 1;
};

// Identifies the states that a store keeps.
struct TierStates {
  StateDigest digest;
  std::string model;                                       // for display
  std::vector<std::pair<std::string, std::string>> parts;  // of the digest, for display
  StateClasses classes;
  UnitCounts unit_bytes = {};  // on this rank; 0: the class is not stored
};

// Fails for mistakes in the configuration: invalid values, or a directory that is not a cache,
// cannot be opened or is open in another process. A device or a server that is unavailable is not
// an error; it shows in the store's health.
Result<std::unique_ptr<TierStore>> make_store(const TierConfig& config, const TierStates& states);

struct TierBackend {
  std::string_view name;
  bool shared;  // by machines
  std::string_view summary;
  Result<std::unique_ptr<TierStore>> (*make)(const TierConfig&, const TierStates&);
};
std::span<const TierBackend> registered_tiers();
// The stores that TierConfig::backend names, in the order in which they are asked.
Result<std::vector<const TierBackend*>> find_backends(std::string_view text);

}  // namespace banyan
