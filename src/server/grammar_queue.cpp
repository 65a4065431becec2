#include "server/grammar_queue.h"

#include <utility>

#include "base/check.h"

namespace banyan {

GrammarQueue::GrammarQueue(const Workers::Options& options, Post post)
    : post_(std::move(post)), workers_(std::make_unique<Workers>(options)) {}

GrammarQueue::~GrammarQueue() {
  for (const auto& wait : waits_) wait->over = true;
  workers_.reset();
}

std::shared_ptr<GrammarQueue::Wait> GrammarQueue::compile(const Llm& llm, const std::string& client,
                                                          std::vector<MissingGrammar> grammars,
                                                          SteadyTime deadline, Done done) {
  CHECK(!grammars.empty() && done, "{} grammars", grammars.size());
  auto wait = std::make_shared<Wait>();
  wait->left = grammars.size();
  wait->deadline = deadline;
  wait->done = std::move(done);
  for (MissingGrammar& grammar : grammars) {
    size_t cost = grammar.source.text.size();
    auto work = [this, &llm, wait, grammar = std::move(grammar)] {
      if (wait->over) return;
      post_([this, wait, grammar, compiled = compile_grammar(llm, grammar.source)]() mutable {
        if (!wait->over) take(wait, grammar, std::move(compiled));
      });
    };
    if (!workers_->enqueue(client, std::move(work), cost)) {
      wait->over = true;
      return nullptr;
    }
  }
  waits_.insert(wait);
  return wait;
}

void GrammarQueue::cancel(const std::shared_ptr<Wait>& wait) {
  wait->over = true;
  waits_.erase(wait);
}

void GrammarQueue::check_deadlines(SteadyTime now) {
  std::vector<std::shared_ptr<Wait>> late;
  for (const auto& wait : waits_) {
    if (now >= wait->deadline) late.push_back(wait);
  }
  for (auto& wait : late) finish(std::move(wait), End::kTooLate, nullptr);
}

void GrammarQueue::take(const std::shared_ptr<Wait>& wait, const MissingGrammar& grammar,
                        Result<std::shared_ptr<const CompiledGrammar>> compiled) {
  if (!compiled) {
    Error error = compiled.error();
    // A limit exceeded by the request's own grammar is the client's error.
    if (error.code == ErrorCode::kExhausted) error.code = ErrorCode::kInvalidArgument;
    RequestError named(std::move(error), grammar.field);
    return finish(wait, End::kFailed, &named);
  }
  wait->compiled.emplace(grammar.source, *std::move(compiled));
  if (--wait->left == 0) finish(wait, End::kCompiled, nullptr);
}

void GrammarQueue::finish(std::shared_ptr<Wait> wait, End end, const RequestError* error) {
  cancel(wait);
  wait->done(end, std::move(wait->compiled), error);
}

}  // namespace banyan
