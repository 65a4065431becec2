#include "kernels/draw.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/draw_arithmetic.h"
#include "kernels/launch.h"
#include "kernels/logit_scan.h"
#include "kernels/race.h"

namespace banyan {
namespace {

// Above this many tokens, block maxima are faster.
constexpr size_t kFewTokens = 128;

template <class T>
std::span<const T> part(const T* array, ArrayPart part) {
  return std::span(array + part.begin, part.count);
}

void apply_penalties(std::span<float> logits, const DrawRow& row,
                     std::span<const TokenCount> counts) {
  for (auto [token, times] : counts) {
    float& x = logits[token];
    x = penalised(x, row, times);
  }
}

// Sets the logits of masked tokens to -inf.
void apply_mask(std::span<float> logits, const uint32_t* mask) {
  for (size_t begin = 0; begin < logits.size(); begin += 32) {
    uint32_t word = mask[begin / 32];
    if (word == ~0u) continue;
    std::span<float> some = logits.subspan(begin, std::min<size_t>(32, logits.size() - begin));
    if (word == 0) {  // common under a strict grammar
      std::ranges::fill(some, kImpossibleLogit);
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i) {
      if (((word >> i) & 1u) == 0) some[i] = kImpossibleLogit;
    }
  }
}

// The range of tokens in `top` that typical_p keeps; nothing if it needs more tokens than `top`
// has.
std::optional<std::pair<size_t, size_t>> typical_range(std::span<const TopLogit> top, bool all,
                                                       const DrawRow& row,
                                                       const SoftmaxMoments& moments) {
  TypicalRange range = find_typical_range(
      std::ssize(top), all, row.typical_p * moments.total,
      [&](int64_t i) {
        return softmax_exponent(top[i].logit, top.front().logit, row.temperature) - moments.mean;
      },
      [&](int64_t i) { return top[i].weight; });
  if (!range.found) return std::nullopt;
  return std::pair<size_t, size_t>(range.begin, range.end);
}

// One worker's state for drawing rows. Allocates memory for a vocabulary once.
class RowDrawer {
 public:
  void run(const DrawArgs& args, int64_t r, NoiseKernel noise);

 private:
  void prepare(size_t vocabulary);
  std::span<const float> adjust(const DrawArgs& args, const DrawRow& row,
                                std::span<const float> logits);
  TokenId draw(const DrawArgs& args, const DrawRow& row, std::span<const float> logits,
               NoiseKernel noise);
  RaceField filter(std::span<const float> logits, const DrawRow& row);
  TopLogit last_kept(std::span<const float> logits, const DrawRow& row);
  void keep_typical(std::span<const float> logits, const DrawRow& row);
  RaceField exclude_top(std::span<const float> logits, const DrawRow& row, RaceField field);
  template <class Enough>
  void grow_top(std::span<const float> logits, float temperature, Enough enough);
  void find_top_weights(std::span<const float> logits, size_t count, float temperature);
  double total_of_top() const;
  SoftmaxMoments moments_of_top(float temperature) const;
  bool keep_top_p(double top_p, double total);
  int32_t report_top(std::span<const float> logits, int32_t count, float log_sum_exp,
                     TokenLogprob* to);

