#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/gguf.h"
#include "base/signed.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "unicode/unicode.h"

namespace banyan {

// Scratch memory of one encode() call.
struct Tokenizer::Scratch {
  PieceScratch pieces;
  BpeScratch bpe;
  std::vector<AddedTokenMatcher::Section> sections, inner_sections;
};

// Borrows a Scratch from the pool or creates one; returns it on destruction.
class Tokenizer::ScratchLoan {
 public:
  explicit ScratchLoan(const Tokenizer& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.pool_mutex_);
    if (owner_.pool_.empty()) return;
    scratch_ = std::move(owner_.pool_.back());
    owner_.pool_.pop_back();
  }
  ~ScratchLoan() {
    // The pool holds enough for a machine's threads. A scratch that grew on a huge text is not
    // kept.
    constexpr size_t kPooledMax = 32, kPiecesMax = 1 << 18;
    if (!scratch_ || scratch_->pieces.pieces.capacity() > kPiecesMax) return;
    scratch_->pieces.texts.clear();
    const std::lock_guard lock(owner_.pool_mutex_);
    if (owner_.pool_.size() < kPooledMax) owner_.pool_.push_back(std::move(scratch_));
  }
  ScratchLoan(const ScratchLoan&) = delete;
  ScratchLoan& operator=(const ScratchLoan&) = delete;

  Scratch& get() {
    if (!scratch_) scratch_ = std::make_unique<Scratch>();
    return *scratch_;
  }

 private:
  const Tokenizer& owner_;
  std::unique_ptr<Scratch> scratch_;
};

Tokenizer::Tokenizer(TokenizerParts parts, TokenizerConfig config)
    : parts_(std::move(parts)), config_(std::move(config)) {}

Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::string& model_dir) {
  TokenizerConfig config = TRY(read_tokenizer_config(model_dir));
  if (is_gguf_file(model_dir)) {
    MappedFile file = TRY(MappedFile::open(model_dir));
    GgufPairs pairs = TRY(GgufPairs::parse(file.bytes(), model_dir));
    return make(TRY(read_gguf_tokenizer(pairs)), std::move(config));
  }
  const std::string json = model_dir + "/tokenizer.json";
  const std::string tiktoken = model_dir + "/tiktoken.model";
  if (file_exists(json)) {
    const std::string text = TRY(read_file(json, kTokenizerFileBytesMax));
    return make(TRY(read_tokenizer_json(text, json)), std::move(config));
  }
  if (file_exists(tiktoken)) {
    const std::string text = TRY(read_file(tiktoken, kTokenizerFileBytesMax));
    TokenizerParts parts =
        TRY(read_tiktoken(text, tiktoken, config.json, model_dir + "/tokenizer_config.json"));
    return make(std::move(parts), std::move(config));
  }
  if (file_exists(model_dir + "/tokenizer.model")) {
    return unsupported(
        "{}: a SentencePiece tokenizer.model alone is not supported; a tokenizer.json is needed",
        model_dir);
  }
  return not_found("{}: has neither tokenizer.json nor tiktoken.model", model_dir);
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::make(TokenizerParts parts, TokenizerConfig config) {
  std::unique_ptr<Tokenizer> made(new Tokenizer(std::move(parts), std::move(config)));
  made->raw_bytes_ =
      made->parts_.pre_tokenizer.ends_in_byte_level() && made->parts_.bpe->takes_bytes();
  TRY(made->index_added_tokens());
  made->resolve_special_tokens();
  return made;
}

Status Tokenizer::index_added_tokens() {
  int size = parts_.vocabulary->id_end();
  for (const AddedToken& token : parts_.added) size = std::max(size, token.id + 1);
  added_of_.assign(as_size(size), -1);
  std::unordered_set<std::string_view> special_contents;
  for (size_t i = 0; i < parts_.added.size(); ++i) {
    const AddedToken& token = parts_.added[i];
    added_of_[token.id] = static_cast<int32_t>(i);
    added_ids_.emplace(token.content, token.id);
    if (token.special) special_contents.insert(token.content);
    if (!token.normalized) {
      TRY(matcher_.add(token, token.content));
      continue;
    }
    NormalizedText text{token.content, true};
    TRY(parts_.normalizer.run(text));
    TRY(normalized_matcher_.add(token, text.text));
    if (text.text != token.content) normalized_added_.emplace(token.id, std::move(text.text));
  }
  matcher_.link();
  normalized_matcher_.link();
  skipped_.assign(as_size(size), false);
  for (const AddedToken& token : parts_.added) {
    const auto spelling = decodable(token.id, false);
    skipped_[token.id] = special_contents.contains(*spelling);
  }
  return {};
}

void Tokenizer::resolve_special_tokens() {
  SpecialTokens& special = config_.special;
  auto resolve = [&](const char* name, std::optional<SpecialToken>& token,
                     std::optional<TokenId> id) {
    if (!token && id && !this->token(*id).empty()) {
      token = SpecialToken{std::string(this->token(*id)), id};
      special.named.try_emplace(name, token->text);
    } else if (token) {
      token->id = find(token->text);
    }
  };
  const auto& eos_ids = special.eos_ids;
  resolve("bos_token", special.bos, config_.bos_id);
  resolve("eos_token", special.eos,
          eos_ids.empty() ? std::nullopt : std::optional<TokenId>(eos_ids[0]));
  resolve("pad_token", special.pad, config_.pad_id);
  resolve("unk_token", special.unk, std::nullopt);
  if (special.eos && special.eos->id && std::ranges::count(eos_ids, *special.eos->id) == 0) {
    special.eos_ids.push_back(*special.eos->id);
  }
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kTextBytesMax) {
    return exhausted("a text of {} bytes; the limit is {}", text.size(), kTextBytesMax);
  }
  if (const auto at = unicode::first_invalid(text)) {
    return invalid_argument("the text is not valid UTF-8 at byte {}", *at);
  }
  ScratchLoan loan(*this);
  Scratch& scratch = loan.get();
  scratch.pieces.regex.begin(text.size());
  const PostProcessor& around = parts_.post_processor;
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + around.before.size() + around.after.size());
  if (options.add_special_tokens) ids = around.before;
  scratch.sections.clear();
  matcher_.split(text, options.parse_special, scratch.sections);
  for (const auto& section : scratch.sections) {
    if (section.id >= 0) {
      ids.push_back(section.id);
      continue;
    }
    TRY(encode_section(text.substr(section.begin, section.end - section.begin), section.begin == 0,
                       options.parse_special, scratch, ids));
  }
  if (options.add_special_tokens) {
    ids.insert(ids.end(), around.after.begin(), around.after.end());
  }
  return ids;
}

