#include "server/adapters/scales.h"

#include "base/error.h"
#include "base/signed.h"
#include "server/fields/request.h"

namespace banyan {

Result<std::string> adapter_of_scales(const Json& scales, std::span<const std::string> adapters) {
  if (!scales.is_array())
    return invalid_argument("{} is not a list of {{id, scale}}", show(scales));
  std::string chosen;
  for (const Json& entry : scales) {
    bool known = entry.is_object() && entry.contains("id") && entry.contains("scale") &&
                 entry["scale"].is_number();
    if (!known) return invalid_argument("{} is not {{id, scale}}", show(entry));
    auto id = as_integer(entry["id"]);
    if (!id || *id < 0 || *id >= std::ssize(adapters)) {
      return invalid_argument("id {}: there are {} adapters", show(entry["id"]), adapters.size());
    }
    auto scale = entry["scale"].get<double>();
    if (scale == 0) continue;
    if (scale != 1 || !chosen.empty()) {
      return unsupported("scale {} of id {}: a request has one adapter, at scale 1",
                         show(entry["scale"]), *id);
    }
    chosen = adapters[as_size(*id)];
  }
  return chosen;
}

}  // namespace banyan