  std::vector<float> adjusted_;  // logits after biases, penalties and the mask
  std::vector<float> maxima_, scratch_;
  std::vector<TopLogit> top_;
};

void RowDrawer::run(const DrawArgs& args, int64_t r, NoiseKernel noise) {
  const DrawRow& row = args.draws[r];
  float log_sum_exp = args.log_sum_exp[r];
  DrawResult& result = args.results[r];
  result = {.log_sum_exp = log_sum_exp};
  if (!__builtin_isfinite(log_sum_exp)) return;
  size_t vocabulary = args.vocabulary;
  std::span<const float> logits(args.logits + r * args.vocabulary, vocabulary);
  result.token = row.known;
  if (takes_passes(row)) prepare(vocabulary);
  if (row.known < 0) {
    bool greedy = row.temperature == 0 && draws_from_logits(row);
    result.token = greedy ? args.argmax[r] : draw(args, row, logits, noise);
  }
  if (result.token < 0) return;
  auto logprob = [&](TokenId token) { return logits[token] - log_sum_exp; };
  result.logprob = logprob(result.token);
  TokenLogprob* tops = args.tops + row.tops_begin;
  if (row.top_count > 0) result.top_count = report_top(logits, row.top_count, log_sum_exp, tops);
  tops += row.top_count;
  for (TokenId token : part(args.chosen, row.chosen)) *tops++ = {token, logprob(token)};
}

void RowDrawer::prepare(size_t vocabulary) {
  if (adjusted_.capacity() >= vocabulary) return;
  adjusted_.reserve(vocabulary);
  top_.reserve(vocabulary);
  maxima_.reserve(vocabulary / kLogitBlock + 1);
  scratch_.reserve(vocabulary / kLogitBlock + 1);
}

std::span<const float> RowDrawer::adjust(const DrawArgs& args, const DrawRow& row,
                                         std::span<const float> logits) {
  if (draws_from_logits(row)) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  if (has_penalties(row)) apply_penalties(adjusted_, row, part(args.counts, row.counts));
  for (auto [token, bias] : part(args.biases, row.biases)) {
    adjusted_[token] += bias;
  }
  // Damaged weights can give infinite logits, as can a penalty. Such tokens become extremely likely
  // or unlikely but stay allowed, since some token must be drawn.
  for (float& x : adjusted_) x = std::clamp(x, -kLargestLogit, kLargestLogit);
  int64_t words = (args.vocabulary + 31) / 32;
  if (row.mask >= 0) apply_mask(adjusted_, args.masks + row.mask * words);
  return adjusted_;
}

TokenId RowDrawer::draw(const DrawArgs& args, const DrawRow& row, std::span<const float> logits,
                        NoiseKernel noise) {
  logits = adjust(args, row, logits);
  find_block_maxima(logits, maxima_);
  if (row.mask >= 0 && std::ranges::max(maxima_) == kImpossibleLogit) return -1;
  if (row.temperature == 0) {
    find_top_logits(logits, maxima_, 1, scratch_, top_);
    return top_.front().token;
  }
  RaceField field = filter(logits, row);
  if (!top_.empty() && top_.size() <= kFewTokens) return run_race(top_, field.min_p, row.noise);
  return run_race(logits, maxima_, field, row.noise, noise, scratch_);
}

// Applies the filters. The kept tokens are in top_; an empty top_ means all tokens from field.first
// on.
RaceField RowDrawer::filter(std::span<const float> logits, const DrawRow& row) {
  RaceField field = {.temperature = row.temperature, .min_p = row.min_p};
  bool typical = row.typical_p < 1, excludes = excludes_top_choices(row);
  if (typical) {
    keep_typical(logits, row);
    keep_top_p(row.top_p, total_of_top());
  } else {
    field.last = last_kept(logits, row);
    if (!excludes) return field;
    if (top_.empty() && row.min_p > 0) {
      grow_top(logits, row.temperature, [&] { return top_.back().weight < row.min_p; });
    }
  }
  if (!top_.empty()) {
    float least = row.min_p * top_.front().weight;
    std::erase_if(top_, [&](const TopLogit& t) { return t.weight < least || t.weight == 0; });
    field.min_p = 0;
  }
  if (excludes) field = exclude_top(logits, row, field);
  if (!top_.empty()) {
    field.first = top_.front();
    field.last = top_.back();
  }
  return field;
}

// llama.cpp's XTC over the tokens in top_, or over all if it is empty: of the tokens above the
// threshold, only the least likely stays.
RaceField RowDrawer::exclude_top(std::span<const float> logits, const DrawRow& row,
                                 RaceField field) {
  bool of_all = top_.empty();
  double total = of_all ? softmax_total(logits, maxima_, row.temperature) : total_of_top();
  double least = row.xtc_threshold * total;
  auto likely = [&](const TopLogit& t) { return t.weight > 0 && t.weight >= least; };
  if (of_all) grow_top(logits, row.temperature, [&] { return !likely(top_.back()); });
  auto end = std::ranges::partition_point(top_, likely);
  if (end - top_.begin() > 1) {
    field.first = *(end - 1);
    top_.erase(top_.begin(), end - 1);
  }
  if (of_all) top_.clear();
  return field;
}

void RowDrawer::keep_typical(std::span<const float> logits, const DrawRow& row) {
  size_t top_k = row.top_k;
  SoftmaxMoments moments;
  std::optional<std::pair<size_t, size_t>> range;
  if (top_k > 0 && top_k < logits.size()) {
    find_top_weights(logits, top_k, row.temperature);
    moments = moments_of_top(row.temperature);
    range = typical_range(top_, true, row, moments);
  } else {
    moments = softmax_moments(logits, maxima_, row.temperature);
    grow_top(logits, row.temperature, [&] {
      range = typical_range(top_, false, row, moments);
      return range.has_value();
    });
    if (!range) range = typical_range(top_, true, row, moments);
  }
  auto [begin, end] = *range;
  top_.resize(end);
  top_.erase(top_.begin(), top_.begin() + begin);
}

// Grows top_ with the next most likely tokens until `enough` or all are in it; usually a few
// suffice.
template <class Enough>
void RowDrawer::grow_top(std::span<const float> logits, float temperature, Enough enough) {
  for (size_t count = 64;; count *= 8) {
    find_top_weights(logits, count, temperature);
    if (enough() || top_.size() < count) return;
  }
}

// The least likely token that top_k and top_p keep. Leaves the kept tokens in top_, or none if all
// tokens are kept.
TopLogit RowDrawer::last_kept(std::span<const float> logits, const DrawRow& row) {
  size_t top_k = row.top_k;
  if (top_k > 0 && top_k < logits.size()) {
    find_top_weights(logits, top_k, row.temperature);
    keep_top_p(row.top_p, total_of_top());
    return top_.back();
  }
  top_.clear();
  if (row.top_p >= 1) return RaceField().last;
  double total = softmax_total(logits, maxima_, row.temperature);
  grow_top(logits, row.temperature, [&] { return keep_top_p(row.top_p, total); });
  return top_.back();
}

void RowDrawer::find_top_weights(std::span<const float> logits, size_t count, float temperature) {
  find_top_logits(logits, maxima_, count, scratch_, top_);
  float best = top_.front().logit;
  for (TopLogit& t : top_) t.weight = softmax_weight(t.logit, best, temperature);
}

double RowDrawer::total_of_top() const {
  double total = 0;
  for (const TopLogit& t : top_) total += t.weight;
  return total;
}

SoftmaxMoments RowDrawer::moments_of_top(float temperature) const {
  double total = 0, sum = 0;
  for (const TopLogit& t : top_) {
    double weight = t.weight;
    if (weight == 0) continue;
    total += weight;
    sum += weight * softmax_exponent(t.logit, top_.front().logit, temperature);
  }
  return {.total = total, .mean = sum / total};
}

// Keeps the smallest set of most likely tokens whose weights reach top_p of `total`. Returns false
// and keeps all if they do not reach it.
bool RowDrawer::keep_top_p(double top_p, double total) {
  double reached = 0;
  for (size_t i = 0; i < top_.size() && top_p < 1; ++i) {
    reached += top_[i].weight;
    if (reached < top_p * total) continue;
    top_.resize(i + 1);
    return true;
  }
  return false;
}

// The `count` most likely tokens in descending order, lower ids first among equals.
int32_t RowDrawer::report_top(std::span<const float> logits, int32_t count, float log_sum_exp,
                              TokenLogprob* to) {
  find_block_maxima(logits, maxima_);
  find_top_logits(logits, maxima_, count, scratch_, top_);
  for (const TopLogit& t : top_) *to++ = {t.token, t.logit - log_sum_exp};
  return static_cast<int32_t>(top_.size());
}

}  // namespace

void draw_rows(const DrawArgs& args, NoiseKernel noise) {
  auto some_rows = [&](int64_t first, int64_t step) {
    static thread_local RowDrawer drawer;
    for (int64_t r = first; r < args.rows; r += step) drawer.run(args, r, noise);
  };
  // For a single row, waking other threads costs more than it saves.
  if (std::count_if(args.draws, args.draws + args.rows, takes_passes) < 2) {
    some_rows(0, 1);
  } else {
    parallel_interleaved(args.launch, some_rows);
  }
}

}  // namespace banyan
