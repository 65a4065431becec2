#include "unicode/normalization_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "unicode/unicode.h"

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

uint16_t combining_class(utf8proc_int32_t code) {
  return static_cast<uint16_t>(utf8proc_get_property(code)->combining_class);
}

// Sorts runs of combining marks by class (Unicode's canonical ordering). utf8proc swaps neighbours,
// which is quadratic in the length of the run.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (auto begin = codes.begin(); begin != codes.end(); ++begin) {
    if (combining_class(*begin) == 0) continue;
    auto end = std::find_if(begin, codes.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    if (end == codes.end()) return;
    begin = end;
  }
}

Status append_normalized(NormalizationForm form, std::string_view text, std::string& out) {
  const auto options = static_cast<utf8proc_option_t>(options_of(form));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto [code, size] = unicode::decode(text.data() + at);
    at += size;
    utf8proc_int32_t parts[32];  // the longest decomposition is 18, of U+FDFA
    int unused = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(code), parts, std::ssize(parts), options, &unused);
    if (count < 0)
      return exhausted("normalizing U+{:04X}: {}", static_cast<uint32_t>(code),
                       utf8proc_errmsg(count));
    codes.insert(codes.end(), parts, parts + count);
  }
  order_marks(codes);
  auto size = static_cast<utf8proc_ssize_t>(codes.size());
  if ((options & UTF8PROC_COMPOSE) != 0)
    size = utf8proc_normalize_utf32(codes.data(), size, options);
  for (utf8proc_ssize_t i = 0; i < size; ++i) {
    unicode::append(out, static_cast<char32_t>(codes[i]));
  }
  return {};
}

// Decomposes the text between characters that must stay unchanged.
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

// NFC. Calls utf8proc only on stretches that may change: from the inert character before (which may
// be extended) to the next one.
Status compose(std::string& text) {
  const auto& classes = unicode::classes();
  std::string out;
  size_t copied = 0;  // text before this has been copied to `out`
  size_t inert = 0;   // start of the last inert character
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
