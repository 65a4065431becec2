#include "server/error.h"

#include <array>

#include "server/anthropic/format.h"
#include "server/llamacpp/format.h"
#include "server/ollama/format.h"

namespace banyan {

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 405:
      return "method_not_allowed_error";
    case 408:
      return "timeout_error";
    case 413:
      return "request_too_large_error";
    case 417:
      return "expectation_failed_error";
    case 429:
      return "rate_limit_error";
    case 431:
      return "headers_too_large_error";
    case 499:
      return "client_closed_error";
    case 503:
      return "unavailable_error";
    case 505:
      return "http_version_error";
    default:
      return status < 500 ? "invalid_request_error" : "internal_error";
  }
}

namespace {

Json string_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// Error formats of other protocols, by path prefix.
struct ErrorShape {
  std::string_view paths;
  Json (*write)(int status, std::string_view message, std::string_view code);
};
constexpr auto kShapes = std::to_array<ErrorShape>({
    {"/v1/messages", anthropic_error},
    {"/api/", ollama_error},
    {"/completion", llama_error},
    {"/chat/completions", llama_error},
    {"/infill", llama_error},
    {"/props", llama_error},
    {"/slots", llama_error},
    {"/lora-adapters", llama_error},
    {"/embedding", llama_error},
    {"/rerank", llama_error},
    {"/apply-template", llama_error},
});

}  // namespace

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kExhausted:
    case ErrorCode::kCancelled:
      return 503;
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
      break;
  }
  return 500;
}

Json error_json(int status, std::string_view message, std::string_view param, std::string_view code,
                std::string_view path) {
  for (const ErrorShape& shape : kShapes) {
    if (path.starts_with(shape.paths)) return shape.write(status, message, code);
  }
  std::string_view type = error_type(status);
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", string_or_null(param)},
            {"code", string_or_null(code)}}},
          {"object", "error"},
          {"message", message},
          {"type", type},
          {"param", string_or_null(param)},
          {"code", status}};
}

}  // namespace banyan
