#include "program/remote/speculation.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/signed.h"

namespace banyan {
namespace {

// Unserved speculative calls before they count as losses.
constexpr int kLossesAllowed = 2;
// Cap on the credit from savings, in calls that save nothing.
constexpr int64_t kCallsKept = 4;
// Pauses of 16, 32, ... up to 1024 gens.
constexpr int64_t kPauseGens = 16;
constexpr int kPausesMax = 6;

bool same_sampling(const SamplingParams& a, const SamplingParams& b) {
  auto key = [](const SamplingParams& s) {
    return std::tie(s.temperature, s.top_p, s.top_k, s.min_p, s.typical_p, s.xtc_probability,
                    s.xtc_threshold, s.seed);
  };
  return key(a) == key(b);
}

struct Stop {
  size_t begin = std::string::npos;
  std::string text;
};

// The stop string that completes first; on ties, the one that starts first.
Stop find_stop(const std::string& text, size_t from, const std::vector<std::string>& stops) {
  Stop first;
  for (const std::string& stop : stops) {
    size_t begin = text.find(stop, from);
    if (begin == text.npos) continue;
    auto order = [](size_t at, size_t bytes) { return std::pair(at + bytes, at); };
    if (first.begin == text.npos ||
        order(begin, stop.size()) < order(first.begin, first.text.size())) {
      first = {begin, stop};
    }
  }
  return first;
}

}  // namespace

// Penalties depend on the output so far, which differs in a longer call.
bool Speculation::fits(const GenCall& call) {
  const GenerationOptions& options = call.options;
  bool plain =
      !call.sampling || (!call.sampling->reads_tokens() && call.sampling->logit_bias.empty());
  return plain && !options.grammar && !options.logprobs && options.top_logprobs == 0 &&
         options.min_new_tokens == 0 && options.stop_token_ids.empty() &&
         options.stop_regex.empty() && !options.ignore_eos && !options.keep_stop;
}

GenCall Speculation::longer(GenCall call, int64_t tokens) {
  call.options.stop.clear();
  call.options.max_new_tokens += tokens;
  call.options.logprobs = true;  // for the token ends
  call.hold = false;
  return call;
}

void Speculation::keep(GenResult result, const GenCall& call, size_t behind) {
  kept_ = Kept{std::move(result), call.sampling.value_or(SamplingParams()), behind};
}

void Speculation::pass(std::string_view text) {
  if (!kept_) return;
  if (std::string_view(kept_->result.text).substr(kept_->at).starts_with(text)) {
    kept_->at += text.size();
  } else {
    forget();
  }
}

size_t Speculation::tokens_until(size_t end) const {
  const std::vector<size_t>& ends = kept_->result.token_ends;
  if (ends.empty()) {
    auto all = as_size(std::max<int64_t>(kept_->result.info.usage.completion_tokens, 0));
    size_t bytes = end - kept_->at;
    return all > 0 ? std::min(bytes, all) : bytes;
  }
  auto first = std::ranges::upper_bound(ends, kept_->at);  // the token that contains byte `at`
  auto last = std::ranges::lower_bound(ends, end);         // the token whose bytes reach `end`
  return as_size(last - first) + (end > kept_->at ? 1 : 0);
}

int64_t Speculation::tokens_before(size_t end) const {
  const GenResult& whole = kept_->result;
  if (!whole.token_ends.empty()) {
    return std::ranges::upper_bound(whole.token_ends, end) - whole.token_ends.begin();
  }
  if (whole.text.empty()) return 0;
  double part = static_cast<double>(end) / whole.text.size();
  return std::llround(part * whole.info.usage.completion_tokens);
}

int64_t Speculation::unused() const {
  if (!kept_) return 0;
  return std::max<int64_t>(kept_->result.info.usage.completion_tokens - tokens_before(kept_->at),
                           0);
}

void Speculation::enter(std::shared_ptr<SpeculationLedger> ledger) {
  if (kept_) kept_->account = std::make_shared<Account>(std::move(ledger), 0, -unused());
}

std::optional<Speculation::Cut> Speculation::cut(const GenerationOptions& options) const {
  const GenResult& whole = kept_->result;
  auto most = as_size(std::max<int64_t>(options.max_new_tokens, 0));
  Stop stop = find_stop(whole.text, kept_->at, options.stop);
  if (stop.begin != whole.text.npos && tokens_until(stop.begin + stop.text.size()) <= most) {
    return Cut{stop.begin, FinishReason::kStop, stop.text};
  }
  if (stop.begin == whole.text.npos && whole.info.finish == FinishReason::kStop &&
      tokens_until(whole.text.size()) < most) {  // the token that ended it counts
    return Cut{whole.text.size(), FinishReason::kStop, std::nullopt};
  }
  // Serve up to the maximum length, if that position is known and splits no character.
  const std::vector<size_t>& ends = whole.token_ends;
  auto first = as_size(std::ranges::upper_bound(ends, kept_->at) - ends.begin());
  if (most == 0 || first + most > ends.size()) return std::nullopt;
  size_t end = ends[first + most - 1];
  // If length and end of text coincide, only a call can tell which finish reason applies.
  if (end == whole.text.size() && whole.info.finish == FinishReason::kStop) return std::nullopt;
  bool within = end < whole.text.size() && (static_cast<uint8_t>(whole.text[end]) & 0xC0) == 0x80;
  if (within) return std::nullopt;
  return Cut{end, FinishReason::kLength, std::nullopt};
}

std::optional<GenResult> Speculation::serve(const GenCall& call) {
  if (!kept_ || !fits(call)) return std::nullopt;
  bool same = same_sampling(call.sampling.value_or(SamplingParams()), kept_->sampling);
  std::optional<Cut> found = same ? cut(call.options) : std::nullopt;
  if (!found) {
    forget();
    return std::nullopt;
  }
  CallInfo info;
  info.finish = found->finish;
  info.matched_stop = std::move(found->matched_stop);
  info.usage.calls_saved = 1;
  info.usage.prompt_tokens_saved =
      kept_->result.info.usage.prompt_tokens + tokens_before(kept_->at);
  int64_t unused_before = unused();
  GenResult result{.text = kept_->result.text.substr(kept_->at, found->end - kept_->at),
                   .info = std::move(info),
                   .token_ends = {}};
  kept_->at = found->end;
  if (kept_->account) {
    ++kept_->account->calls;
    kept_->account->tokens += result.info.usage.prompt_tokens_saved + unused_before - unused();
  }
  return result;
}

// --- gains and losses -----------------------------------------------------------------------

bool SpeculationLedger::allows(int64_t tokens) {
  std::lock_guard lock(mutex_);
  step_ = std::max<int64_t>(tokens, 1);
  if (pause_ == 0) return true;
  --pause_;
  return false;
}

void SpeculationLedger::in_vain(const CallUsage& usage) {
  std::lock_guard lock(mutex_);
  add(-1, -(usage.prompt_tokens + usage.completion_tokens));
}

void SpeculationLedger::book(int64_t calls, int64_t tokens) {
  std::lock_guard lock(mutex_);
  if (calls == 0 && unbooked_ < kLossesAllowed) {
    ++unbooked_;
    return;
  }
  if (calls > 0 && tokens >= 0) pauses_ = 0;
  add(calls, tokens);
}

// Capped, so that old gains do not count forever.
void SpeculationLedger::add(int64_t calls, int64_t tokens) {
  calls_ = std::min(calls_ + calls, kCallsKept);
  tokens_ = std::min(tokens_ + tokens, kCallsKept * step_);
  if (calls_ >= 0 && tokens_ >= 0) return;
  pause_ = kPauseGens << std::min(pauses_++, kPausesMax);
  calls_ = tokens_ = 0;
}

}  // namespace banyan
