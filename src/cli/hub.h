// banyan pull, list, rm: manage models fetched from a hub.
#pragma once

#include "cli/verb.h"

namespace banyan::cli {

extern const Verb kPullVerb, kListVerb, kRemoveVerb;

}  // namespace banyan::cli
