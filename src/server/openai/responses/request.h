// A body of /v1/responses in the form that chat templates know.
//
// Stateless; safe from many threads at once.
#pragma once

#include <string>

#include "base/json.h"
#include "server/chat.h"
#include "server/fields/request.h"
#include "server/json/endpoint.h"

namespace banyan {

struct ResponsesRequest {
  ChatRequest chat;
  Json input;            // the items of this request, a text made one
  Json messages;         // the conversation so far without the instructions, of earlier turns too
  std::string previous;  // previous_response_id; "": none
  bool store = true;
  bool stream = false;
  Json settings;  // what the answer repeats of the request
};

Parsed<ResponsesRequest> read_responses_request(const RequestContext& context,
                                                RequestFields& fields);

}  // namespace banyan
