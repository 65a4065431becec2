// Pre-tokenization: splits a text into pieces; no token spans two pieces.
//
// Compiles a pre_tokenizer of tokenizer.json into a list of steps that each split pieces into
// pieces. To add a kind, write a maker and add its row to the table in pre_tokenizer.cpp. Immutable
// after make(); const use is thread-safe with one PieceScratch per thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/splitter.h"

namespace banyan {

// How the matches of a pattern split a text; names as in tokenizer.json.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Piece {
  std::string_view text;
  bool at_start;  // the piece starts at the start of the whole text
};

// Scratch memory of a pre-tokenizer; pieces may point into it.
struct PieceScratch {
  std::vector<Piece> pieces;
  std::vector<Piece> next;
  std::vector<TextSpan> spans;
  std::deque<std::string> texts;  // pieces rewritten by a step
  PatternScratch regex;
};

class PreTokenizer {
 public:
  // Appends the pieces of one piece to scratch.next; some may be empty.
  using Step = std::function<Status(const Piece& piece, PieceScratch& scratch)>;

  // No pre-tokenizer: the whole text is one piece.
  PreTokenizer() = default;
  // `json` is tokenizer.json's pre_tokenizer; `place` names it in errors.
  static Result<PreTokenizer> make(const Json& json, const std::string& place);
  // One regular expression, then bytes, as in tiktoken.
  static Result<PreTokenizer> make_tiktoken(std::string_view pattern);

  // Whether the last step encodes bytes in the byte-level alphabet. With `raw_bytes`, run() skips
  // that step and yields raw bytes.
  bool ends_in_byte_level() const { return ends_in_byte_level_; }

  // Stores the non-empty pieces of `text` (valid UTF-8) in scratch.pieces.
  Status run(std::string_view text, bool at_start, bool raw_bytes, PieceScratch& scratch) const;

 private:
  std::vector<Step> steps_;
  bool ends_in_byte_level_ = false;
};

}  // namespace banyan