Status Tokenizer::encode_section(std::string_view text, bool at_start, bool specials,
                                 Scratch& scratch, std::vector<TokenId>& ids) const {
  NormalizedText normalized{{}, at_start};
  if (!parts_.normalizer.empty()) {
    normalized.text = text;
    TRY(parts_.normalizer.run(normalized));
    text = normalized.text;
  }
  if (normalized_matcher_.empty()) return encode_text(text, normalized.at_start, scratch, ids);
  scratch.inner_sections.clear();
  normalized_matcher_.split(text, specials, scratch.inner_sections);
  for (const auto& section : scratch.inner_sections) {
    if (section.id >= 0) {
      ids.push_back(section.id);
      continue;
    }
    TRY(encode_text(text.substr(section.begin, section.end - section.begin),
                    normalized.at_start && section.begin == 0, scratch, ids));
  }
  return {};
}

Status Tokenizer::encode_text(std::string_view text, bool at_start, Scratch& scratch,
                              std::vector<TokenId>& ids) const {
  TRY(parts_.pre_tokenizer.run(text, at_start, raw_bytes_, scratch.pieces));
  for (const Piece& piece : scratch.pieces.pieces) {
    TRY(parts_.bpe->encode(piece.text, raw_bytes_, scratch.bpe, ids));
  }
  return {};
}

std::optional<std::string_view> Tokenizer::decodable(TokenId id, bool skip_special_tokens) const {
  if (id < 0 || id >= vocab_size()) return std::nullopt;
  const size_t index = id;
  if (added_of_[index] < 0) {
    if (!parts_.vocabulary->contains(id)) return std::nullopt;
    return parts_.vocabulary->spelling(id);
  }
  if (skip_special_tokens && skipped_[index]) return std::nullopt;
  const auto normalized = normalized_added_.find(id);
  return normalized != normalized_added_.end() ? std::string_view(normalized->second) : token(id);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids,
                                      bool skip_special_tokens) const {
  DecoderState state(parts_.decoder);
  std::string text;
  for (TokenId id : ids) {
    if (id < 0) return invalid_argument("{} is not a token id", id);
    if (auto spelling = decodable(id, skip_special_tokens)) TRY(state.push(*spelling, text));
  }
  TRY(state.finish(text));
  return text;
}

std::string_view Tokenizer::token(TokenId id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const int32_t added = added_of_[id];
  if (added >= 0) return parts_.added[added].content;
  return parts_.vocabulary->spelling(id);
}

std::string Tokenizer::token_bytes(TokenId id) const {
  const auto spelling = decodable(id, false);
  return spelling ? parts_.decoder.token_bytes(*spelling) : std::string();
}

std::optional<TokenId> Tokenizer::find(std::string_view token) const {
  const auto added = added_ids_.find(std::string(token));
  return added != added_ids_.end() ? std::optional(added->second) : parts_.vocabulary->find(token);
}

bool Tokenizer::is_special(TokenId id) const {
  if (id < 0 || id >= vocab_size()) return false;
  const int32_t added = added_of_[id];
  return added >= 0 && parts_.added[added].special;
}

}  // namespace banyan
