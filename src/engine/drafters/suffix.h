// Suffix decoding (Oliaro et al. 2024, arXiv:2411.04975): occurrences of the sequence's last tokens
// in its own text, and in recent texts of the same namespace, vote for what follows. The most
// frequent continuation is taken, as far as it is as likely as not to be worth a row.
//
// Texts are kept strictly by namespace (adapter, salt, extra key): how fast drafts are would tell
// what others wrote. For each, the newest half and the half before it are kept and the rest
// forgotten; of the namespaces, those that were used last.
#pragma once

#include <memory>

#include "engine/drafters/drafter.h"

namespace banyan {

std::unique_ptr<Drafter> make_suffix_drafter();

}  // namespace banyan
