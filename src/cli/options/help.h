// What `banyan VERB --help` prints.
#pragma once

#include <string>

#include "cli/verb.h"

namespace banyan::cli {

// Usage, options and examples in 80 columns. Lists the common options; with `all`, every option
// that is not hidden, by group and with all its names, and the verb's notes.
std::string help_of(const Verb& verb, bool all);

}  // namespace banyan::cli
