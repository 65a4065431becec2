// Combines two stores: a local one, and a shared one for what the local one lacks.
//
// find() asks the shared store, in one batch, only for keys that the local one does not have. A
// read goes to the local store first and to the shared one on any miss, including damage. A write
// goes to the local store, and also to the shared one if the job says that it is worth it. Records
// read from the shared store are not copied here: TierDone::unwritten reports them, and the caller
// writes them to the local store if its policy says so.
//
// A slow shared store must not slow down the local one: after a while finds continue without its
// answer. Writes skip it while too many bytes are queued for it, and after a failure.
#pragma once

#include <memory>

#include "tier/store.h"

namespace banyan {

std::unique_ptr<TierStore> make_layered_store(std::unique_ptr<TierStore> local,
                                              std::unique_ptr<TierStore> shared);

}  // namespace banyan
