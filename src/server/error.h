// Errors as HTTP answers.
#pragma once

#include <string_view>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

// 400 for what the caller can mend, 503 for kExhausted, 500 for the rest.
int http_status(ErrorCode code);

// "invalid_request_error": what OpenAI's clients know a status by.
std::string_view error_type(int status);

// In the shape of the protocol that has `path`. Where none has one of its own: OpenAI's {"error":
// {message, type, param, code}} together with SGLang's flat {object, message, type, param, code},
// so that clients of either find what they read. `code` is OpenAI's string, null if empty; SGLang's
// is the status.
Json error_json(int status, std::string_view message, std::string_view param = {},
                std::string_view code = {}, std::string_view path = {});

}  // namespace banyan
