#include "dist/comm.h"

namespace banyan {

void Comm::all_gather(std::span<const int64_t>, float*) {}
void Comm::broadcast(std::vector<std::byte>&) {}

Comm& lone_rank() {
  static Comm comm;
  return comm;
}

}  // namespace banyan
