#include "text/tokenizer/decoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/quote.h"
#include "text/json_fields.h"
#include "text/tokenizer/byte_level.h"
#include "unicode/unicode.h"

namespace banyan {

using Kind = DecoderStep::Kind;

// Gives the makers below access to Decoder's members.
struct DecoderBuilder {
  Decoder made;
  bool joined = false;

  std::vector<DecoderStep>& steps() { return joined ? made.text_steps_ : made.token_steps_; }
  void join(Decoder::Joint joint) {
    made.joint_ = joint;
    joined = true;
  }
};

namespace {

constexpr size_t kStepsMax = 16;
constexpr std::string_view kReplacement = "\uFFFD";

// The text of a WordPiece token; `first`: at the start of the text.
std::string word_piece(const DecoderStep& step, std::string_view token, bool first) {
  std::string text;
  if (first) {
    text = token;
  } else if (token.starts_with(step.from)) {
    text = token.substr(step.from.size());
  } else {
    text = " " + std::string(token);
  }
  constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  if (!step.cleanup) return text;
  for (const auto& [from, to] : kCleanups) text = unicode::replace_all(text, from, to);
  return text;
}

// The byte of a token <0x00> to <0xFF>.
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

// Removes up to start_max and stop_max characters `from` at the ends of `token`.
std::string_view strip(const DecoderStep& step, std::string_view token) {
  for (size_t i = 0; i < step.start_max && token.starts_with(step.from); ++i) {
    token.remove_prefix(step.from.size());
  }
  for (size_t i = 0; i < step.stop_max && token.ends_with(step.from); ++i) {
    token.remove_suffix(step.from.size());
  }
  return token;
}

Status add_step(DecoderBuilder& builder, DecoderStep step) {
  auto& steps = builder.steps();
  if (steps.size() == kStepsMax) return exhausted("a decoder of more than {} steps", kStepsMax);
  steps.push_back(std::move(step));
  return {};
}

Status refuse_after_joint(const JsonFields& fields, const DecoderBuilder& builder) {
  if (!builder.joined) return {};
  return unsupported("{}: the decoder {} after Fuse or ByteLevel is not supported", fields.place(),
                     TRY(fields.string("type")));
}

Status add_byte_level(const JsonFields& fields, DecoderBuilder& builder) {
  TRY(refuse_after_joint(fields, builder));
  builder.join(Decoder::Joint::kByteLevel);
  return {};
}

Status add_fuse(const JsonFields&, DecoderBuilder& builder) {
  if (!builder.joined) builder.join(Decoder::Joint::kConcatenate);
  return {};
}

Status add_byte_fallback(const JsonFields& fields, DecoderBuilder& builder) {
  TRY(refuse_after_joint(fields, builder));
  return add_step(builder, {.kind = Kind::kByteFallback});
}

Status add_replace(const JsonFields& fields, DecoderBuilder& builder) {
  DecoderStep step{.kind = Kind::kReplace, .to = TRY(fields.string("content"))};
  const JsonFields pattern = TRY(fields.object("pattern"));
  if (pattern.find("String") != nullptr) {
    step.from = TRY(pattern.string("String"));
    if (step.from.empty()) {
      return unsupported("{}: an empty pattern is not supported", pattern.place());
    }
  } else {
    TRY(refuse_after_joint(fields, builder));
    step.regex = TRY(Pattern::compile(TRY(pattern.string("Regex"))));
  }
  return add_step(builder, std::move(step));
}

Result<std::string> character(const JsonFields& fields, std::string_view key) {
  std::string text = TRY(fields.string(key));
  size_t unused = 0;
  if (text.empty() || unicode::character_size(text, unused) != text.size()) {
    return fields.wrong(key, "one character");
  }
  return text;
}

Status add_strip(const JsonFields& fields, DecoderBuilder& builder) {
  DecoderStep step{.kind = Kind::kStrip, .from = TRY(character(fields, "content"))};
  const int64_t start = TRY(fields.integer("start")), stop = TRY(fields.integer("stop"));
  constexpr int64_t kMax = 1 << 16;
  if (start < 0 || start > kMax) return fields.wrong("start", "0 to 65536");
  if (stop < 0 || stop > kMax) return fields.wrong("stop", "0 to 65536");
  step.start_max = start;
  step.stop_max = stop;
  return add_step(builder, std::move(step));
}

Status add_metaspace(const JsonFields& fields, DecoderBuilder& builder) {
  TRY(refuse_after_joint(fields, builder));
  DecoderStep step{.kind = Kind::kMetaspace, .from = TRY(character(fields, "replacement"))};
  const std::string scheme = TRY(fields.string_or("prepend_scheme", "always"));
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return unsupported("{}: prepend_scheme {} is not supported", fields.place(), quote(scheme));
  }
  const bool add_prefix = TRY(fields.boolean_or("add_prefix_space", true));
  step.prepended = scheme != "never" && add_prefix;
  return add_step(builder, std::move(step));
}

Status add_bpe(const JsonFields& fields, DecoderBuilder& builder) {
  TRY(refuse_after_joint(fields, builder));
  std::string suffix = TRY(fields.string_or("suffix", "</w>"));
  if (suffix.empty()) return fields.wrong("suffix", "a text");
  return add_step(builder, {.kind = Kind::kWordEnd, .from = std::move(suffix)});
}

Status add_word_piece(const JsonFields& fields, DecoderBuilder& builder) {
  TRY(refuse_after_joint(fields, builder));
  DecoderStep step{.kind = Kind::kWordPiece, .from = TRY(fields.string_or("prefix", "##"))};
  step.cleanup = TRY(fields.boolean_or("cleanup", true));
  return add_step(builder, std::move(step));
}

struct KnownDecoder {
  std::string_view name;
  Status (*add)(const JsonFields& fields, DecoderBuilder& builder);
};

constexpr KnownDecoder kDecoders[] = {
    {"ByteLevel", add_byte_level},
    {"ByteFallback", add_byte_fallback},
    {"Fuse", add_fuse},
    {"Replace", add_replace},
    {"Strip", add_strip},
    {"Metaspace", add_metaspace},
    {"BPEDecoder", add_bpe},
    {"WordPiece", add_word_piece},
};

}  // namespace

