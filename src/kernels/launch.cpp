#include "kernels/launch.h"

namespace banyan {

void parallel_for(const Launch& launch, int64_t count, int64_t grain,
                  FunctionRef<void(int64_t, int64_t)> body) {
  if (launch.threads != nullptr) {
    launch.threads->parallel_for(count, grain, body);
  } else if (count > 0) {
    body(0, count);
  }
}

void parallel_interleaved(const Launch& launch, FunctionRef<void(int64_t, int64_t)> body) {
  if (launch.threads == nullptr) return body(0, 1);
  launch.threads->run([&](int worker) { body(worker, launch.threads->size()); });
}

int64_t span_rows(const SpanArgs* spans, int64_t span_count) {
  int64_t rows = 0;
  for (int64_t s = 0; s < span_count; ++s) rows += spans[s].row_count;
  return rows;
}

}  // namespace banyan
