#include "server/adapters/request.h"

#include <fmt/format.h>

#include <optional>

#include "base/signed.h"
#include "server/adapters/scales.h"
#include "server/fields/sampling.h"

namespace banyan {
namespace {

// lora_path; absent: the request has none.
std::optional<std::string> read_path(RequestFields& fields, size_t prompt) {
  const Json* path = fields.find("lora_path");
  if (path == nullptr) return std::nullopt;
  if (path->is_string()) return fields.string("lora_path", kNameBytesMax);
  bool fits = path->is_array() && prompt < path->size() &&
              ((*path)[prompt].is_null() || (*path)[prompt].is_string());
  if (!fits) {
    fields.fail("lora_path", fmt::format(" is {}; it must be a name, or a list with a name or null "
                                         "for each prompt",
                                         show(*path)));
    return std::nullopt;
  }
  if ((*path)[prompt].is_null()) return std::nullopt;
  return (*path)[prompt].get<std::string>();
}

}  // namespace

std::string read_adapter(RequestFields& fields, const RequestContext& context, size_t prompt) {
  std::optional<std::string> adapter = read_path(fields, prompt);
  if (!adapter) adapter = context.adapter_of(fields.string("model", kNameBytesMax));
  const Json* scales = fields.find("lora");
  if (!adapter && scales != nullptr) {
    Result<std::string> scaled = adapter_of_scales(*scales, context.adapters);
    if (!scaled) fields.fail("lora", ": " + scaled.error().message, scaled.error().code);
    adapter = scaled.value_or("");
  }
  std::string chosen = adapter.value_or(context.defaults.adapter);
  if (!chosen.empty() && context.routed) {
    fields.fail("lora_path", " is not supported by a router yet; ask one of its workers",
                ErrorCode::kUnsupported);
  }
  return chosen;
}

}  // namespace banyan
