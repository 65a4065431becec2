#include "kernels/draw.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "kernels/launch.h"
#include "kernels/logit_scan.h"
#include "kernels/race.h"

namespace banyan {
namespace {

constexpr float kLargestLogit = std::numeric_limits<float>::max();
constexpr float kImpossibleLogit = -std::numeric_limits<float>::infinity();

bool has_penalties(const DrawRow& row) {
  return row.counts.count > 0 &&
         (row.frequency_penalty != 0 || row.presence_penalty != 0 || row.repetition_penalty != 1);
}

// More tokens than these are found faster by their blocks.
constexpr size_t kFewTokens = 128;

// Nothing changes the logits before a token is drawn from them.
bool draws_from_logits(const DrawRow& row) {
  return !has_penalties(row) && row.biases.count == 0 && row.mask < 0;
}

// Takes more than a look at what logit_stats found.
bool takes_passes(const DrawRow& row) {
  if (row.top_count > 0) return true;
  return row.known < 0 && !(row.temperature == 0 && draws_from_logits(row));
}

template <class T>
std::span<const T> part(const T* array, ArrayPart part) {
  return {array + part.begin, static_cast<size_t>(part.count)};
}

void apply_penalties(std::span<float> logits, const DrawRow& row,
                     std::span<const TokenCount> counts) {
  for (auto [token, times] : counts) {
    float& x = logits[static_cast<size_t>(token)];
    x = x > 0 ? x / row.repetition_penalty : x * row.repetition_penalty;
    if (times > 0) {
      x -= row.frequency_penalty * static_cast<float>(times) + row.presence_penalty;
    }
  }
}

// Tokens that the mask does not have cannot come.
void apply_mask(std::span<float> logits, const uint32_t* mask) {
  for (size_t begin = 0; begin < logits.size(); begin += 32) {
    uint32_t word = mask[begin / 32];
    if (word == ~0u) continue;
    std::span<float> some = logits.subspan(begin, std::min<size_t>(32, logits.size() - begin));
    if (word == 0) {  // most of them where a grammar leaves little
      std::ranges::fill(some, kImpossibleLogit);
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i) {
      if (((word >> i) & 1u) == 0) some[i] = kImpossibleLogit;
    }
  }
}

// One worker's memory, and what it does with a row. It takes memory for a vocabulary once.
class RowDrawer {
 public:
  void run(const DrawArgs& args, int64_t r, NoiseKernel noise);

 private:
  void prepare(size_t vocabulary);
  std::span<const float> adjust(const DrawArgs& args, const DrawRow& row,
                                std::span<const float> logits);
  TokenId draw(const DrawArgs& args, const DrawRow& row, std::span<const float> logits,
               NoiseKernel noise);
  TopLogit last_kept(std::span<const float> logits, const DrawRow& row);
  void find_top_weights(std::span<const float> logits, size_t count, float temperature);
  double total_of_top() const;
  bool keep_top_p(double top_p, double total);
  int32_t report_top(std::span<const float> logits, int32_t count, float log_sum_exp,
                     TokenLogprob* to);

  std::vector<float> adjusted_;  // logits after bias, penalties and mask
  std::vector<float> maxima_, scratch_;
  std::vector<TopLogit> top_;
};

void RowDrawer::run(const DrawArgs& args, int64_t r, NoiseKernel noise) {
  const DrawRow& row = args.draws[r];
  float log_sum_exp = args.log_sum_exp[r];
  DrawResult& result = args.results[r];
  result = {.log_sum_exp = log_sum_exp};
  if (!__builtin_isfinite(log_sum_exp)) return;
  auto vocabulary = static_cast<size_t>(args.vocabulary);
  std::span<const float> logits(args.logits + r * args.vocabulary, vocabulary);
  result.token = row.known;
  if (takes_passes(row)) prepare(vocabulary);
  if (row.known < 0) {
    bool greedy = row.temperature == 0 && draws_from_logits(row);
    result.token = greedy ? args.argmax[r] : draw(args, row, logits, noise);
  }
  if (result.token < 0) return;
  auto logprob = [&](TokenId token) { return logits[static_cast<size_t>(token)] - log_sum_exp; };
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
    adjusted_[static_cast<size_t>(token)] += bias;
  }
  // Damaged weights give logits that are infinite, or become so under a penalty. Such a token is as
  // unlikely or likely as can be, but not forbidden: some token must come next.
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
  RaceField field = {
      .temperature = row.temperature, .last = last_kept(logits, row), .min_p = row.min_p};
  if (!top_.empty() && top_.size() <= kFewTokens) return run_race(top_, row.min_p, row.noise);
  return run_race(logits, maxima_, field, row.noise, noise, scratch_);
}

// The least likely token that top_k and top_p keep. Leaves those that they keep in top_; none where
// they keep all.
TopLogit RowDrawer::last_kept(std::span<const float> logits, const DrawRow& row) {
  auto top_k = static_cast<size_t>(row.top_k);
  if (top_k > 0 && top_k < logits.size()) {
    find_top_weights(logits, top_k, row.temperature);
    keep_top_p(static_cast<double>(row.top_p), total_of_top());
    return top_.back();
  }
  top_.clear();
  if (row.top_p >= 1) return RaceField().last;
  double total = softmax_total(logits, maxima_, row.temperature);
  // Ever more of the most likely, until their weights suffice: a few tokens usually do.
  for (size_t count = 64;; count *= 8) {
    find_top_weights(logits, count, row.temperature);
    if (keep_top_p(static_cast<double>(row.top_p), total) || top_.size() < count) {
      return top_.back();
    }
  }
}

void RowDrawer::find_top_weights(std::span<const float> logits, size_t count, float temperature) {
  find_top_logits(logits, maxima_, count, scratch_, top_);
  float best = top_.front().logit;
  for (TopLogit& t : top_) t.weight = softmax_weight(t.logit, best, temperature);
}

double RowDrawer::total_of_top() const {
  double total = 0;
  for (const TopLogit& t : top_) total += static_cast<double>(t.weight);
  return total;
}

// Keeps the smallest set of most likely tokens whose weights reach top_p of the total; all of them
// and false where they do not.
bool RowDrawer::keep_top_p(double top_p, double total) {
  double reached = 0;
  for (size_t i = 0; i < top_.size() && top_p < 1; ++i) {
    reached += static_cast<double>(top_[i].weight);
    if (reached < top_p * total) continue;
    top_.resize(i + 1);
    return true;
  }
  return false;
}

// The `count` most likely tokens, most likely first, lower ids first among equals.
int32_t RowDrawer::report_top(std::span<const float> logits, int32_t count, float log_sum_exp,
                              TokenLogprob* to) {
  find_block_maxima(logits, maxima_);
  find_top_logits(logits, maxima_, static_cast<size_t>(count), scratch_, top_);
  for (const TopLogit& t : top_) *to++ = {t.token, t.logit - log_sum_exp};
  return static_cast<int32_t>(top_.size());
}

}  // namespace

void draw_rows(const DrawArgs& args, NoiseKernel noise) {
  auto some_rows = [&](int64_t first, int64_t step) {
    static thread_local RowDrawer drawer;
    for (int64_t r = first; r < args.rows; r += step) drawer.run(args, r, noise);
  };
  // Waking others costs more than one row's passes.
  if (std::count_if(args.draws, args.draws + args.rows, takes_passes) < 2) {
    some_rows(0, 1);
  } else {
    parallel_interleaved(args.launch, some_rows);
  }
}

}  // namespace banyan
