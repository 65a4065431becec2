// Whether sanitizers are on. Code that they slow down tenfold then sweeps fewer cases; the normal
// run sweeps all.
#pragma once

namespace banyan::test {

#ifdef BANYAN_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace banyan::test
