// A grammar compiled for a vocabulary, and the constraint that the engine sees.
//
// CompiledGrammar is shared by all requests with the same grammar and is thread-safe. A Matcher is
// one request's position in it: one thread at a time, like every TokenConstraint.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/constraint_source.h"
#include "banyan/grammar.h"
#include "banyan/request.h"
#include "grammar/run/masks.h"
#include "grammar/run/parser.h"
#include "grammar/run/token_vocabulary.h"
#include "grammar/schema/layout.h"

namespace banyan {

// Tokenizes a string that continues an output. May be empty: then no tokens are drafted.
using TokenizeText = std::function<std::vector<TokenId>(std::string_view text)>;

struct CompiledGrammar {
  static constexpr size_t kMaskBytesMax = 16 << 20;

  CompiledGrammar(Grammar g, std::shared_ptr<const TokenVocabulary> v, TokenizeText t,
                  std::optional<GrammarSource> s = std::nullopt)
      : grammar(std::move(g)),
        vocabulary(std::move(v)),
        tokenize(std::move(t)),
        source(std::move(s)),
        masks(kMaskBytesMax) {}

  size_t bytes() const { return grammar.bytes() + masks.bytes(); }

  const Grammar grammar;
  const std::shared_ptr<const TokenVocabulary> vocabulary;
  const TokenizeText tokenize;
  const std::optional<GrammarSource> source;  // absent: it was not made from one
  mutable MaskCache masks;
};

class Matcher : public TokenConstraint {
 public:
  static constexpr size_t kForcedBytesMax = 1024;

  explicit Matcher(std::shared_ptr<const CompiledGrammar> compiled, EarlyStops early = {});

  void fill_mask(std::span<uint32_t> mask) override;
  // A token outside the mask leaves the grammar: only end tokens may follow.
  void accept(TokenId token) override;
  // The tokens of likely_bytes().
  std::span<const TokenId> draft_tokens() override;
  void rollback(int tokens) override;
  bool describe(ConstraintSource& source) const override;

  // Like accept(), but returns false and changes nothing if the mask does not allow `token`.
  bool try_accept(TokenId token);
  // An end token has been accepted; only end tokens may follow.
  bool finished() const { return finished_; }
  // The text may end here.
  bool complete() const { return state_.complete; }
  // The bytes that must follow, at most kForcedBytesMax.
  std::string forced_bytes();
  // forced_bytes() plus the likely bytes after them where only JSON's layout is a choice
  // (grammar/schema/layout.h). Without trailing spaces.
  std::string likely_bytes();
  size_t configurations() const { return state_.configurations.size(); }
  int accepted_tokens() const { return static_cast<int>(marks_.size()); }

 private:
  struct Mark {
    uint32_t begin;  // index into history_: the state before the token
    bool complete;
    bool finished;
    JsonLayout layout;
  };
  void remember();
  void append_drafts(std::string_view text);
  void fill_grammar_mask(std::span<uint32_t> mask);

  std::shared_ptr<const CompiledGrammar> compiled_;
  EarlyStops early_;
  Parser parser_;
  MaskBuilder builder_;
  ParseState state_, next_;
  std::vector<Configuration> history_;
  std::vector<Mark> marks_;
  bool finished_ = false;
  JsonLayout layout_;
  std::optional<std::vector<TokenId>> drafts_;  // for the current state
};

}  // namespace banyan
