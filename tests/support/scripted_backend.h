// A backend with scripted answers: calls wait in a queue, and one thread answers them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "program/backend.h"

namespace banyan::test {

class ScriptedBackend : public Backend {
 public:
  // The answer to a prompt's text; "<role>content;" for each message, "<role>" for an open one.
  using Script = std::function<Result<std::string>(const GenCall& call)>;

  explicit ScriptedBackend(Script script) : script_(std::move(script)) {}
  ~ScriptedBackend() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_.notify_all();
    }
    thread_.join();
  }

  std::string name() const override { return "the script"; }
  bool can_prefill() const override { return true; }

  Result<std::string> render(const std::vector<ChatMessage>& messages, bool answer) const override {
    std::string text;
    for (const ChatMessage& m : messages) text += "<" + m.role + ">" + m.content + ";";
    return text + (answer ? "<assistant>" : "");
  }

  Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) override {
    return push([this, call = std::move(call), piece = std::move(piece), done](bool cancelled) {
      if (cancelled) return done(std::unexpected(Error{ErrorCode::kCancelled, "cancelled"}));
      note("gen " + call.prompt.text);
      Result<std::string> answer = script_(call);
      if (!answer) return done(std::unexpected(answer.error()));
      for (size_t i = 0; piece && i < answer->size(); ++i) piece(answer->substr(i, 1));
      GenResult result{.text = *answer, .info = {}, .token_ends = {}};
      result.info.finish = FinishReason::kStop;
      result.info.usage = {.calls = 1, .prompt_tokens = 10, .completion_tokens = 2};
      if (call.hold) result.hold = hold_;
      done(std::move(result));
    });
  }

  // Each byte is a token; a byte's logprob is -1 for 'a', -2 for 'b', ... and 1 more where the
  // prompt ends in it.
  Cancel score(ScoreCall call, Done<ScoreResult> done) override {
    return push([this, call = std::move(call), done](bool cancelled) {
      if (cancelled) return done(std::unexpected(Error{ErrorCode::kCancelled, "cancelled"}));
      note("score " + call.prompt.text);
      ScoreResult result;
      for (const std::string& text : call.texts) {
        ScoredText& scored = result.texts.emplace_back();
        for (char c : text) {
          auto alone = static_cast<float>('a' - 1 - c);
          scored.tokens.push_back({c, call.prompt.text.ends_with(c) ? alone + 1 : alone});
          if (call.unconditional) scored.unconditional.push_back(alone);
        }
      }
      done(std::move(result));
    });
  }

  Cancel prefill(Prompt prompt, Done<CallUsage> done) override {
    return push([this, prompt = std::move(prompt), done](bool cancelled) {
      if (cancelled) return done(std::unexpected(Error{ErrorCode::kCancelled, "cancelled"}));
      note("prefill " + prompt.text);
      done(CallUsage{.calls = 1});
    });
  }

  // Answers nothing until resume().
  void pause() {
    std::lock_guard lock(mutex_);
    paused_ = true;
  }
  void resume() {
    std::lock_guard lock(mutex_);
    paused_ = false;
    wake_.notify_all();
  }
  // Waits until so many calls are in the queue.
  void wait_for_calls(size_t count) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return calls_.size() >= count; });
  }
  // Number of states that hold their prefix.
  long holds() const { return hold_.use_count() - 1; }
  std::vector<std::string> log() {
    std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  struct Call {
    std::function<void(bool cancelled)> answer;
    bool cancelled = false;
  };

  Cancel push(std::function<void(bool)> answer) {
    auto call = std::make_shared<Call>(std::move(answer));
    std::lock_guard lock(mutex_);
    calls_.push_back(call);
    wake_.notify_all();
    return [this, call] {
      std::lock_guard lock(mutex_);
      call->cancelled = true;
      wake_.notify_all();
    };
  }
  void note(std::string line) {
    std::lock_guard lock(mutex_);
    log_.push_back(std::move(line));
  }
  // Requires the mutex: the first call that may be answered.
  std::shared_ptr<Call> next() {
    for (auto call = calls_.begin(); call != calls_.end(); ++call) {
      if (paused_ && !(*call)->cancelled && !stopping_) continue;
      std::shared_ptr<Call> taken = *call;
      calls_.erase(call);
      return taken;
    }
    return nullptr;
  }
  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      std::shared_ptr<Call> call;
      wake_.wait(lock, [&] { return (call = next()) != nullptr || stopping_; });
      if (call == nullptr) return;
      bool cancelled = call->cancelled;
      lock.unlock();
      call->answer(cancelled);
      lock.lock();
    }
  }

  Script script_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Call>> calls_;
  std::vector<std::string> log_;
  bool paused_ = false, stopping_ = false;
  const std::shared_ptr<const int> hold_ = std::make_shared<const int>();
  std::jthread thread_{[this] { loop(); }};
};

}  // namespace banyan::test
