#include "text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include "base/quote.h"
#include "text/json_fields.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/pattern.h"
#include "unicode/normalization_form.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

using Step = Normalizer::Step;

constexpr size_t kBytesMax = size_t{1} << 31;  // limits how much a Replace may grow the text

template <NormalizationForm kForm>
Result<Step> make_form(const JsonFields&) {
  return [](NormalizedText& text) { return normalize(kForm, text.text); };
}

Result<Step> make_prepend(const JsonFields& fields) {
  return [prefix = TRY(fields.string("prepend"))](NormalizedText& text) -> Status {
    if (!text.text.empty()) text.text.insert(0, prefix);
    return {};
  };
}

Result<Step> make_replace(const JsonFields& fields) {
  std::string content = TRY(fields.string("content"));
  const JsonFields pattern = TRY(fields.object("pattern"));
  if (pattern.find("String") != nullptr) {
    std::string from = TRY(pattern.string("String"));
    if (from.empty()) return unsupported("{}: an empty pattern is not supported", pattern.place());
    return [=](NormalizedText& text) -> Status {
      text.text = unicode::replace_all(text.text, from, content);
      return {};
    };
  }
  auto regex = Pattern::compile(TRY(pattern.string("Regex")));
  if (!regex) return make_error(regex.error().code, pattern.place() + ": " + regex.error().message);
  return [regex = std::move(*regex), content](NormalizedText& text) -> Status {
    text.text = TRY(regex.replace(text.text, content));
    return {};
  };
}

size_t leading_spaces_end(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto [code, size] = unicode::decode(text.data() + at);
    if (!unicode::is(code, unicode::kSpace)) break;
    at += size;
  }
  return at;
}

size_t trailing_spaces_begin(std::string_view text) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [code, size] = unicode::decode(text.data() + at);
    at += size;
    if (!unicode::is(code, unicode::kSpace)) begin = at;
  }
  return begin;
}

Result<Step> make_strip(const JsonFields& fields) {
  const bool left = TRY(fields.boolean_or("strip_left", true));
  const bool right = TRY(fields.boolean_or("strip_right", true));
  return [=](NormalizedText& text) -> Status {
    if (right) text.text.resize(trailing_spaces_begin(text.text));
    if (!left) return {};
    const size_t begin = leading_spaces_end(text.text);
    text.at_start &= begin == 0;
    text.text.erase(0, begin);
    return {};
  };
}

// A step that maps each character to what `map(code, text)` appends.
template <class Map>
Step character_step(Map map) {
  return [map](NormalizedText& text) -> Status {
    std::string mapped;
    mapped.reserve(text.text.size());
    for (size_t at = 0; at < text.text.size();) {
      const auto [code, size] = unicode::decode(text.text.data() + at);
      map(code, mapped);
      at += size;
    }
    text.text = std::move(mapped);
    return {};
  };
}

Result<Step> make_strip_accents(const JsonFields&) {
  return character_step([](char32_t code, std::string& mapped) {
    if (!unicode::is(code, unicode::kMark)) unicode::append(mapped, code);
  });
}

Result<Step> make_lowercase(const JsonFields&) {
  return character_step([](char32_t code, std::string& mapped) {
    unicode::append(mapped,
                    static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    if (code == 0x130) mapped += "\u0307";  // the only character with a two-character lower case
  });
}

// SentencePiece's cleanup: removes control characters, turns unusual spaces into ' '.
Result<Step> make_nmt(const JsonFields&) {
  return character_step([](char32_t code, std::string& mapped) {
    const bool control = (code >= 0x1 && code <= 0x8) || code == 0xB ||
                         (code >= 0xE && code <= 0x1F) || code == 0x7F || code == 0x8F ||
                         code == 0x9F;
    if (control) return;
    const bool space = code == 0x9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
                       (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 ||
                       code == 0x2581 || code == 0xFEFF || code == 0xFFFD;
    unicode::append(mapped, space ? U' ' : code);
  });
}

Result<Step> make_byte_level(const JsonFields&) {
  return [](NormalizedText& text) -> Status {
    std::string spelled;
    byte_level::append_spelled(spelled, text.text);
    text.text = std::move(spelled);
    return {};
  };
}

struct NormalizerKind {
  std::string_view name;
  Result<Step> (*make)(const JsonFields& fields);
};

constexpr NormalizerKind kNormalizers[] = {
    {"NFC", make_form<NormalizationForm::kNfc>},
    {"NFD", make_form<NormalizationForm::kNfd>},
    {"NFKC", make_form<NormalizationForm::kNfkc>},
    {"NFKD", make_form<NormalizationForm::kNfkd>},
    {"Prepend", make_prepend},
    {"Replace", make_replace},
    {"Strip", make_strip},
    {"StripAccents", make_strip_accents},
    {"Lowercase", make_lowercase},
    {"Nmt", make_nmt},
    {"ByteLevel", make_byte_level},
};

}  // namespace

Result<Normalizer> Normalizer::make(const Json& json, const std::string& place) {
  Normalizer made;
  if (json.is_null()) return made;
  TRY(for_each_part(json, place, "normalizer", "normalizers", kNormalizers,
                    [&](const NormalizerKind& kind, const JsonFields& fields) -> Status {
                      made.steps_.push_back(TRY(kind.make(fields)));
                      return {};
                    }));
  return made;
}

Status Normalizer::run(NormalizedText& text) const {
  for (const Step& step : steps_) {
    TRY(step(text));
    if (text.text.size() > kBytesMax) {
      return exhausted("the normalized text is longer than {} bytes", kBytesMax);
    }
  }
  return {};
}

}  // namespace banyan
