// Block hashes of weight files that were hashed before, one small file for each, so that a large
// checkpoint is read once and not at every start.
//
// A file of weights is the same while its path, size, inode and times are. An entry that says
// something else, is cut or is damaged counts as absent, and one that cannot be written is left
// out: the cache never fails anything. Who may write to the folder may lie about a checkpoint, as
// who may write to the checkpoint may.
#pragma once

#include <span>
#include <string>

#include "base/digest.h"
#include "base/file.h"

namespace banyan {

class HashCache {
 public:
  // Keeps nothing where `folder` is "".
  explicit HashCache(std::string folder) : folder_(std::move(folder)) {}

  // Fills `hashes`, as many as the file at `path` has blocks. False when they are not known.
  bool find(const std::string& path, const FileIdentity& identity, std::span<Digest> hashes) const;
  // Files that changed a moment ago are not kept: they may change again without a change in their
  // times, which are as coarse as two seconds on some file systems.
  void keep(const std::string& path, const FileIdentity& identity,
            std::span<const Digest> hashes) const;

 private:
  std::string entry_path(const std::string& path) const;

  std::string folder_;
};

}  // namespace banyan
