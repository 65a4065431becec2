#include "text/tokenizer/pre_tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/quote.h"
#include "text/json_fields.h"
#include "text/tokenizer/byte_level.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

using SplitStep = PreTokenizer::Step;
using Steps = std::vector<SplitStep>;

Result<SplitBehavior> behavior_of(const JsonFields& fields) {
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const std::string name = TRY(fields.string_or("behavior", "Isolated"));
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  return unsupported("{}: behavior {} is not supported", fields.place(), quote(name));
}

// Merges neighbouring spans in place according to `behavior`.
void merge_spans(SplitBehavior behavior, std::vector<TextSpan>& spans) {
  if (behavior == SplitBehavior::kIsolated || behavior == SplitBehavior::kRemoved) return;
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(spans.begin(), spans.end());
  std::vector<TextSpan> merged;
  bool previous = false;
  for (const TextSpan& span : spans) {
    const bool join = behavior == SplitBehavior::kContiguous ? span.matched == previous
                                                             : span.matched && !previous;
    if (join && !merged.empty()) {
      merged.back().begin = std::min(merged.back().begin, span.begin);
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
    previous = span.matched;
  }
  if (backwards) std::reverse(merged.begin(), merged.end());
  spans = std::move(merged);
}

// Splits `piece` at scratch.spans and appends the resulting pieces.
void cut(const Piece& piece, SplitBehavior behavior, PieceScratch& scratch) {
  merge_spans(behavior, scratch.spans);
  for (const TextSpan& span : scratch.spans) {
    if (behavior == SplitBehavior::kRemoved && span.matched) continue;
    scratch.next.push_back(
        {piece.text.substr(span.begin, span.end - span.begin), piece.at_start && span.begin == 0});
  }
}

// Splits at characters accepted by `matches`; each is a match of its own.
template <class Matches>
SplitStep character_step(SplitBehavior behavior, Matches matches) {
  return [=](const Piece& piece, PieceScratch& scratch) -> Status {
    scratch.spans.clear();
    uint32_t gap = 0, at = 0;
    const auto size = static_cast<uint32_t>(piece.text.size());
    while (at < size) {
      const auto [code, bytes] = unicode::decode(piece.text.data() + at);
      if (matches(code)) {
        if (gap != at) scratch.spans.push_back({gap, at, false});
        scratch.spans.push_back({at, at + bytes, true});
        gap = at + bytes;
      }
      at += bytes;
    }
    if (gap != size) scratch.spans.push_back({gap, size, false});
    cut(piece, behavior, scratch);
    return {};
  };
}

SplitStep splitter_step(Splitter splitter, SplitBehavior behavior, bool invert) {
  return [=](const Piece& piece, PieceScratch& scratch) -> Status {
    scratch.spans.clear();
    splitter(piece.text, scratch.spans);
    if (invert) {
      for (TextSpan& span : scratch.spans) span.matched = !span.matched;
    }
    cut(piece, behavior, scratch);
    return {};
  };
}

SplitStep regex_step(Pattern regex, SplitBehavior behavior, bool invert) {
  return [=, regex = std::move(regex)](const Piece& piece, PieceScratch& scratch) -> Status {
    scratch.spans.clear();
    TRY(regex.split(piece.text, scratch.regex, scratch.spans));
    if (invert) {
      for (TextSpan& span : scratch.spans) span.matched = !span.matched;
    }
    cut(piece, behavior, scratch);
    return {};
  };
}

SplitStep string_step(std::string pattern, SplitBehavior behavior, bool invert) {
  return [=](const Piece& piece, PieceScratch& scratch) -> Status {
    scratch.spans.clear();
    auto add = [&](size_t begin, size_t end, bool matched) {
      if (begin == end) return;
      scratch.spans.push_back(
          {static_cast<uint32_t>(begin), static_cast<uint32_t>(end), matched != invert});
    };
    size_t gap = 0;
    for (size_t at = piece.text.find(pattern); at != piece.text.npos;
         at = piece.text.find(pattern, gap)) {
      add(gap, at, false);
      gap = at + pattern.size();
      add(at, gap, true);
    }
    add(gap, piece.text.size(), false);
    cut(piece, behavior, scratch);
    return {};
  };
}

Result<SplitStep> pattern_step(std::string_view pattern, SplitBehavior behavior, bool invert) {
  if (Splitter splitter = find_splitter(pattern)) return splitter_step(splitter, behavior, invert);
  return regex_step(TRY(Pattern::compile(pattern)), behavior, invert);
}

SplitStep byte_alphabet_step() {
  return [](const Piece& piece, PieceScratch& scratch) -> Status {
    std::string& spelled = scratch.texts.emplace_back();
    byte_level::append_spelled(spelled, piece.text);
    scratch.next.push_back({spelled, piece.at_start});
    return {};
  };
}

SplitStep prefix_space_step() {
  return [](const Piece& piece, PieceScratch& scratch) -> Status {
    if (piece.text.starts_with(' ')) {
      scratch.next.push_back(piece);
      return {};
    }
    std::string& text = scratch.texts.emplace_back(1, ' ');
    text += piece.text;
    scratch.next.push_back({text, piece.at_start});
    return {};
  };
}

Status add_byte_level(const JsonFields& fields, Steps& steps) {
  if (TRY(fields.boolean_or("add_prefix_space", true))) steps.push_back(prefix_space_step());
  if (TRY(fields.boolean_or("use_regex", true))) {
    constexpr std::string_view kPattern =
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    steps.push_back(splitter_step(find_splitter(kPattern), SplitBehavior::kIsolated, false));
  }
  steps.push_back(byte_alphabet_step());
  return {};
}

Status add_split(const JsonFields& fields, Steps& steps) {
  const SplitBehavior behavior = TRY(behavior_of(fields));
  const bool invert = TRY(fields.boolean_or("invert", false));
  const JsonFields pattern = TRY(fields.object("pattern"));
  if (pattern.find("String") != nullptr) {
    std::string text = TRY(pattern.string("String"));
    if (text.empty()) return unsupported("{}: an empty pattern is not supported", pattern.place());
    steps.push_back(string_step(std::move(text), behavior, invert));
    return {};
  }
  auto step = pattern_step(TRY(pattern.string("Regex")), behavior, invert);
  if (!step) return make_error(step.error().code, pattern.place() + ": " + step.error().message);
  steps.push_back(std::move(*step));
  return {};
}

enum class PrependScheme { kFirst, kAlways, kNever };

SplitStep metaspace_step(std::string replacement, PrependScheme scheme) {
  return [=](const Piece& piece, PieceScratch& scratch) -> Status {
    std::string text;
    for (char c : piece.text) {
      if (c == ' ') {
        text += replacement;
      } else {
        text += c;
      }
    }
    const bool prepend =
        scheme == PrependScheme::kAlways || (scheme == PrependScheme::kFirst && piece.at_start);
    if (prepend && !text.starts_with(replacement)) text.insert(0, replacement);
    scratch.next.push_back({scratch.texts.emplace_back(std::move(text)), piece.at_start});
    return {};
  };
}

Status add_metaspace(const JsonFields& fields, Steps& steps) {
  const std::string replacement = TRY(fields.string("replacement"));
  size_t unused = 0;
  if (replacement.empty() || unicode::character_size(replacement, unused) != replacement.size()) {
    return fields.wrong("replacement", "one character");
  }
  const std::string name = TRY(fields.string_or("prepend_scheme", "always"));
  PrependScheme scheme = PrependScheme::kAlways;
  if (name == "first") {
    scheme = PrependScheme::kFirst;
  } else if (name == "never") {
    scheme = PrependScheme::kNever;
  } else if (name != "always") {
    return unsupported("{}: prepend_scheme {} is not supported", fields.place(), quote(name));
  }
  if (!TRY(fields.boolean_or("add_prefix_space", true))) {
    if (scheme != PrependScheme::kNever) {
      return corrupt("{}: add_prefix_space is false but prepend_scheme is \"{}\"", fields.place(),
                     name);
    }
  }
  steps.push_back(metaspace_step(replacement, scheme));
  if (TRY(fields.boolean_or("split", true))) {
    steps.push_back(string_step(replacement, SplitBehavior::kMergedWithNext, false));
  }
  return {};
}

// Rust's char::is_numeric: N, plus two ranges newer than Unicode 16.
bool is_numeric(char32_t code) {
  return unicode::is(code, unicode::kNumber) || (code >= 0x11DE0 && code <= 0x11DE9) ||
         (code >= 0x16FF4 && code <= 0x16FF6);
}

Status add_digits(const JsonFields& fields, Steps& steps) {
  const bool individual = TRY(fields.boolean_or("individual_digits", false));
  steps.push_back(character_step(individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                                 is_numeric));
  return {};
}

bool is_space(char32_t code) {
  return unicode::is(code, unicode::kSpace);
}

// Punctuation in Rust's unicode_categories (Unicode 8) and ASCII: today's P without later
// additions, plus the two that have left P, plus the ASCII symbols.
bool is_punctuation(char32_t code) {
  constexpr std::pair<char32_t, char32_t> kLater[] = {
      {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},
      {0xC84, 0xC84},     {0x1B4E, 0x1B4F},   {0x1B7D, 0x1B7F},   {0x2E43, 0x2E4F},
      {0x2E52, 0x2E5D},   {0x10D6E, 0x10D6E}, {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59},
      {0x10F86, 0x10F89}, {0x113D4, 0x113D8}, {0x1144B, 0x1144F}, {0x1145A, 0x1145D},
      {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946},
      {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11AA2}, {0x11B00, 0x11B09},
      {0x11BE1, 0x11BE1}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8},
      {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16D6D, 0x16D6F},
      {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E5FF, 0x1E5FF}, {0x1E95E, 0x1E95F}};
  const uint32_t classes = unicode::classes()[code];
  if (code < 0x80) return (classes & (unicode::kPunctuation | unicode::kSymbol)) != 0;
  if (code == 0x166D || code == 0x111C9) return true;
  if ((classes & unicode::kPunctuation) == 0) return false;
  return std::ranges::none_of(
      kLater, [=](auto& range) { return code >= range.first && code <= range.second; });
}

