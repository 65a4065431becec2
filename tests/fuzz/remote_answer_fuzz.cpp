// Any answer of another server to a program's call: it becomes a result or an error, whole or as
// events of a stream.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "program/remote/format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using banyan::ServingApi;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  banyan::Result<banyan::Json> answer = banyan::parse_json(text, "answer");
  if (!answer) return 0;
  for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions, ServingApi::kChat}) {
    (void)banyan::read_gen(api, *answer);
    (void)banyan::read_scores(api, *answer);
    banyan::GenResult result;
    (void)banyan::read_gen_event(api, *answer, result);
    (void)banyan::read_gen_event(api, *answer, result);
  }
  return 0;
}
