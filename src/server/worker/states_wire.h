// What one engine asks another for: states of a prefix that it has computed. The body of POST
// /worker/states is a line of JSON, then three lists (server/worker/id_list.h): the tokens of whole
// pages, and of each unit its page and its class. The answer is a record (tier/record.h) for each
// unit that is in memory, in the same order.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"
#include "engine/tiers/export_units.h"

namespace banyan {

struct StatesRequest {
  std::string state_digest;  // in hexadecimal; both engines must have the same
  UnitsOfPrefix units;
};

// How many bytes of units one request may ask for, if it asks for several.
inline constexpr int64_t kStatesBytesMax = 64 << 20;

std::string write_states_request(const StatesRequest& request);
// kInvalidArgument names what is missing or wrong.
Result<StatesRequest> read_states_request(std::string_view body);

}  // namespace banyan
