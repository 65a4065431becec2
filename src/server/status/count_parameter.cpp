#include "server/status/count_parameter.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {

Result<int64_t> count_parameter(const HttpRequest& request, std::string_view name,
                                int64_t otherwise, int64_t max) {
  std::optional<std::string_view> text = request.parameter(name);
  if (!text) return otherwise;
  int64_t count = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  bool whole = error == std::errc() && end == text->data() + text->size();
  if (whole && count >= 1 && count <= max) return count;
  return invalid_argument("{} is {}; it must be an integer from 1 to {}", name, quote(*text), max);
}

}  // namespace banyan
