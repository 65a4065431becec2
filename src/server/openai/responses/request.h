// Translates the body of /v1/responses into the form that chat templates expect.
//
// Stateless; thread-safe.
#pragma once

#include <string>

#include "base/json.h"
#include "server/chat.h"
#include "server/fields/request.h"
#include "server/json/endpoint.h"

namespace banyan {

struct ResponsesRequest {
  ChatRequest chat;
  Json input;            // this request's items; a plain text becomes one item
  Json messages;         // the conversation, earlier turns included, without the instructions
  std::string previous;  // previous_response_id; "": none
  bool store = true;
  bool stream = false;
  Json settings;  // request settings that the answer repeats
};

Parsed<ResponsesRequest> read_responses_request(const RequestContext& context,
                                                RequestFields& fields);

}  // namespace banyan
