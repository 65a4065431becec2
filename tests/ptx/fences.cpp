// Fences between the generic and the asynchronous proxy, and hints for the whole grid.
#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::fences {
namespace {

void run_nothing(Warp&, const Instruction&) {}

void run_proxy(Warp& warp, const Instruction&) {
  warp.fence_proxy();
  warp.block_of.mbarriers.fence();
}
void run_mbarrier_init(Warp& warp, const Instruction&) {
  warp.block_of.mbarriers.fence();
}

void decode_fence(Line& line) {
  line.instruction.run = &run_nothing;
  if (line.take("proxy")) {
    line.need("async");
    for (const char* space : {"shared::cta", "shared::cluster", "global"}) line.take(space);
    line.instruction.run = &run_proxy;
    return;
  }
  if (line.take("mbarrier_init")) line.instruction.run = &run_mbarrier_init;
  for (const char* order :
       {"sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys"}) {
    line.take(order);
  }
}

// Launches here run one after the other.
void decode_griddepcontrol(Line& line) {
  if (!line.take("wait")) line.need("launch_dependents");
  line.instruction.run = &run_nothing;
}

void decode_setmaxnreg(Line& line) {
  if (!line.take("inc")) line.need("dec");
  line.need("sync");
  line.need("aligned");
  line.need("u32");
  uint64_t count = line.number();
  if (count < 24 || count > 256 || count % 8 != 0) fail("setmaxnreg of {} registers", count);
  line.instruction.run = &run_nothing;
  line.instruction.together = Together::kWarp;
}

constexpr Rule kRules[] = {{"fence", decode_fence},
                           {"griddepcontrol", decode_griddepcontrol},
                           {"setmaxnreg", decode_setmaxnreg}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::fences
