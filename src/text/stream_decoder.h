// Incremental decoding: tokens come one at a time, text goes out as early as it is certain.
//
// The parts that push() and finish() give out, joined, are what Tokenizer::decode() gives for all
// the tokens; with stop strings they end where the first one begins. The work per token does not
// grow with the history. In one case the two differ: a run of byte-fallback tokens that is not
// valid UTF-8 is U+FFFD for every byte to decode(), but its characters before the first wrong byte
// have been given out here when they were complete (ByteRuns::kByCharacters).
//
// One per sequence; belongs to one thread; the tokenizer must outlive it.
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
    std::optional<std::string> matched_stop;  // from then on nothing more comes out
  };

  // Empty stop strings are ignored.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens,
                std::vector<std::string> stop_strings = {});

  // Before the first push: the tokens to come go on after these, whose text is not given out. It
  // decides how theirs begins: with the space that a text's first token loses, with the rest of a
  // character. Only the last few of `before` are looked at.
  void follow(std::span<const TokenId> before);

  // Ids without a token add nothing.
  Delta push(TokenId id);
  // What was held back, which may complete a stop string; an incomplete character becomes U+FFFD.
  Delta finish();

 private:
  // Finds one stop string in a text that comes in parts (Knuth, Morris and Pratt).
  struct Stop {
    std::string text;
    std::vector<uint32_t> fallback;  // for each prefix: its longest proper prefix that ends it
    uint32_t matched = 0;            // how much of `text` the text so far ends in
  };

  Delta take(std::string_view text, bool last);
  std::string_view without_context(std::string_view text);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  DecoderState state_;
  std::string context_;  // the end of what `follow` was given, if it has yet to come out of state_
  std::vector<Stop> stops_;
  std::string held_;  // may be the beginning of a stop string
  bool stopped_ = false;
};

}  // namespace banyan
