// Two stores as one: a local one, and one that machines share for what the local one lacks.
//
// find() asks the shared store for the keys alone that the local one does not have, in one batch. A
// read goes to the local store first and falls through on any miss, damage included. A write goes
// to the local store, and to the shared one as well if the job says that it is worth the way. What
// was read from the shared store is not copied here: TierDone::unwritten says so, and the caller
// writes it to the local store when its policy wants it there.
//
// A shared store that is slow must not make the local one slow: finds go on without its answer
// after a while, and writes skip it while too many bytes are under way to it or after it has
// failed.
#pragma once

#include <memory>

#include "tier/store.h"

namespace banyan {

std::unique_ptr<TierStore> make_layered_store(std::unique_ptr<TierStore> local,
                                              std::unique_ptr<TierStore> shared);

}  // namespace banyan
