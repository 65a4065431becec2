// The folder that huggingface_hub and everything over it shares:
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

// The folder of the revision as far as it is known here, or the GGUF file in it (of several parts:
// the first); "" if it is not, or if what an engine needs (config, tokenizer, weights, or all parts
// of the file) is not all there. Which file is meant depends on what the hub has of that revision,
// as far as that was noted; offline, what is here will do.
std::string cached_model(const HubSettings& settings, const HubModel& model);

// Notes the files that the hub has of a commit.
Status note_files(const HubSettings& settings, const HubModel& model, const std::string& commit,
                  const std::set<std::string>& files);

struct CachedModel {
  std::string repository;              // OWNER/NAME
  std::string folder;                  // of the newest snapshot, or of the repository
  std::vector<std::string> revisions;  // names and the commits they stand for: "main 1a2b..."
  int64_t bytes = 0;                   // on disk
  bool complete = false;               // can be run
  std::vector<std::string> ggufs;      // what may follow OWNER/NAME: for a GGUF file that is here
};

// Sorted by name. kIo if the folder cannot be read; none if there is no folder.
Result<std::vector<CachedModel>> cached_models(const HubSettings& settings);

// Removes all revisions, of a model with a GGUF file only that; gives how many bytes that frees.
// kNotFound if it is not there.
Result<int64_t> remove_cached(const HubSettings& settings, const HubModel& model);

}  // namespace banyan
