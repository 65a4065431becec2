#include "program/speculation.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace banyan {
namespace {

bool same_sampling(const SamplingParams& a, const SamplingParams& b) {
  auto key = [](const SamplingParams& s) {
    return std::tie(s.temperature, s.top_p, s.top_k, s.min_p, s.seed);
  };
  return key(a) == key(b);
}

struct Stop {
  size_t begin = std::string::npos;
  std::string text;
};

// The stop string that is complete first; of those, the one that begins first.
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

// Penalties look at the output so far, which would be another's.
bool Speculation::fits(const GenOptions& options) {
  bool constrained = !options.regex.empty() || !options.json_schema.empty() ||
                     !options.ebnf.empty() || options.grammar;
  bool plain = !options.sampling ||
               (!options.sampling->has_penalties() && options.sampling->logit_bias.empty());
  return plain && !constrained && !options.logprobs && options.top_logprobs == 0 &&
         options.min_new_tokens == 0 && options.stop_token_ids.empty() && !options.ignore_eos;
}

GenOptions Speculation::longer(GenOptions options, int64_t tokens) {
  options.stop.clear();
  options.max_new_tokens += tokens;
  options.logprobs = true;  // they tell where tokens end
  return options;
}

void Speculation::keep(GenResult result, const GenOptions& options, size_t behind) {
  kept_ = Kept{std::move(result), options.sampling.value_or(SamplingParams()), behind};
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
  if (ends.empty()) return end - kept_->at;
  auto first = std::ranges::upper_bound(ends, kept_->at);  // the token that holds byte `at`
  auto last = std::ranges::lower_bound(ends, end);         // the one whose bytes reach `end`
  return static_cast<size_t>(last - first) + (end > kept_->at ? 1 : 0);
}

std::optional<GenResult> Speculation::serve(const GenOptions& options) {
  if (!kept_ || !fits(options)) return std::nullopt;
  const GenResult& whole = kept_->result;
  auto most = static_cast<size_t>(std::max<int64_t>(options.max_new_tokens, 0));
  bool same = same_sampling(options.sampling.value_or(SamplingParams()), kept_->sampling);
  Stop stop = find_stop(whole.text, kept_->at, options.stop);
  size_t end = whole.text.size();
  CallInfo info;
  if (stop.begin != whole.text.npos && tokens_until(stop.begin + stop.text.size()) <= most) {
    end = stop.begin;
    info.finish = FinishReason::kStop;
    info.matched_stop = stop.text;
  } else if (stop.begin == whole.text.npos && whole.info.finish == FinishReason::kStop &&
             tokens_until(end) < most) {  // the token that ended it counts
    info.finish = FinishReason::kStop;
  } else {
    same = false;
  }
  if (!same) {
    forget();
    return std::nullopt;
  }
  info.usage.calls_saved = 1;
  const std::vector<size_t>& ends = whole.token_ends;
  info.usage.prompt_tokens_saved =
      whole.info.usage.prompt_tokens + (std::ranges::upper_bound(ends, kept_->at) - ends.begin());
  GenResult result{.text = whole.text.substr(kept_->at, end - kept_->at),
                   .info = std::move(info),
                   .token_ends = {}};
  kept_->at = end;
  return result;
}

}  // namespace banyan
