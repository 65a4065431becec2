#include "text/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/quote.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr size_t kPatternBytesMax = 1 << 16;
constexpr uint32_t kMatchLimit = 20'000'000;  // backtracking limit per match
// Steps of all matches in a text: 50 million plus 64 per byte, well under a second for a long chat.
// A tokenizer's pattern takes 2 to 8 per byte, but looking ahead from each digit of an n-digit
// number takes n * n.
constexpr int64_t kSteps = 50'000'000;
constexpr int64_t kStepsPerByte = 64;
constexpr uint32_t kHeapLimitKib = 64 << 10;
constexpr size_t kJitStackBytesMax = 8 << 20;

template <class T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* it) const { kFree(it); }
};
template <class T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Freer<T, kFree>>;

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(error, buffer, sizeof buffer) < 0) return "unknown";
  return reinterpret_cast<const char*>(buffer);
}

// Work counted by PCRE2 callouts. There is a callout before every item of a pattern; the work is
// the distance moved in the text since the last one.
struct Work {
  int64_t left = kSteps;
  size_t place = 0;
};

int count_work(pcre2_callout_block* block, void* data) {
  Work& work = *static_cast<Work*>(data);
  const size_t place = block->current_position;
  work.left -=
      1 + static_cast<int64_t>(place > work.place ? place - work.place : work.place - place);
  work.place = place;
  return work.left < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

}  // namespace

struct PatternScratch::Parts {
  Work work;
  Owned<pcre2_match_data, pcre2_match_data_free> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_match_context, pcre2_match_context_free> context{pcre2_match_context_create(nullptr)};
  Owned<pcre2_jit_stack, pcre2_jit_stack_free> stack{
      pcre2_jit_stack_create(32 << 10, kJitStackBytesMax, nullptr)};

  Parts() {
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    pcre2_set_callout(context.get(), count_work, &work);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

PatternScratch::PatternScratch() : parts_(std::make_unique<Parts>()) {}
PatternScratch::PatternScratch(PatternScratch&&) noexcept = default;
PatternScratch::~PatternScratch() = default;

void PatternScratch::begin(size_t text_bytes) {
  parts_->work.left = kSteps + kStepsPerByte * text_bytes;
}

Result<Pattern> Pattern::compile(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) {
    return exhausted("a pattern of {} bytes; the limit is {}", pattern.size(), kPatternBytesMax);
  }
  const std::string translated = TRY(translate_pattern(pattern));
  Owned<pcre2_compile_context, pcre2_compile_context_free> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 128);
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE |
                        PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT,
                    &error, &place, context.get());
  if (code == nullptr) {
    return corrupt("the pattern {} does not compile: {}", quote(pattern), message_of(error));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT support, PCRE2 interprets
  Pattern regex;
  regex.pattern_ = pattern;
  regex.code_ = {code, [](const pcre2_code* it) { pcre2_code_free(const_cast<pcre2_code*>(it)); }};
  return regex;
}

Status Pattern::split(std::string_view text, PatternScratch& scratch,
                      std::vector<TextSpan>& spans) const {
  PatternScratch::Parts& matcher = *scratch.parts_;
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(matcher.data.get());
  size_t gap = 0, from = 0;
  matcher.work.place = 0;
  bool matched_before = false;
  while (from <= text.size()) {
    const int count =
        pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK, matcher.data.get(), matcher.context.get());
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count == PCRE2_ERROR_CALLOUT) {
      return exhausted("the pattern {} exceeds {} + {} per byte matching steps on the text",
                       quote(pattern_), kSteps, kStepsPerByte);
    }
    if (count < 0) {
      return exhausted("matching the pattern {} against {} bytes of text failed: {}",
                       quote(pattern_), text.size(), message_of(count));
    }
    const size_t begin = found[0], end = found[1];
    if (begin == end && matched_before && begin == gap) {
      // An empty match at the end of the last match does not count: continue after the next
      // character.
      if (from >= text.size()) break;
      from += unicode::decode(text.data() + from).size;
      continue;
    }
    auto add = [&](size_t first, size_t last, bool matched) {
      spans.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(last), matched});
    };
    if (gap != begin) add(gap, begin, false);
    add(begin, end, true);
    gap = from = end;
    matched_before = true;
  }
  if (gap != text.size()) {
    spans.push_back({static_cast<uint32_t>(gap), static_cast<uint32_t>(text.size()), false});
  }
  return {};
}

Result<std::string> Pattern::replace(std::string_view text, std::string_view content) const {
  PatternScratch scratch;
  scratch.begin(text.size());
  std::vector<TextSpan> spans;
  TRY(split(text, scratch, spans));
  std::string replaced;
  for (const TextSpan& span : spans) {
    replaced += span.matched ? content : text.substr(span.begin, span.end - span.begin);
  }
  return replaced;
}

}  // namespace banyan
