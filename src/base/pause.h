// What a thread does between two looks at what it waits for: it lets the core's other hardware
// thread go first. The one place outside kernels that names a processor.
#pragma once

namespace banyan {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace banyan
