// Draws tokens, a block for each row, with the bits of kernels/draw.cpp: every sum has the order
// that it has there, and of a race only the winner counts.
//
// What is uniform code here is executed by every thread: the lists of most likely tokens that it
// looks through are short.
#pragma once

#include "kernels/cuda/rowwise.h"
#include "kernels/cuda/select_best.h"
#include "kernels/draw_arithmetic.h"
#include "kernels/kernel_table.h"
#include "kernels/selected_rows.h"

namespace banyan::cuda {

struct LikelyToken {
  float logit;
  TokenId token;
};

BANYAN_HOST_DEVICE constexpr bool likelier(const LikelyToken& a, const LikelyToken& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// The most likely tokens in descending order, of which [begin, end) are kept.
struct LikelyTokens {
  const LikelyToken* data = nullptr;
  int64_t begin = 0, end = 0;

  BANYAN_HOST_DEVICE constexpr int64_t size() const { return end - begin; }
  BANYAN_HOST_DEVICE constexpr const LikelyToken& operator[](int64_t i) const {
    return data[begin + i];
  }
  BANYAN_HOST_DEVICE constexpr const LikelyToken& back() const { return data[end - 1]; }
};

// The tokens that race: those from `first` to `last` with a weight of at least min_p.
struct Field {
  LikelyToken first = {kLargestLogit, 0};
  LikelyToken last = {-kLargestLogit, std::numeric_limits<TokenId>::max()};
  float min_p = 0;
};

// A block's memory: a row of logits, sums of their blocks, and tokens to sort.
struct DrawMemory {
  float* logits;
  float* sums;
  LikelyToken* tokens;

  static constexpr int64_t sortable(int64_t count) {  // a power of two
    int64_t sortable = 64;
    while (sortable < count) sortable *= 2;
    return sortable;
  }
  static constexpr size_t bytes(int64_t vocabulary) {
    return sortable(vocabulary) * (sizeof(float) + sizeof(LikelyToken)) +
           vocabulary * sizeof(float);
  }
};

// Draws one row.
template <class Block>
class RowDraw {
 public:
  BANYAN_DEVICE RowDraw(Block& block, const DrawArgs& args, int64_t r)
      : block_(block),
        args_(args),
        row_(args.draws[r]),
        r_(r),
        vocabulary_(args.vocabulary),
        given_(args.logits + r * args.vocabulary),
        logits_(given_) {
    int64_t sortable = DrawMemory::sortable(vocabulary_);
    auto* tokens = reinterpret_cast<LikelyToken*>(block.scratch());
    auto* logits = reinterpret_cast<float*>(tokens + sortable);
    memory_ = {logits, logits + sortable, tokens};
  }

  BANYAN_DEVICE void run() {
    float log_sum_exp = args_.log_sum_exp[r_];
    DrawResult result = {.log_sum_exp = log_sum_exp};
    if (is_finite(log_sum_exp)) {
      bool greedy = row_.temperature == 0 && draws_from_logits(row_);
      result.token = row_.known >= 0 ? row_.known : greedy ? args_.argmax[r_] : draw();
      if (result.token >= 0) report(result);
    }
    block_.one([&] { args_.results[r_] = result; });
  }

 private:
  BANYAN_DEVICE float weight(float logit) const {
    return softmax_weight(logit, best_, row_.temperature);
  }

  // Log-probabilities are of the logits as they were given.
  BANYAN_DEVICE void report(DrawResult& result) {
    auto logprob = [&](TokenId token) { return given_[token] - result.log_sum_exp; };
    result.logprob = logprob(result.token);
    TokenLogprob* tops = args_.tops + row_.tops_begin;
    if (row_.top_count > 0) {
      logits_ = given_;
      LikelyTokens top = find_top(row_.top_count);
      result.top_count = static_cast<int32_t>(top.size());
      for_each(block_, top.size(),
               [&](int64_t i) { tops[i] = {top[i].token, logprob(top[i].token)}; });
    }
    for_each(block_, row_.chosen.count, [&](int64_t i) {
      TokenId token = args_.chosen[row_.chosen.begin + i];
      tops[row_.top_count + i] = {token, logprob(token)};
    });
  }

  // A token may have several biases: the thread that it belongs to adds them in order.
  BANYAN_DEVICE void adjust() {
    float* x = memory_.logits;
    for_each(block_, vocabulary_, [&](int64_t t) { x[t] = given_[t]; });
    if (has_penalties(row_)) {
      for_each(block_, row_.counts.count, [&](int64_t i) {
        TokenCount count = args_.counts[row_.counts.begin + i];
        x[count.token] = penalised(x[count.token], row_, count.in_output);
      });
    }
    block_.each([&](int thread) {
      for (int64_t i = 0; i < row_.biases.count; ++i) {
        TokenBias bias = args_.biases[row_.biases.begin + i];
        if (bias.token % Block::kThreads == thread) x[bias.token] += bias.bias;
      }
    });
    const uint32_t* mask =
        row_.mask < 0 ? nullptr : args_.masks + row_.mask * ((vocabulary_ + 31) / 32);
    for_each(block_, vocabulary_, [&](int64_t t) {
      x[t] = x[t] < -kLargestLogit ? -kLargestLogit : at_most(x[t], kLargestLogit);
      bool allowed = mask == nullptr || (mask[t / 32] >> (t % 32) & 1u) != 0;
      if (!allowed) x[t] = kImpossibleLogit;
    });
    logits_ = x;
  }

  BANYAN_DEVICE TokenId draw() {
    if (!draws_from_logits(row_)) adjust();
    Best best = best_over(block_, vocabulary_, [&](int64_t t) { return logits_[t]; });
    best_ = best.value;
    if (best_ == kImpossibleLogit) return -1;
    if (row_.temperature == 0) return best.index;
    return race(filter());
  }

  // The `count` most likely tokens, or as many as are possible.
  BANYAN_DEVICE LikelyTokens find_top(int64_t count) {
    LikelyToken* tokens = memory_.tokens;
    int64_t possible = sum_over(block_, vocabulary_, [&](int64_t t) -> int64_t {
      return logits_[t] > kImpossibleLogit ? 1 : 0;
    });
    count = least(count, possible);
    select_best(
        block_, vocabulary_, count, block_.template shared<int64_t>(),
        [&](int64_t t) { return score_order(logits_[t]); },
        [&](int64_t rank, int64_t t) { tokens[rank] = {logits_[t], static_cast<TokenId>(t)}; });
    int64_t size = DrawMemory::sortable(count);
    for_each(block_, size - count, [&](int64_t i) {
      tokens[count + i] = {kImpossibleLogit, std::numeric_limits<TokenId>::max()};
    });
    sort(tokens, size);
    return {tokens, 0, count};
  }

  // Bitonic: Batcher 1968, "Sorting networks and their applications".
  BANYAN_DEVICE void sort(LikelyToken* tokens, int64_t size) {
    for (int64_t run = 2; run <= size; run *= 2) {
      for (int64_t step = run / 2; step > 0; step /= 2) {
        for_each(block_, size / 2, [&](int64_t i) {
          int64_t low = i + (i & -step), high = low + step;
          bool reversed = (low & run) != 0;
          LikelyToken a = tokens[low], b = tokens[high];
          if (likelier(b, a) == reversed) return;
          tokens[low] = b;
          tokens[high] = a;
        });
      }
    }
  }

  // The most likely tokens, and more of them until enough(top).
  template <class Enough>
  BANYAN_DEVICE LikelyTokens grow_top(const Enough& enough) {
    for (int64_t count = 64;; count *= 8) {
      LikelyTokens top = find_top(count);
      if (enough(top) || top.size() < count) return top;
    }
  }

  BANYAN_DEVICE double total_of(const LikelyTokens& top) const {
    double total = 0;
    for (int64_t i = 0; i < top.size(); ++i) total += weight(top[i].logit);
    return total;
  }

  // Keeps the smallest set of most likely tokens whose weights reach top_p of `total`. Returns
  // false and keeps all if they do not reach it.
  BANYAN_DEVICE bool keep_top_p(LikelyTokens& top, double total) const {
    double top_p = row_.top_p;
    double reached = 0;
    for (int64_t i = 0; i < top.size() && top_p < 1; ++i) {
      reached += weight(top[i].logit);
      if (reached < top_p * total) continue;
      top.end = top.begin + i + 1;
      return true;
    }
    return false;
  }

  // The tokens that top_k and top_p keep, or none if those are all.
  BANYAN_DEVICE LikelyTokens keep_likely() {
    if (row_.top_k > 0 && row_.top_k < vocabulary_) {
      LikelyTokens top = find_top(row_.top_k);
      keep_top_p(top, total_of(top));
      return top;
    }
    if (row_.top_p >= 1) return {};
    double total = softmax_total();
    return grow_top([&](LikelyTokens& top) { return keep_top_p(top, total); });
  }

  struct Moments {
    double total, mean;
  };

  BANYAN_DEVICE LikelyTokens keep_typical() {
    LikelyTokens top;
    TypicalRange range;
    auto find = [&](const LikelyTokens& some, bool all, const Moments& moments) {
      return find_typical_range(
          some.size(), all, row_.typical_p * moments.total,
          [&](int64_t i) {
            return softmax_exponent(some[i].logit, best_, row_.temperature) - moments.mean;
          },
          [&](int64_t i) { return weight(some[i].logit); });
    };
    if (row_.top_k > 0 && row_.top_k < vocabulary_) {
      top = find_top(row_.top_k);
      range = find(top, true, moments_of(top));
    } else {
      Moments moments = moments_of_all();
      top = grow_top([&](const LikelyTokens& some) {
        range = find(some, false, moments);
        return range.found;
      });
      if (!range.found) range = find(top, true, moments);
    }
    return {top.data, range.begin, range.end};
  }

  // Applies the filters.
  BANYAN_DEVICE Field filter() {
    Field field = {.min_p = row_.min_p};
    bool excludes = excludes_top_choices(row_);
    LikelyTokens top;
    if (row_.typical_p < 1) {
      top = keep_typical();
      keep_top_p(top, total_of(top));
    } else {
      top = keep_likely();
      if (top.size() > 0) field.last = top.back();
      if (!excludes) return field;
      if (top.size() == 0 && row_.min_p > 0) {
        top = grow_top(
            [&](const LikelyTokens& some) { return weight(some.back().logit) < row_.min_p; });
      }
    }
    if (top.size() > 0) {
      // Weights fall, so that the first one below the least ends the list.
      float least = row_.min_p * weight(top[0].logit);
      int64_t kept = 0;
      while (kept < top.size() && weight(top[kept].logit) >= least &&
             weight(top[kept].logit) != 0) {
        ++kept;
      }
      top.end = top.begin + kept;
      field.min_p = 0;
    }
    if (excludes) exclude_top(top, field);
    if (top.size() > 0) {
      field.first = top[0];
      field.last = top.back();
    }
    return field;
  }

  // llama.cpp's XTC over `top`, or over all tokens if it is empty: of the tokens above the
  // threshold, only the least likely stays.
  BANYAN_DEVICE void exclude_top(LikelyTokens& top, Field& field) {
    bool of_all = top.size() == 0;
    double total = of_all ? softmax_total() : total_of(top);
    double least = row_.xtc_threshold * total;
    auto likely = [&](const LikelyToken& t) {
      float w = weight(t.logit);
      return w > 0 && w >= least;
    };
    if (of_all) top = grow_top([&](const LikelyTokens& some) { return !likely(some.back()); });
    int64_t count = 0;
    while (count < top.size() && likely(top[count])) ++count;
    if (count > 1) {
      field.first = top[count - 1];
      top.begin += count - 1;
    }
    if (of_all) top = {};
  }

  // As in logit_scan.cpp: the sums of blocks of logits, added up in lanes.
  BANYAN_DEVICE double softmax_total() {
    auto block_size = static_cast<int64_t>(kLogitBlock);
    int64_t blocks = (vocabulary_ + block_size - 1) / block_size;
    for_each(block_, blocks, [&](int64_t b) { memory_.sums[b] = sum_of_block(b * block_size); });
    double lanes[kLogitLanes] = {};
    for (int64_t b = 0; b < blocks; b += kLogitLanes) {
      BANYAN_UNROLL
      for (int64_t lane = 0; lane < static_cast<int64_t>(kLogitLanes); ++lane) {
        if (b + lane < blocks) lanes[lane] += memory_.sums[b + lane];
      }
    }
    return tree_sum(lanes);
  }

  BANYAN_DEVICE static double tree_sum(const double (&lanes)[kLogitLanes]) {
    auto pairs = [&](size_t i) { return lanes[i] + lanes[i + 8]; };
    auto quads = [&](size_t i) { return pairs(i) + pairs(i + 4); };
    return (quads(0) + quads(2)) + (quads(1) + quads(3));
  }

  BANYAN_DEVICE float sum_of_block(int64_t begin) const {
    float lanes[kLogitLanes] = {};
    bool some = false;
    for (size_t first = 0; first < kLogitBlock; first += kLogitLanes) {
      BANYAN_UNROLL
      for (size_t i = 0; i < kLogitLanes; ++i) {
        int64_t t = begin + static_cast<int64_t>(first + i);
        if (t >= vocabulary_) continue;
        some |= exponent_of(logits_[t], best_, row_.temperature) > kLeastExponent;
        lanes[i] += weight(logits_[t]);
      }
    }
    auto pairs = [&](size_t i) { return lanes[i] + lanes[i + 8]; };
    auto quads = [&](size_t i) { return pairs(i) + pairs(i + 4); };
    return some ? (quads(0) + quads(2)) + (quads(1) + quads(3)) : 0;
  }

  // A lane has every sixteenth token of a block; lanes are threads.
  BANYAN_DEVICE Moments moments_of_all() {
    auto lanes = static_cast<int64_t>(kLogitLanes);
    auto* sums = reinterpret_cast<double*>(memory_.tokens);  // nothing is sorted yet
    for_each(block_, lanes, [&](int64_t lane) {
      double total = 0, sum = 0;
      for (int64_t t = lane; t < vocabulary_; t += lanes) add_moment(logits_[t], total, sum);
      sums[lane] = total;
      sums[lanes + lane] = sum;
    });
    double totals[kLogitLanes], all[kLogitLanes];
    BANYAN_UNROLL
    for (size_t i = 0; i < kLogitLanes; ++i) {
      totals[i] = sums[i];
      all[i] = sums[kLogitLanes + i];
    }
    double total = tree_sum(totals);
    return {total, tree_sum(all) / total};
  }

  BANYAN_DEVICE Moments moments_of(const LikelyTokens& top) const {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < top.size(); ++i) add_moment(top[i].logit, total, sum);
    return {total, sum / total};
  }

  BANYAN_DEVICE void add_moment(float logit, double& total, double& sum) const {
    double w = weight(logit);
    if (w == 0) return;
    total += w;
    sum += w * softmax_exponent(logit, best_, row_.temperature);
  }

  struct Runner {
    double score = 0;
    int32_t token = 0, unused = 0;
  };
  struct Faster {
    BANYAN_HOST_DEVICE constexpr Runner operator()(const Runner& a, const Runner& b) const {
      return b.score > a.score || (b.score == a.score && b.token < a.token) ? b : a;
    }
  };

  // The token with the largest weight / time (kernels/race.h).
  BANYAN_DEVICE TokenId race(const Field& field) {
    return block_
        .reduce(
            [&](int thread) {
              Runner best = {0, std::numeric_limits<TokenId>::max()};
              for (int64_t t = thread; t < vocabulary_; t += Block::kThreads) {
                best = Faster()(best, runner(field, static_cast<TokenId>(t)));
              }
              return best;
            },
            Faster())
        .token;
  }

  BANYAN_DEVICE Runner runner(const Field& field, TokenId token) const {
    LikelyToken t = {logits_[token], token};
    float w = weight(t.logit);
    constexpr Runner kNone = {0, std::numeric_limits<TokenId>::max()};
    if (likelier(t, field.first) || likelier(field.last, t) || !(w > 0) || w < field.min_p) {
      return kNone;
    }
    auto words = philox(row_.noise.seed, static_cast<uint64_t>(row_.noise.position),
                        static_cast<uint64_t>(token / 4) << 32 | row_.noise.sample_index);
    uint32_t low = token % 2 == 0 ? words[0] : words[1],
             high = token % 2 == 0 ? words[2] : words[3];
    uint32_t word = token % 4 < 2 ? low : high;
    return {w / race_time(word), token};
  }

  Block& block_;
  const DrawArgs& args_;
  const DrawRow& row_;
  int64_t r_, vocabulary_;
  const float *given_, *logits_;
  float best_ = 0;
  DrawMemory memory_;
};

struct Draw {
  static constexpr int64_t kBlocksMax = 32;  // since each needs memory for a vocabulary

  DrawArgs a;
  Shape shape() const {
    return {.blocks = least(a.rows, kBlocksMax),
            .shared_bytes = kBlockThreads * sizeof(int64_t),
            .scratch_bytes = DrawMemory::bytes(a.vocabulary)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for (int64_t r = block.index(); r < a.rows; r += block.count()) RowDraw(block, a, r).run();
  }
};

}  // namespace banyan::cuda
