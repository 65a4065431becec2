// API speculative execution (SGLang paper, section 5): what a call generated past its stop, kept
// for the texts and gens that follow.
//
// A gen is served from it only if a call of its own would have given the same: all text in between
// was what the model wrote, the sampling is the same, and the gen's end (a stop string, the length,
// the end of the text) lies in what is kept. One per stream.
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

// What calls that run further cost and save on one backend, all programs together: where they lose,
// none are made for a while. They lose if more calls have to be made again than are saved, or if
// more tokens are generated or sent in vain than prompts save. Safe from every thread.
class SpeculationLedger {
 public:
  // Whether a gen may run further by `tokens`; to be asked once for each that could.
  bool allows(int64_t tokens);
  // A call was in vain: another one had to follow it.
  void in_vain(const CallUsage& usage);
  // Of a call that nothing more is taken from: calls that it saved, and tokens, less those that it
  // gave beyond its gen and that nothing used.
  void book(int64_t calls, int64_t tokens);

 private:
  void add(int64_t calls, int64_t tokens);  // with the mutex

  std::mutex mutex_;
  int64_t step_ = 1;                // tokens that a call runs further
  int64_t calls_ = 0, tokens_ = 0;  // saved, less lost
  int unbooked_ = 0;                // calls that saved nothing and were let pass
  int64_t pause_ = 0;               // gens that are left of one
  int pauses_ = 0;                  // in a row
};

class Speculation {
 public:
  // Whether a gen can be made longer, and be served.
  static bool fits(const GenCall& call);
  // The call that runs `tokens` further.
  static GenCall longer(GenCall call, int64_t tokens);

  // What a call by longer(call) gave; `behind` is how much of it the state has already.
  void keep(GenResult result, const GenCall& call, size_t behind);
  void forget() { kept_.reset(); }
  // The program's next text: what is kept goes on behind it, or is forgotten.
  void pass(std::string_view text);
  // The gen's result, if it is there. What is kept then goes on after its text.
  std::optional<GenResult> serve(const GenCall& call);
  // The call that gave what is kept was worth making for its gen alone; the rest is put to `ledger`
  // once nothing more can be taken from it.
  void enter(std::shared_ptr<SpeculationLedger> ledger);

 private:
  // Shared with the branches that have the same kept.
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

  // What a gen of so many tokens at most gets of what is kept.
  struct Cut {
    size_t end = 0;
    FinishReason finish = FinishReason::kLength;
    std::optional<std::string> matched_stop;
  };
  std::optional<Cut> cut(const GenerationOptions& options) const;
  // Tokens from `at` on that reach into what lies before `end`. Where nothing says where tokens
  // end, at most so many.
  size_t tokens_until(size_t end) const;
  // Tokens that end before `end`; an estimate by bytes where nothing says where they do.
  int64_t tokens_before(size_t end) const;
  int64_t unused() const;  // tokens from `at` on

  std::optional<Kept> kept_;
};

}  // namespace banyan
