// What `banyan VERB --help` prints.
#pragma once

#include <string>

#include "cli/verb.h"

namespace banyan::cli {

// Usage, options and examples in 80 columns. The common options, or with `all` every one that is
// not hidden, by group, with all its names, and the verb's notes.
std::string help_of(const Verb& verb, bool all);

}  // namespace banyan::cli
