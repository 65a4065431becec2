// Incremental detokenization: takes one token at a time and emits text as soon as it is final.
//
// The joined output of push() and finish() equals Tokenizer::decode() of all tokens, cut before the
// first stop string. The cost per token does not grow with the history.
//
// One exception: decode() turns every byte of an invalid run of byte-fallback tokens into U+FFFD.
// Here, characters of the run before its first invalid byte are emitted as they complete
// (ByteRuns::kByCharacters).
//
// One per sequence, used by one thread. The tokenizer must outlive it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace banyan {

class StreamDecoder {
 public:
  struct Delta {
    std::string text;
    std::optional<std::string> matched_stop;  // after this, no more text is emitted
  };

  // Empty stop strings are ignored.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens,
                std::vector<std::string> stop_strings = {});

  // Call before the first push(). Sets the preceding tokens, whose text is not emitted but decides
  // how the new text starts: whether the first token loses its space, or completes a character.
  // Only the last few tokens of `before` matter.
  void follow(std::span<const TokenId> before);

  // Ids without a token add nothing.
  Delta push(TokenId id);
  // Emits the held-back text, which may complete a stop string. An incomplete character becomes
  // U+FFFD.
  Delta finish();

 private:
  // Streaming search for one stop string (Knuth-Morris-Pratt).
  struct Stop {
    std::string text;
    std::vector<uint32_t>
        fallback;          // for each prefix, its longest proper prefix that is also a suffix
    uint32_t matched = 0;  // length of the longest prefix of `text` that the output ends in
  };

  Delta take(std::string_view text, bool last);
  std::string_view without_context(std::string_view text);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  DecoderState state_;
  std::string context_;  // text of the tokens given to `follow` that state_ has yet to emit
  std::vector<Stop> stops_;
  std::string held_;  // possible start of a stop string
  bool stopped_ = false;
};

}  // namespace banyan
