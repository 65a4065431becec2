#include "text/normalization_form.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "text/unicode.h"

namespace banyan {
namespace {

int options_of(NormalizationForm form) {
  switch (form) {
    case NormalizationForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalizationForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalizationForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalizationForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

Status append_normalized(NormalizationForm form, std::string_view text, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &result,
                                             static_cast<utf8proc_option_t>(options_of(form)));
  if (size < 0) return exhausted("normalizing {} bytes: {}", text.size(), utf8proc_errmsg(size));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
  return {};
}

// Decomposes what lies between the characters that are to stay as they are.
Status decompose(NormalizationForm form, std::string_view text, std::string& out) {
  const auto& classes = unicode::classes();
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [code, size] = unicode::decode(text.data() + at);
    if ((classes[code] & unicode::kNotNormalized) != 0) {
      TRY(append_normalized(form, text.substr(begin, at - begin), out));
      out += text.substr(at, size);
      begin = at + size;
    }
    at += size;
  }
  return append_normalized(form, text.substr(begin), out);
}

// NFC, calling utf8proc only on the stretches that it may change: each from the inert character
// before (which it may extend) to the next one.
Status compose(std::string& text) {
  const auto& classes = unicode::classes();
  std::string out;
  size_t copied = 0;  // text before this is in `out`
  size_t inert = 0;   // where the last inert character begins
  for (size_t at = 0; at < text.size();) {
    const auto [code, size] = unicode::decode(text.data() + at);
    if ((classes[code] & unicode::kNfcInert) != 0) {
      inert = (classes[code] & unicode::kNotNormalized) != 0 ? at + size : at;
      at += size;
      continue;
    }
    size_t end = at + size;
    while (end < text.size()) {
      const auto [next, next_size] = unicode::decode(text.data() + end);
      if ((classes[next] & unicode::kNfcInert) != 0) break;
      end += next_size;
    }
    out.append(text, copied, inert - copied);
    TRY(append_normalized(NormalizationForm::kNfc,
                          std::string_view(text).substr(inert, end - inert), out));
    copied = inert = at = end;
  }
  if (copied == 0) return {};
  out.append(text, copied);
  text = std::move(out);
  return {};
}

}  // namespace

Status normalize(NormalizationForm form, std::string& text) {
  if (unicode::is_ascii(text)) return {};
  if (form == NormalizationForm::kNfc) return compose(text);
  const bool composed = form == NormalizationForm::kNfkc;
  std::string out;
  TRY(decompose(composed ? NormalizationForm::kNfkd : form, text, out));
  text = std::move(out);
  return composed ? compose(text) : Status();
}

}  // namespace banyan
