// The folder that disk stores share: its lock, its format, and a folder for each StateDigest.
//
//   DIR/LOCK                     held by the process that serves from it
//   DIR/FORMAT                   "banyan cache 1"
//   DIR/WRITTEN                  what was written on which day
//   DIR/<digest>/meta.json       the digest's parts, for people
//   DIR/<digest>/class<n>.idx, DIR/<digest>/class<n>-<nnnn>.slab
//   DIR/rank-<r>-of-<n>/...      the same, of a rank of several
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "tier/registry.h"
#include "tier/storage.h"

namespace banyan {

// Held by one process at a time; released however that process ends.
class FolderLock {
 public:
  // kExhausted: another process holds it.
  static Result<FolderLock> take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Where rank `rank` keeps its files.
std::string rank_folder(const std::string& folder, int rank, int ranks);
// The subfolders with stores: its own and those of ranks.
std::vector<std::string> rank_folders(Storage& storage, const std::string& folder);

// Refuses a folder with other contents, so that no foreign files are ever removed; creates the
// format in an empty one. kIo: a restart may help.
Status prepare_folder(Storage& storage, const std::string& folder);
// The same, but creates nothing.
Status check_folder(Storage& storage, const std::string& folder);

// The contents of a digest's folder.
struct DigestFolder {
  std::string digest;  // its name
  int64_t bytes = 0;   // size of its files
  int64_t used_s = 0;  // last use, in seconds since 1970
};
std::vector<DigestFolder> list_digests(Storage& storage, const std::string& folder);
bool is_digest(std::string_view name);

// meta.json.
std::string describe_states(const TierConfig& config, const TierStates& states);

}  // namespace banyan
