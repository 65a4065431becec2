// Any bytes between a router and a worker, or two workers: a request that is written again as it
// was read, lines of an answer, the worker's description, or an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/worker/states_wire.h"
#include "server/worker/wire.h"
#include "server/worker/worker_info.h"

namespace {

void read_requests(std::string_view text) {
  banyan::Result<banyan::WireRequest> request = banyan::read_request(text);
  if (!request) {
    CHECK(!request.error().message.empty());
    return;
  }
  std::string written = banyan::write_request(*request);
  banyan::Result<banyan::WireRequest> again = banyan::read_request(written);
  CHECK(again, "{}", again.error().message);
  CHECK(banyan::write_request(*again) == written);
  CHECK(banyan::request_digest(*again) == banyan::request_digest(*request));
}

void read_states_requests(std::string_view text) {
  banyan::Result<banyan::StatesRequest> request = banyan::read_states_request(text);
  if (!request) {
    CHECK(!request.error().message.empty());
    return;
  }
  std::string written = banyan::write_states_request(*request);
  banyan::Result<banyan::StatesRequest> again = banyan::read_states_request(written);
  CHECK(again && banyan::write_states_request(*again) == written);
}

// The lines share an object, whose memory they reuse.
void read_lines(std::string_view text) {
  banyan::WireLine line;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    if (banyan::read_line(text.substr(0, end), line)) {
      bool is_event = line.kind == banyan::WireLine::Kind::kEvent;
      CHECK(!is_event || line.event.top.size() == line.top.size());
      CHECK(!is_event || line.event.chosen.size() == line.chosen.size());
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  read_requests(text);
  read_states_requests(text);
  read_lines(text);
  (void)banyan::read_worker_info(text);
  (void)banyan::read_engine_hangs(text);
  return 0;
}
