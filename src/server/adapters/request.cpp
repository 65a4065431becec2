#include "server/adapters/request.h"

#include <fmt/format.h>

#include <optional>

#include "base/signed.h"
#include "server/adapters/scales.h"
#include "server/fields/sampling.h"

namespace banyan {
namespace {

// lora_path; absent: the request has none. `prompts` is 0 where it may be no list.
std::optional<std::string> read_path(RequestFields& fields, size_t prompt, size_t prompts) {
  const Json* path = fields.find("lora_path");
  if (path == nullptr) return std::nullopt;
  if (!path->is_array()) return fields.string("lora_path", kNameBytesMax);
  bool fits = prompts > 0 && path->size() == prompts &&
              ((*path)[prompt].is_null() || (*path)[prompt].is_string());
  if (!fits) {
    fields.fail("lora_path",
                fmt::format(" is {}; it must be a name{}", show(*path),
                            prompts > 0 ? ", or a list with a name or null for each prompt" : ""));
    return std::nullopt;
  }
  if ((*path)[prompt].is_null()) return std::nullopt;
  return (*path)[prompt].get<std::string>();
}

}  // namespace

std::string read_adapter(RequestFields& fields, const RequestContext& context) {
  return read_adapter_of(fields, context, 0, 0);
}

std::string read_adapter_of(RequestFields& fields, const RequestContext& context, size_t prompt,
                            size_t prompts) {
  std::optional<std::string> adapter = read_path(fields, prompt, prompts);
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