Result<Decoder> Decoder::make(const Json& json, const std::string& place) {
  if (json.is_null()) return Decoder();
  DecoderBuilder builder;
  builder.made.joint_ = Joint::kConcatenate;
  TRY(for_each_part(json, place, "decoder", "decoders", kDecoders,
                    [&](const KnownDecoder& kind, const JsonFields& fields) {
                      return kind.add(fields, builder);
                    }));
  return std::move(builder.made);
}

Decoder Decoder::make_byte_level() {
  Decoder made;
  made.joint_ = Joint::kByteLevel;
  return made;
}

std::string Decoder::token_bytes(std::string_view spelling) const {
  std::string bytes(spelling);
  for (const DecoderStep& step : token_steps_) {
    switch (step.kind) {
      case Kind::kByteFallback:
        if (auto byte = fallback_byte(bytes)) return {*byte};
        break;
      case Kind::kReplace:
        if (!step.regex) {
          bytes = unicode::replace_all(bytes, step.from, step.to);
        } else if (auto replaced = step.regex->replace(bytes, step.to)) {
          bytes = std::move(*replaced);
        }
        break;
      case Kind::kStrip:
        bytes = std::string(strip(step, bytes));
        break;
      case Kind::kMetaspace:
      case Kind::kWordEnd:
        bytes = unicode::replace_all(bytes, step.from, " ");
        break;
      case Kind::kWordPiece:
        bytes = word_piece(step, bytes, false);
        break;
    }
  }
  if (joint_ == Joint::kByteLevel) {
    std::string raw;
    if (byte_level::append_bytes(raw, bytes)) return raw;
  }
  return bytes;
}

DecoderState::DecoderState(const Decoder& decoder, ByteRuns byte_runs)
    : decoder_(&decoder),
      token_states_(decoder.token_steps_.size()),
      text_states_(decoder.text_steps_.size()) {
  // Only if no later step treats the run as one token.
  by_characters_ =
      byte_runs == ByteRuns::kByCharacters && decoder.joint_ == Decoder::Joint::kConcatenate &&
      !decoder.token_steps_.empty() && decoder.token_steps_.back().kind == Kind::kByteFallback;
}

Status DecoderState::push(std::string_view spelling, std::string& text) {
  return token_step(0, spelling, text);
}

Status DecoderState::finish(std::string& text) {
  for (size_t i = 0; i < token_states_.size(); ++i) {
    if (decoder_->token_steps_[i].kind == Kind::kWordEnd) {
      const std::string last = std::exchange(token_states_[i].held, {});
      if (token_states_[i].started) {
        TRY(token_step(i + 1, unicode::replace_all(last, decoder_->token_steps_[i].from, ""),
                       text));
      }
    } else {
      TRY(flush_bytes(i, text));
    }
  }
  std::string rest;
  if (!partial_.empty()) rest = kReplacement;
  partial_.clear();
  text_step(0, rest, true, text);
  return {};
}

Status DecoderState::token_step(size_t index, std::string_view token, std::string& text) {
  if (index == decoder_->token_steps_.size()) return join(token, text);
  const DecoderStep& step = decoder_->token_steps_[index];
  StepState& state = token_states_[index];
  switch (step.kind) {
    case Kind::kByteFallback:
      if (auto byte = fallback_byte(token)) {
        state.held += *byte;
        const bool last = index + 1 == token_states_.size();
        return by_characters_ && last ? give_characters(state, text) : Status();
      }
      TRY(flush_bytes(index, text));
      return token_step(index + 1, token, text);
    case Kind::kReplace:
      if (step.regex) {
        return token_step(index + 1, TRY(step.regex->replace(token, step.to)), text);
      }
      if (token.find(step.from) == token.npos) return token_step(index + 1, token, text);
      return token_step(index + 1, unicode::replace_all(token, step.from, step.to), text);
    case Kind::kStrip:
      return token_step(index + 1, strip(step, token), text);
    case Kind::kMetaspace: {
      const bool drop = !state.started && step.prepended;
      state.started = true;
      return token_step(index + 1, unicode::replace_all(token, step.from, drop ? "" : " "), text);
    }
    case Kind::kWordEnd: {
      const std::string before = std::exchange(state.held, std::string(token));
      if (!std::exchange(state.started, true)) return {};
      return token_step(index + 1, unicode::replace_all(before, step.from, " "), text);
    }
    case Kind::kWordPiece:
      return token_step(index + 1, word_piece(step, token, !std::exchange(state.started, true)),
                        text);
  }
  return {};
}

