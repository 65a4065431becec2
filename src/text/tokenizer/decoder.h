// Decodes tokens to text.
//
// A decoder of tokenizer.json is a chain: steps on single tokens, a joint that joins them into one
// text, and steps on that text. DecoderState runs the chain one token at a time and emits text as
// soon as no later token can change it. Decoding a whole sequence uses the same path, so both agree
// by construction. ByteRuns allows one exception: emitting characters of a run of byte tokens
// early.
//
// A Decoder is immutable after make() and thread-safe. A DecoderState belongs to one thread and
// must not outlive its Decoder. To add a kind, write a maker and add its row to the table in
// decoder.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"
#include "text/tokenizer/pattern.h"

namespace banyan {

struct DecoderStep {
  enum class Kind {
    kReplace,       // replaces every `from` (or match of `regex`) with `to`
    kByteFallback,  // runs of tokens <0x00> to <0xFF>: their text, or one U+FFFD per byte
    kStrip,         // removes up to start_max / stop_max characters `from` at the ends
    kMetaspace,     // `from` becomes a space; removed in the first token if `prepended`
    kWordEnd,       // `from` becomes a space; removed in the last token
    kWordPiece,     // a space before each token but the first, or drops `from` at its start
  };
  Kind kind;
  std::string from = {}, to = {};
  std::optional<Pattern> regex = {};
  size_t start_max = 0, stop_max = 0;
  bool prepended = false;
  bool cleanup = false;  // kWordPiece: no space before punctuation and English contractions
};

class Decoder {
 public:
  // How tokens are joined into text.
  enum class Joint { kConcatenate, kByteLevel, kSpaces };

  // `json` is tokenizer.json's decoder; `place` names it in errors. Null: joins tokens with spaces,
  // as the reference does.
  static Result<Decoder> make(const Json& json, const std::string& place);
  // For tokens spelled in the byte-level alphabet.
  static Decoder make_byte_level();

  // The bytes of a token in the middle of a text.
  std::string token_bytes(std::string_view spelling) const;

 private:
  friend class DecoderState;
  friend struct DecoderBuilder;

  std::vector<DecoderStep> token_steps_;
  Joint joint_ = Joint::kSpaces;
  std::vector<DecoderStep> text_steps_;
};

// When to emit the text of a run of byte tokens (ByteFallback). If one byte makes a run invalid,
// the reference turns all its bytes into U+FFFD, so no text is final before the run ends.
enum class ByteRuns {
  kWhole,         // at the end of the run: exactly the reference's text
  kByCharacters,  // each character once it is complete. In an invalid run, characters before the
                  // first invalid byte have been emitted; each later byte becomes U+FFFD.
};

class DecoderState {
 public:
  explicit DecoderState(const Decoder& decoder, ByteRuns byte_runs = ByteRuns::kWhole);

  // Appends to `text` what is final after this token.
  Status push(std::string_view spelling, std::string& text);
  // Appends the rest; an incomplete character becomes U+FFFD. The state cannot be used afterwards.
  Status finish(std::string& text);

 private:
  struct StepState {
    std::string held;      // kByteFallback: bytes of the run; kWordEnd: the last token so far; text
                           // steps: what may yet change
    size_t removed = 0;    // kStrip on text: characters removed at the start
    bool started = false;  // kStrip on text: past the start; others: past the first token
    bool broken = false;   // kByteFallback by characters: the run has an invalid byte
  };

  Status token_step(size_t index, std::string_view token, std::string& text);
  Status flush_bytes(size_t index, std::string& text);
  Status give_characters(StepState& state, std::string& text);
  Status join(std::string_view token, std::string& text);
  void take_characters(std::string& out);
  void text_step(size_t index, std::string_view part, bool last, std::string& text);
  void replace_in_text(const DecoderStep& step, StepState& state, bool last, std::string& out);
  void strip_text(const DecoderStep& step, StepState& state, bool last, std::string& out);

  const Decoder* decoder_;
  bool by_characters_ = false;
  std::vector<StepState> token_states_, text_states_;
  std::string partial_;  // kByteLevel: bytes of an incomplete character
  bool joined_any_ = false;
};

}  // namespace banyan
