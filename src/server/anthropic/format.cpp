#include "server/anthropic/format.h"

#include <string>

namespace banyan {
namespace {

std::string_view error_name(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
    case 405:
      return "not_found_error";
    case 408:
      return "timeout_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

Json anthropic_error(int status, std::string_view message, std::string_view code) {
  std::string text(message);
  // Clients look for this text to know that they must shorten the conversation.
  if (code == "context_length_exceeded") text.insert(0, "prompt is too long: ");
  return {{"type", "error"}, {"error", {{"type", error_name(status)}, {"message", text}}}};
}

}  // namespace banyan
