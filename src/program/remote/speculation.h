// API speculative execution (SGLang paper, section 5): text generated past a stop is kept for the
// texts and gens that follow.
//
// A later gen is served from the kept text only if its own call would have given the same result:
// the program's text up to the gen equals what the model wrote, the sampling is the same, and the
// gen ends (by a stop string, its length or the end of the text) within the kept text. One per
// stream.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/backend.h"

namespace banyan {

// Tracks what speculative calls cost and save on one backend, over all programs. Pauses speculation
// while it does not pay off: more calls are repeated than saved, or more tokens are wasted than
// prompts of saved calls would have cost. Thread-safe.
class SpeculationLedger {
 public:
  // Whether a gen may run `tokens` past its stop. Call once per eligible gen.
  bool allows(int64_t tokens);
  // Records a call whose result could not be used, so that another call had to follow.
  void in_vain(const CallUsage& usage);
  // Records a speculative call once nothing more can be served from it: the calls saved, and the
  // tokens saved minus those generated but never used.
  void book(int64_t calls, int64_t tokens);

 private:
  void add(int64_t calls, int64_t tokens);  // the caller holds mutex_

  std::mutex mutex_;
  int64_t step_ = 1;                // tokens past the stop per call
  int64_t calls_ = 0, tokens_ = 0;  // saved minus lost
  int unbooked_ = 0;                // calls that saved nothing and were tolerated
  int64_t pause_ = 0;               // gens left until the pause ends
  int pauses_ = 0;                  // in a row
};

class Speculation {
 public:
  // Whether a gen can be extended and served.
  static bool fits(const GenCall& call);
  // The call extended by `tokens`.
  static GenCall longer(GenCall call, int64_t tokens);

  // Keeps the result of longer(call); the state already has `behind` bytes of it.
  void keep(GenResult result, const GenCall& call, size_t behind);
  void forget() { kept_.reset(); }
  // The program's next text. Kept text that agrees is skipped; otherwise it is dropped.
  void pass(std::string_view text);
  // The gen's result if the kept text contains all of it. The next gen is served from the text
  // after it.
  std::optional<GenResult> serve(const GenCall& call);
  // The call that produced the kept text has served its own gen. What the rest of the text saves or
  // wastes is booked in `ledger` once nothing more can be served from it.
  void enter(std::shared_ptr<SpeculationLedger> ledger);

 private:
  // Shared by the branches that keep the same text.
  struct Account {
    std::shared_ptr<SpeculationLedger> ledger;
    int64_t calls = 0, tokens = 0;
    ~Account() { ledger->book(calls, tokens); }
  };
  struct Kept {
    GenResult result;
    SamplingParams sampling;
    size_t at = 0;
    std::shared_ptr<Account> account = {};
  };

  // The part of the kept text that serves a gen of limited length.
  struct Cut {
    size_t end = 0;
    FinishReason finish = FinishReason::kLength;
    std::optional<std::string> matched_stop;
  };
  std::optional<Cut> cut(const GenerationOptions& options) const;
  // Tokens from `at` that start before `end`. An upper bound if token ends are unknown.
  size_t tokens_until(size_t end) const;
  // Tokens that end before `end`; estimated from the bytes if token ends are unknown.
  int64_t tokens_before(size_t end) const;
  int64_t unused() const;  // tokens from `at` on

  std::optional<Kept> kept_;
};

}  // namespace banyan
