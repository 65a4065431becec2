// Caches block hashes of weight files, one small file each, so that a large checkpoint is hashed
// once instead of at every start.
//
// A weight file is unchanged while its path, size, inode and times are. Entries that mismatch, are
// truncated or damaged count as absent, and failed writes are ignored: the cache never causes an
// error. Write access to the cache folder must be trusted like write access to the checkpoint.
#pragma once

#include <span>
#include <string>

#include "base/digest.h"
#include "base/file.h"

namespace banyan {

class HashCache {
 public:
  // Disabled if `folder` is "".
  explicit HashCache(std::string folder) : folder_(std::move(folder)) {}

  // Fills `hashes`, one per block of the file at `path`. False if they are not cached.
  bool find(const std::string& path, const FileIdentity& identity, std::span<Digest> hashes) const;
  // Does not store recently changed files: they may change again with equal timestamps, which have
  // a resolution of two seconds on some file systems.
  void keep(const std::string& path, const FileIdentity& identity,
            std::span<const Digest> hashes) const;

 private:
  std::string entry_path(const std::string& path) const;

  std::string folder_;
};

}  // namespace banyan
