#include "text/chat_template.h"

#include <utility>

#include "base/error.h"
#include "jinja/ast.h"
#include "jinja/interpreter.h"

namespace banyan {
namespace {

struct Size {
  int64_t values = 0;
  int64_t bytes = 0;
};

// Counts the values and bytes in `json` without recursion, since untrusted JSON may be nested
// deeply.
Size measure(const Json& json) {
  Size size;
  std::vector<const Json*> left = {&json};
  while (!left.empty()) {
    const Json& at = *left.back();
    left.pop_back();
    ++size.values;
    if (at.is_string()) size.bytes += at.get_ref<const std::string&>().size();
    if (at.is_structured()) {
      for (const Json& child : at) left.push_back(&child);
    }
  }
  return size;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, TemplateLimits limits) {
  if (source.size() > limits.source_bytes_max) {
    return exhausted("chat template: {} bytes, the limit is {}", source.size(),
                     limits.source_bytes_max);
  }
  ChatTemplate result;
  result.ast_ = TRY(jinja::parse_template(source, limits.nesting_max));
  result.limits_ = limits;
  return result;
}

Result<std::string> ChatTemplate::render(const Json& variables,
                                         const RenderOptions& options) const {
  if (!variables.is_object()) {
    return invalid_argument("chat template: the variables must be an object, not {}",
                            variables.type_name());
  }
  Size size = measure(variables);
  jinja::RunLimits limits;
  limits.fuel = limits_.fuel_max + size.values * limits_.fuel_per_variable +
                size.bytes * limits_.fuel_per_byte;
  limits.depth_max = limits_.depth_max;
  limits.memory_bytes_max = limits_.memory_bytes_max;
  limits.output_bytes_max = limits_.output_bytes_max;
  std::time_t now = options.clock ? options.clock() : std::time(nullptr);
  return jinja::Interpreter(*ast_, limits, now).render(variables);
}

}  // namespace banyan
