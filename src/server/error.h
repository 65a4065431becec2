// Error responses: statuses, types and bodies. Stateless; thread-safe.
#pragma once

#include <string_view>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

// 400 for errors that the caller can fix, 503 for kExhausted, 500 for all others.
int http_status(ErrorCode code);

// The error type that OpenAI clients expect for a status: "invalid_request_error".
std::string_view error_type(int status);

// The error body in the format of the protocol that `path` belongs to. By default it combines
// OpenAI's {"error": {message, type, param, code}} with SGLang's flat {object, message, type,
// param, code}, so that clients of either can read it. `code` is OpenAI's string, null if empty;
// SGLang's is the status.
Json error_json(int status, std::string_view message, std::string_view param = {},
                std::string_view code = {}, std::string_view path = {});

}  // namespace banyan
