// The folder that huggingface_hub and everything over it shares:
//   CACHE/models--OWNER--NAME/blobs/ETAG, snapshots/COMMIT/FILE -> ../../blobs/ETAG, refs/REVISION
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan {

std::string repository_folder(const HubSettings& settings, const HubModel& model);

// The folder of the revision as far as it is known here; "" if it is not, or if what an engine
// needs (config, tokenizer, weights) is not all there.
std::string cached_snapshot(const HubSettings& settings, const HubModel& model);

struct CachedModel {
  std::string repository;              // OWNER/NAME
  std::string folder;                  // of the newest snapshot, or of the repository
  std::vector<std::string> revisions;  // names and the commits they stand for: "main 1a2b..."
  int64_t bytes = 0;                   // on disk
  bool complete = false;               // can be run
};

// Sorted by name. kIo if the folder cannot be read; none if there is no folder.
Result<std::vector<CachedModel>> cached_models(const HubSettings& settings);

// Removes all revisions; gives how many bytes that frees. kNotFound if it is not there.
Result<int64_t> remove_cached(const HubSettings& settings, const HubModel& model);

}  // namespace banyan
