// Any bytes as a worker's stream of KV events, in pieces sized by the first byte: messages that a
// router can apply, or an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "router/fleet_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  size_t piece = size_t{1} + data[0];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  banyan::FleetView view({.classes = {.page_size_tokens = 64}, .workers_max = 1});
  view.add(0);
  banyan::KvStreamReader reader;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.add(bytes.substr(0, piece));
    while (true) {
      auto message = reader.next();
      if (!message) {
        CHECK(!message.error().message.empty());
        return 0;
      }
      if (!*message) break;
      view.apply(0, **message, 0);
    }
  }
  return 0;
}
