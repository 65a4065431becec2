#include "differential/kernels.h"

#include <cstdlib>

#include "kernels/cuda/emulated/emulated.h"
#include "ptx/interpreted.h"
#include "support/sanitized.h"

namespace banyan::test {
namespace {

bool interprets() {
  const char* name = std::getenv("BANYAN_TEST_TABLE");
  return name != nullptr && std::string_view(name) == "ptx";
}

}  // namespace

const KernelTable& cuda_table() {
  return interprets() ? ptx::interpreted_table() : cuda::emulated::table();
}

std::vector<const KernelTable*> tables() {
  if (interprets()) return {*select_kernels("portable"), &cuda_table()};
  std::vector<const KernelTable*> all;
  for (const std::string& name : available_kernels()) all.push_back(*select_kernels(name));
  if (!kSanitized) all.push_back(&cuda_table());
  return all;
}

}  // namespace banyan::test