Status add_punctuation(const JsonFields& fields, Steps& steps) {
  steps.push_back(character_step(TRY(behavior_of(fields)), is_punctuation));
  return {};
}

Status add_whitespace_split(const JsonFields&, Steps& steps) {
  steps.push_back(character_step(SplitBehavior::kRemoved, is_space));
  return {};
}

Status add_bert(const JsonFields& fields, Steps& steps) {
  TRY(add_whitespace_split(fields, steps));
  steps.push_back(character_step(SplitBehavior::kIsolated, is_punctuation));
  return {};
}

Status add_delimiter(const JsonFields& fields, Steps& steps) {
  std::string delimiter = TRY(fields.string("delimiter"));
  if (delimiter.empty()) return fields.wrong("delimiter", "one character");
  steps.push_back(string_step(std::move(delimiter), SplitBehavior::kRemoved, false));
  return {};
}

// Implements \w+|[^\w\s]+ and drops spaces.
Status add_whitespace(const JsonFields&, Steps& steps) {
  auto split = [](std::string_view text, std::vector<TextSpan>& spans) {
    auto kind = [](char32_t code) {
      const uint32_t classes = unicode::classes()[code];
      return (classes & unicode::kWord) != 0 ? 1 : (classes & unicode::kSpace) != 0 ? 2 : 0;
    };
    uint32_t begin = 0;
    int running = -1;
    for (uint32_t at = 0; at < text.size();) {
      const auto [code, size] = unicode::decode(text.data() + at);
      const int now = kind(code);
      if (now != running && at > begin) spans.push_back({begin, at, running == 2});
      if (now != running) begin = at;
      running = now;
      at += size;
    }
    if (begin < text.size()) {
      spans.push_back({begin, static_cast<uint32_t>(text.size()), running == 2});
    }
  };
  steps.push_back(splitter_step(split, SplitBehavior::kRemoved, false));
  return {};
}

