// A regular expression of a tokenizer.json, compiled with PCRE2.
//
// These files use Oniguruma (Ruby) syntax. The pattern is translated to an equivalent for PCRE2;
// constructs without a faithful translation are rejected by name. Matching steps are counted, so a
// catastrophic pattern ends in an error. Immutable; const use is thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "text/tokenizer/splitter.h"

struct pcre2_real_code_8;

namespace banyan {

// The PCRE2 pattern equivalent to Oniguruma's `pattern`. One difference remains: case folding
// follows Unicode 14.
Result<std::string> translate_pattern(std::string_view pattern);

// Scratch memory for matching; one per thread, for any number of patterns.
class PatternScratch {
 public:
  PatternScratch();
  PatternScratch(PatternScratch&&) noexcept;
  ~PatternScratch();

  // Starts a text of `text_bytes` bytes: resets the step budget, which all pieces of the text
  // share.
  void begin(size_t text_bytes);

 private:
  friend class Pattern;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

class Pattern {
 public:
  static Result<Pattern> compile(std::string_view pattern);

  // Appends the spans of `text` (valid UTF-8): matches, including empty ones, and the text between
  // them.
  Status split(std::string_view text, PatternScratch& scratch, std::vector<TextSpan>& spans) const;

  // `text` with every match replaced by `content`.
  Result<std::string> replace(std::string_view text, std::string_view content) const;

 private:
  Pattern() = default;

  std::string pattern_;
  std::shared_ptr<const pcre2_real_code_8> code_;
};

}  // namespace banyan
