// From tokens back to text.
//
// A decoder of tokenizer.json is a chain: steps that see one token after the other, a joint that
// makes one text of them, and steps on that text. DecoderState runs the chain one token at a time
// and gives out text as soon as no later token can change it; decoding a whole sequence is the same
// thing done at once, so both agree by construction. One thing may be asked for earlier than it is
// certain: the characters of a run of byte tokens (ByteRuns).
//
// A Decoder is immutable after make() and thread-safe; a DecoderState belongs to one thread and
// must not outlive its Decoder. To add a kind: a maker, and its row in the table in decoder.cpp.
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
    kReplace,       // every `from` (or match of `regex`) by `to`
    kByteFallback,  // runs of tokens <0x00> to <0xFF> by the bytes' text, or U+FFFD for each
    kStrip,         // up to start_max / stop_max characters `from` at the ends
    kMetaspace,     // `from` by a space; in the first token by nothing if `prepended`
    kWordEnd,       // `from` by a space; in the last token by nothing
    kWordPiece,     // a space before each but the first token, or no `from` at its start
  };
  Kind kind;
  std::string from = {}, to = {};
  std::optional<Pattern> regex = {};
  size_t start_max = 0, stop_max = 0;
  bool prepended = false;
  bool cleanup = false;  // kWordPiece: no spaces before punctuation and English contractions
};

class Decoder {
 public:
  // How tokens become one text.
  enum class Joint { kConcatenate, kByteLevel, kSpaces };

  // `json` is tokenizer.json's decoder; `place` names it in messages. Null: tokens are joined by
  // spaces, as the reference does.
  static Result<Decoder> make(const Json& json, const std::string& place);
  // Tokens are bytes spelled in the byte-level alphabet.
  static Decoder make_byte_level();

  // The bytes that a token stands for somewhere inside a text.
  std::string token_bytes(std::string_view spelling) const;

 private:
  friend class DecoderState;
  friend struct DecoderBuilder;

  std::vector<DecoderStep> token_steps_;
  Joint joint_ = Joint::kSpaces;
  std::vector<DecoderStep> text_steps_;
};

// When the text of a run of byte tokens (ByteFallback) is given out. The reference turns every byte
// of a run into U+FFFD if one of them makes it invalid, so nothing is certain before the run's end.
enum class ByteRuns {
  kWhole,         // at the end of the run: exactly the reference's text
  kByCharacters,  // each character once it is complete. In an invalid run those before the first
                  // wrong byte are then given out already; from there on each byte is a U+FFFD.
};

class DecoderState {
 public:
  explicit DecoderState(const Decoder& decoder, ByteRuns byte_runs = ByteRuns::kWhole);

  // Appends to `text` what is certain once this token is known.
  Status push(std::string_view spelling, std::string& text);
  // Appends the rest; an incomplete character becomes U+FFFD. The state is then spent.
  Status finish(std::string& text);

 private:
  struct StepState {
    std::string held;      // kByteFallback: bytes of the run; kWordEnd: the last token so far; text
                           // steps: what may yet change
    size_t removed = 0;    // kStrip on text: characters removed at the start
    bool started = false;  // kStrip on text: the start is behind; others: so is the first token
    bool broken = false;   // kByteFallback by characters: the run has had a wrong byte
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
  std::string partial_;  // kByteLevel: the bytes of an incomplete character
  bool joined_any_ = false;
};

}  // namespace banyan
