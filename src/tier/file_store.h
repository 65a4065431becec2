// Records as files of a file system that several machines share (NFS, CephFS, Lustre): one file for
// each, which appears whole or not at all.
//
//   DIR/FORMAT
//   DIR/<digest>/meta.json
//   DIR/<digest>/<first two digits>/<page key>-<class>-<rank>-of-<ranks>
//
// Any number of processes read and write at once: equal names hold equal states, so the last to
// rename one is as good as the first. Nothing is removed but what is damaged and, by `banyan cache
// gc`, what was used long ago: how much there may be is the file system's business.
#pragma once

#include <memory>

#include "tier/registry.h"
#include "tier/storage.h"

namespace banyan {

Result<std::unique_ptr<TierStore>> open_file_store(const TierConfig& config,
                                                   const TierStates& states, Storage& storage);
Result<std::unique_ptr<TierStore>> make_file_store(const TierConfig& config,
                                                   const TierStates& states);

}  // namespace banyan
