// The pause instruction of a polling loop, which yields to the core's other hardware thread. The
// only architecture-specific code outside kernels.
#pragma once

namespace banyan {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace banyan
