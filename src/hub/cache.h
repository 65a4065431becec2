// The cache folder of huggingface_hub and everything built on it:
//   CACHE/models--OWNER--NAME/blobs/ETAG, snapshots/COMMIT/FILE -> ../../blobs/ETAG, refs/REVISION
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan {

std::string repository_folder(const HubSettings& settings, const HubModel& model);

// The cached folder of the revision, or the GGUF file in it (the first of several parts). "" if it
// is not cached, or if a file that the engine needs is missing (config, tokenizer, weights, any
// GGUF part). The choice of GGUF file depends on the noted list of files on the hub; offline, the
// cached files decide.
std::string cached_model(const HubSettings& settings, const HubModel& model);

// Records which files the hub has for a commit.
Status note_files(const HubSettings& settings, const HubModel& model, const std::string& commit,
                  const std::set<std::string>& files);

struct CachedModel {
  std::string repository;              // OWNER/NAME
  std::string folder;                  // the newest snapshot's, or the repository's
  std::vector<std::string> revisions;  // names with their commits: "main 1a2b..."
  int64_t bytes = 0;                   // on disk
  bool complete = false;               // all files that the engine needs are present
  std::vector<std::string> ggufs;      // suffixes for OWNER/NAME: that select cached GGUF files
};

// Sorted by name. Empty if the cache does not exist; kIo if it cannot be read.
Result<std::vector<CachedModel>> cached_models(const HubSettings& settings);

// Removes all revisions, or only the GGUF file that the model names. Returns the bytes freed.
// kNotFound if it is not cached.
Result<int64_t> remove_cached(const HubSettings& settings, const HubModel& model);

}  // namespace banyan