Status add_fixed_length(const JsonFields& fields, Steps& steps) {
  const int64_t length = TRY(fields.integer("length"));
  if (length < 1) return fields.wrong("length", "1 or more characters");
  steps.push_back([length](const Piece& piece, PieceScratch& scratch) -> Status {
    for (size_t at = 0, begin = 0; at < piece.text.size(); begin = at) {
      for (int64_t i = 0; i < length && at < piece.text.size(); ++i) {
        at += unicode::decode(piece.text.data() + at).size;
      }
      scratch.next.push_back({piece.text.substr(begin, at - begin), piece.at_start && begin == 0});
    }
    return {};
  });
  return {};
}

struct PreTokenizerKind {
  std::string_view name;
  Status (*add)(const JsonFields& fields, Steps& steps);
};

constexpr PreTokenizerKind kPreTokenizers[] = {
    {"ByteLevel", add_byte_level},
    {"Split", add_split},
    {"Metaspace", add_metaspace},
    {"Digits", add_digits},
    {"Punctuation", add_punctuation},
    {"Whitespace", add_whitespace},
    {"WhitespaceSplit", add_whitespace_split},
    {"BertPreTokenizer", add_bert},
    {"FixedLength", add_fixed_length},
    {"CharDelimiterSplit", add_delimiter},
    {"Delimiter", add_delimiter},
};

}  // namespace

Result<PreTokenizer> PreTokenizer::make(const Json& json, const std::string& place) {
  PreTokenizer made;
  if (json.is_null()) return made;
  std::string_view last;
  TRY(for_each_part(json, place, "pre-tokenizer", "pretokenizers", kPreTokenizers,
                    [&](const PreTokenizerKind& kind, const JsonFields& fields) {
                      last = kind.name;
                      return kind.add(fields, made.steps_);
                    }));
  made.ends_in_byte_level_ = last == "ByteLevel";
  return made;
}

Result<PreTokenizer> PreTokenizer::make_tiktoken(std::string_view pattern) {
  PreTokenizer made;
  made.steps_ = {TRY(pattern_step(pattern, SplitBehavior::kRemoved, true)), byte_alphabet_step()};
  made.ends_in_byte_level_ = true;
  return made;
}

Status PreTokenizer::run(std::string_view text, bool at_start, bool raw_bytes,
                         PieceScratch& scratch) const {
  CHECK(!raw_bytes || ends_in_byte_level_);
  scratch.texts.clear();
  scratch.pieces.assign(1, {text, at_start});
  const size_t count = steps_.size() - (raw_bytes ? 1 : 0);
  for (size_t i = 0; i < count; ++i) {
    scratch.next.clear();
    for (const Piece& piece : scratch.pieces) {
      if (!piece.text.empty()) TRY(steps_[i](piece, scratch));
    }
    scratch.pieces.swap(scratch.next);
  }
  std::erase_if(scratch.pieces, [](const Piece& piece) { return piece.text.empty(); });
  return {};
}

}  // namespace banyan
