// A regular expression of a tokenizer.json, compiled with PCRE2.
//
// Those files are written for Oniguruma (Ruby syntax). The pattern is translated to what means the
// same to PCRE2; whatever has no faithful translation is refused by name. The steps of matching are
// counted, so a catastrophic pattern ends in an error. Immutable; const use is thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "text/tokenizer/splitter.h"

struct pcre2_real_code_8;

namespace banyan {

// The PCRE2 pattern that matches what Oniguruma's `pattern` does. Differences that remain: case
// folding is that of Unicode 14.
Result<std::string> translate_pattern(std::string_view pattern);

// What one thread needs for matching: any patterns, one after the other.
class PatternScratch {
 public:
  PatternScratch();
  PatternScratch(PatternScratch&&) noexcept;
  ~PatternScratch();

  // A new text of so many bytes: what may be spent on matching in it, whatever it is cut into.
  void begin(size_t text_bytes);

 private:
  friend class Pattern;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

class Pattern {
 public:
  static Result<Pattern> compile(std::string_view pattern);

  // Appends the spans of `text`, valid UTF-8: matches, empty ones included, and what lies between.
  Status split(std::string_view text, PatternScratch& scratch, std::vector<TextSpan>& spans) const;

  // `text` with every match replaced by `content`.
  Result<std::string> replace(std::string_view text, std::string_view content) const;

 private:
  Pattern() = default;

  std::string pattern_;
  std::shared_ptr<const pcre2_real_code_8> code_;
};

}  // namespace banyan
