#include "dist/comm.h"

namespace banyan {

void Comm::all_gather(std::span<const int64_t>, float*) {}

Comm& lone_rank() {
  static Comm comm;
  return comm;
}

}  // namespace banyan
