// Pre-tokenization: a text is cut into pieces, and no token crosses from one to the next.
//
// A pre_tokenizer of tokenizer.json becomes a list of steps; each step maps every piece to pieces.
// To add a kind: a maker, and its row in the table in pre_tokenizer.cpp.
// Immutable after make(); const use is thread-safe with one PieceScratch per thread.
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

// How the matches of a pattern cut a text; the names are tokenizer.json's.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Piece {
  std::string_view text;
  bool at_start;  // whether it begins where the whole text begins
};

// Working memory of a pre-tokenizer; pieces may point into it.
struct PieceScratch {
  std::vector<Piece> pieces;
  std::vector<Piece> next;
  std::vector<TextSpan> spans;
  std::deque<std::string> texts;  // pieces that a step has rewritten
  PatternScratch regex;
};

class PreTokenizer {
 public:
  // Appends what becomes of one piece to scratch.next. Empty pieces may be among them.
  using Step = std::function<Status(const Piece& piece, PieceScratch& scratch)>;

  // No pre-tokenizer: a text is one piece.
  PreTokenizer() = default;
  // `json` is tokenizer.json's pre_tokenizer; `place` names it in messages.
  static Result<PreTokenizer> make(const Json& json, const std::string& place);
  // One regular expression, then bytes: what tiktoken does.
  static Result<PreTokenizer> make_tiktoken(std::string_view pattern);

  // Whether the last step writes bytes in the byte-level alphabet. run() leaves that step out if
  // `raw_bytes` is asked for, and pieces are then raw bytes.
  bool ends_in_byte_level() const { return ends_in_byte_level_; }

  // Leaves the pieces of `text` (valid UTF-8) in scratch.pieces, none of them empty.
  Status run(std::string_view text, bool at_start, bool raw_bytes, PieceScratch& scratch) const;

 private:
  std::vector<Step> steps_;
  bool ends_in_byte_level_ = false;
};

}  // namespace banyan
