#include "weights/name_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace banyan {

struct NamePattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }

  pcre2_code* code = nullptr;
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
};

Result<NamePattern> NamePattern::compile(std::string_view regex) {
  constexpr uint32_t kMatchLimit = 100'000;
  auto compiled = std::make_shared<Compiled>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                                 PCRE2_NO_UTF_CHECK, &error, &offset, nullptr);
  if (compiled->code == nullptr) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(error, text, sizeof(text));
    return invalid_argument("invalid regex at offset {}: {}", offset,
                            reinterpret_cast<const char*>(text));
  }
  compiled->data = pcre2_match_data_create(1, nullptr);
  compiled->context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(compiled->context, kMatchLimit);
  return NamePattern(std::move(compiled));
}

bool NamePattern::matches(std::string_view name) const {
  return pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                     compiled_->data, compiled_->context) >= 0;
}

}  // namespace banyan