// Emits the complete characters of a run; after an invalid byte, one U+FFFD per byte.
Status DecoderState::give_characters(StepState& state, std::string& text) {
  const std::string_view held = state.held;
  size_t at = 0;
  while (at < held.size()) {
    size_t invalid = 0, size = 0;
    if (!state.broken) size = unicode::character_size(held.substr(at), invalid);
    if (size == 0 && invalid == 0 && !state.broken) break;  // may still be completed
    state.broken = size == 0;
    TRY(join(state.broken ? kReplacement : held.substr(at, size), text));
    at += state.broken ? 1 : size;
  }
  state.held.erase(0, at);
  return {};
}

// Ends a run of byte tokens: emits its text if valid, else one U+FFFD per byte.
Status DecoderState::flush_bytes(size_t index, std::string& text) {
  token_states_[index].broken = false;
  std::string bytes = std::exchange(token_states_[index].held, {});
  if (bytes.empty()) return {};
  if (!unicode::first_invalid(bytes)) return token_step(index + 1, bytes, text);
  for (size_t i = 0; i < bytes.size(); ++i) TRY(token_step(index + 1, kReplacement, text));
  return {};
}

Status DecoderState::join(std::string_view token, std::string& text) {
  if (decoder_->joint_ == Decoder::Joint::kByteLevel) {
    if (!byte_level::append_bytes(partial_, token)) partial_ += token;
    if (decoder_->text_steps_.empty()) {
      take_characters(text);
    } else {
      std::string out;
      take_characters(out);
      text_step(0, out, false, text);
    }
    return {};
  }
  if (decoder_->joint_ == Decoder::Joint::kSpaces && joined_any_) text_step(0, " ", false, text);
  joined_any_ = true;
  text_step(0, token, false, text);
  return {};
}

// Moves complete characters from `partial_` to `out`. Invalid UTF-8 becomes one U+FFFD per maximal
// subpart of a character, as in WHATWG and Rust.
void DecoderState::take_characters(std::string& out) {
  const std::string_view bytes = partial_;
  size_t at = 0;
  while (at < bytes.size()) {
    size_t invalid = 0;
    const size_t size = unicode::character_size(bytes.substr(at), invalid);
    if (size == 0 && invalid == 0) break;  // may be completed by the next token
    if (size > 0) {
      out.append(bytes, at, size);
    } else {
      out += kReplacement;
    }
    at += size > 0 ? size : invalid;
  }
  partial_.erase(0, at);
}

void DecoderState::text_step(size_t index, std::string_view part, bool last, std::string& text) {
  if (index == decoder_->text_steps_.size()) {
    text += part;
    return;
  }
  const DecoderStep& step = decoder_->text_steps_[index];
  StepState& state = text_states_[index];
  state.held += part;
  std::string out;
  if (step.kind == Kind::kReplace) {
    replace_in_text(step, state, last, out);
  } else {
    CHECK(step.kind == Kind::kStrip);
    strip_text(step, state, last, out);
  }
  text_step(index + 1, out, last, text);
}

// Replaces in `held`; keeps back a suffix that may be the start of `from`.
void DecoderState::replace_in_text(const DecoderStep& step, StepState& state, bool last,
                                   std::string& out) {
  size_t copied = 0;
  for (size_t at = state.held.find(step.from); at != std::string::npos;
       at = state.held.find(step.from, copied)) {
    out.append(state.held, copied, at - copied).append(step.to);
    copied = at + step.from.size();
  }
  size_t keep = last ? 0 : std::min(step.from.size() - 1, state.held.size() - copied);
  while (keep > 0 && !std::string_view(step.from).starts_with(
                         std::string_view(state.held).substr(state.held.size() - keep))) {
    --keep;
  }
  out.append(state.held, copied, state.held.size() - copied - keep);
  state.held.erase(0, state.held.size() - keep);
}

// Drops the first characters; keeps back as many trailing ones as may have to be dropped.
void DecoderState::strip_text(const DecoderStep& step, StepState& state, bool last,
                              std::string& out) {
  const size_t unit = step.from.size();
  while (!state.started && !state.held.empty()) {
    if (state.removed < step.start_max && state.held.starts_with(step.from)) {
      state.held.erase(0, unit);
      ++state.removed;
    } else {
      state.started = true;
    }
  }
  size_t keep = 0;
  std::string_view rest = state.held;
  while (keep < step.stop_max && rest.ends_with(step.from)) {
    rest.remove_suffix(unit);
    ++keep;
  }
  out += rest;
  state.held = last ? std::string() : std::string(state.held.substr(rest.size()));
}

}  // namespace banyan
