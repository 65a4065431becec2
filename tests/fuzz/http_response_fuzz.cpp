// Any answer of a server in pieces of any size: what a load test's client makes of it does not
// depend on where it was cut, and no event makes it read beyond its bytes.
//
// The input is the size of a piece in a byte, then the answer.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "client/event_stream.h"
#include "client/response_reader.h"
#include "client/serving_api.h"

namespace {

struct Reading {
  bool complete = false;
  std::vector<std::string> events;
};

Reading read_in_pieces(std::string_view bytes, size_t piece) {
  Reading reading;
  banyan::EventStream events;
  banyan::ResponseReader reader([&](std::string_view part) {
    CHECK(events.feed(part, [&](std::string_view data) { reading.events.emplace_back(data); }),
          "an event within the input is not too long");
  });
  bool ok = true;
  for (size_t i = 0; i < bytes.size() && ok && !reader.done(); i += piece) {
    ok = reader.feed(bytes.substr(i, piece)).has_value();
  }
  reading.complete = ok && reader.end().has_value();
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Reading whole = read_in_pieces(bytes, bytes.size() + 1);
  Reading pieces = read_in_pieces(bytes, data[0] + size_t{1});
  // What is wrong may be seen sooner in one of them.
  CHECK(whole.complete == pieces.complete, "an answer is complete in one way of cutting it alone");
  if (whole.complete) CHECK(whole.events == pieces.events, "cutting an answer changes its events");
  using banyan::ServingApi;
  std::string answer;
  for (const std::string& event : whole.events) {
    for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions, ServingApi::kChat}) {
      banyan::read_event(api, event);
      banyan::take_text(api, event, answer);
    }
  }
  return 0;
}
