// Whether sanitizers watch. Code that they slow down tenfold sweeps fewer cases of a kind then; the
// ordinary run of the tests sweeps all of them.
#pragma once

namespace banyan::test {

#ifdef BANYAN_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace banyan::test
