// A Backend that wraps another and records prompts, to report how many prompt tokens an unbounded
// prefix cache would have saved. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "program/backend.h"

namespace banyan {

class Tokenizer;  // text/tokenizer/tokenizer.h

struct Reuse {
  int64_t prompt_tokens = 0;    // of gens and scores, without prefills
  int64_t reusable_tokens = 0;  // of these, in earlier prompts or answers
};

class ReuseMeter final : public Backend {
 public:
  explicit ReuseMeter(std::shared_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  bool takes_messages() const override { return inner_->takes_messages(); }
  bool may_speculate() const override { return inner_->may_speculate(); }
  bool continues_answers() const override { return inner_->continues_answers(); }
  std::optional<SamplingParams> default_sampling() const override {
    return inner_->default_sampling();
  }
  Result<std::string> render(const std::vector<ChatMessage>& messages, bool answer) const override {
    return inner_->render(messages, answer);
  }
  bool can_prefill() const override { return inner_->can_prefill(); }

  Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) override;
  Cancel score(ScoreCall call, Done<ScoreResult> done) override;
  Cancel prefill(Prompt prompt, Done<CallUsage> done) override {
    return inner_->prefill(std::move(prompt), std::move(done));
  }

  // Over all calls so far, in order: a prompt is reusable once sent, an answer once finished. Of
  // each prompt at least one token is computed, and of a score the tokens it asks about.
  Result<Reuse> reuse(const Tokenizer& tokenizer) const;

 private:
  struct Note {
    std::string text;
    bool special_tokens = false;  // the tokenizer adds them
    bool asked = false;           // a prompt; else a prompt with its answer
    size_t computed_bytes = 0;    // at the prompt's end, computed even if it occurred before
  };
  void note(Note note);

  mutable std::mutex mutex_;
  std::vector<Note> notes_;
  const std::shared_ptr<Backend> inner_;  // last, since its calls may end during destruction
};

}  // namespace banyan
