// Stands in for kernels/x86 on other processors.
#include "kernels/choice/processor.h"
#include "kernels/x86/x86.h"

namespace banyan {

std::vector<MeasuredTable> simd::runnable_tables() {
  return {};
}

const char* simd::table_left_out() {
  return nullptr;
}

Processor this_processor() {
  return {};
}

}  // namespace banyan
