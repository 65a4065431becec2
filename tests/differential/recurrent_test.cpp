// The recurrences of every table (linear attention, the delta rule with a decay of each channel or
// head, selective state spaces): against f64, and against themselves bit for bit in other spans,
// batches and numbers of threads, from captured states, and after drafts.
//
// Slots and logs start as NaN, so a state that was not made here shows.
#include <gtest/gtest.h>

#include <cmath>

#include "differential/kernels.h"
#include "kernels/slot_rows.h"

namespace banyan::recurrent_test {
namespace {

using namespace test;  // NOLINT

enum class Rule : uint8_t { kLinear, kDelta, kHeadDelta, kStateSpace };

struct Shape {
  Rule rule = Rule::kLinear;
  int64_t heads = 2, key_dim = 8, value_dim = 12, chunk = 8;
  int64_t group = 1;
  int64_t key_width() const { return heads / group * key_dim; }
  int64_t decay_dim() const { return rule == Rule::kDelta ? key_dim : 1; }
  int64_t value_width() const { return heads * value_dim; }
  int64_t state_size() const { return heads * key_dim * value_dim; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(key_dim)); }
  // From hardly any decay to one that removes everything.
  std::vector<float> log_decay() const {
    std::vector<float> all;
    for (int64_t h = 0; h < heads; ++h) all.push_back(h == 1 ? -120.0f : -0.004f - 0.3f * h);
    return all;
  }
};

const std::vector<float> kSkip = {0.5f, -1.25f, 0, 2, 1, -3};  // of state spaces, of each head

// Queries, keys and values of one sequence, rows dense. For the delta rule, keys have norm at most
// 1, some decays forget everything, and strengths (for a state space: its steps) range from 0 to 1.
struct Inputs {
  Inputs(const Shape& shape, int64_t length, int64_t prompt, Random& random)
      : length(length),
        prompt(prompt),
        q(random.normals(length * shape.key_width())),
        k(random.normals(length * shape.key_width())),
        v(random.normals(length * shape.value_width())) {
    if (shape.rule == Rule::kLinear) return;
    for (int64_t i = 0; i < length * shape.heads / shape.group; ++i) {
      float* key = k.data() + i * shape.key_dim;
      float squares = 0;
      for (int64_t c = 0; c < shape.key_dim; ++c) squares += key[c] * key[c];
      for (int64_t c = 0; c < shape.key_dim; ++c) key[c] /= std::sqrt(squares + 1e-6f);
    }
    for (int64_t i = 0; i < length * shape.heads; ++i) {
      for (int64_t c = 0; c < shape.decay_dim(); ++c) {
        float step = i % 5 == 0 ? 40 * std::fabs(random.normal()) : random.below(3) == 0 ? 0 : 0.2f;
        decay.push_back(random.below(200) == 0 ? 0 : std::exp(-step * std::fabs(random.normal())));
      }
      beta.push_back(static_cast<float>(random.below(101)) / 100);
    }
  }
  int64_t length, prompt;
  std::vector<float> q, k, v, decay, beta;
};

struct Span {
  const Inputs* inputs;
  int32_t slot;
  int64_t first, count;
  DraftRows drafts = {};
};

// The slots of one layer.
class Slots {
 public:
  Slots(const Shape& shape, int64_t slots) : shape_(shape) {
    states_.assign(slots * shape.state_size(), NAN);
    log_.assign(slots * kLogRows * log_width(), NAN);
  }

  // Runs the spans in one batch; rows are a little apart, as in a fused product.
  std::vector<float> step(const KernelTable& table, const std::vector<Span>& spans,
                          const std::vector<Capture>& captures = {},
                          ThreadPool* threads = nullptr) {
    int64_t stride = 2 * shape_.key_width() + shape_.value_width();
    std::vector<SpanArgs> args;
    std::vector<int32_t> slots, prompts;
    std::vector<DraftRows> drafts;
    std::vector<float> rows, decay, beta;
    for (const Span& span : spans) {
      args.push_back({.row_begin = static_cast<int32_t>(std::ssize(rows) / stride),
                      .row_count = static_cast<int32_t>(span.count),
                      .first_position = static_cast<int32_t>(span.first)});
      slots.push_back(span.slot);
      drafts.push_back(span.drafts);
      prompts.push_back(static_cast<int32_t>(span.inputs->prompt));
      for (int64_t i = span.first; i < span.first + span.count; ++i) {
        append(span.inputs->q, i, shape_.key_width(), rows);
        append(span.inputs->k, i, shape_.key_width(), rows);
        append(span.inputs->v, i, shape_.value_width(), rows);
        if (shape_.rule == Rule::kLinear) continue;
        append(span.inputs->decay, i, shape_.heads * shape_.decay_dim(), decay);
        append(span.inputs->beta, i, shape_.heads, beta);
      }
    }
    if (rows.empty()) return {};
    std::vector<float> out(std::ssize(rows) / stride * shape_.value_width(), NAN);
    SlotSpans slot_spans = {.spans = args.data(),
                            .count = std::ssize(args),
                            .slots = slots.data(),
                            .prompt_tokens = prompts.data(),
                            .captures = captures.data(),
                            .capture_count = std::ssize(captures),
                            .drafts = drafts.data(),
                            .log = {log_.data(), slots.data(), kLogRows},
                            .rows = count_rows(args, prompts, drafts, shape_.chunk)};
    auto common = [&](auto kernel_args) {
      kernel_args.launch = {.threads = threads};
      kernel_args.q = rows.data();
      kernel_args.k = rows.data() + shape_.key_width();
      kernel_args.v = rows.data() + 2 * shape_.key_width();
      kernel_args.q_row_stride = kernel_args.k_row_stride = kernel_args.v_row_stride = stride;
      kernel_args.states = states_.data();
      kernel_args.out = out.data();
      kernel_args.heads = shape_.heads;
      kernel_args.key_dim = shape_.key_dim;
      kernel_args.value_dim = shape_.value_dim;
      kernel_args.group = shape_.group;
      kernel_args.chunk = shape_.chunk;
      kernel_args.spans = slot_spans;
      return kernel_args;
    };
    if (shape_.rule == Rule::kLinear) {
      std::vector<float> log_decay = shape_.log_decay();
      LinearAttentionArgs linear = {.log_decay = log_decay.data(), .scale = shape_.scale()};
      table.linear_attention(common(linear));
    } else if (shape_.rule == Rule::kStateSpace) {
      std::vector<float> skip = kSkip;
      table.state_space(
          common(StateSpaceArgs{.decay = decay.data(), .step = beta.data(), .skip = skip.data()}));
    } else {
      table.delta_attention(common(DeltaAttentionArgs{.decay = decay.data(),
                                                      .beta = beta.data(),
                                                      .decay_dim = shape_.decay_dim(),
                                                      .scale = shape_.scale()}));
    }
    return out;
  }

  std::vector<float> state(int64_t slot) const {
    auto begin = states_.begin() + slot * shape_.state_size();
    return {begin, begin + shape_.state_size()};
  }

 private:
  static void append(const std::vector<float>& from, int64_t row, int64_t width,
                     std::vector<float>& to) {
    to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
  }

  int64_t log_width() const {
    int64_t decays = shape_.rule == Rule::kLinear ? 0 : shape_.decay_dim();
    return shape_.heads * update_width(decays, shape_.key_dim, shape_.value_dim);
  }

  static constexpr int64_t kLogRows = 8;
  Shape shape_;
  std::vector<float> states_, log_;
};

std::vector<float> run_whole(const KernelTable& table, const Shape& shape, const Inputs& inputs) {
  return Slots(shape, 1).step(table, {{&inputs, 0, 0, inputs.length}});
}

// The plain scan in f64, and the same of magnitudes, to which errors are relative. A term that is t
// positions old was decayed in up to t roundings (or once, by an exponential whose argument of at
// most 87 before it underflows is rounded), added up in sums of at most t + chunk terms, and is a
// product of key_dim terms: (2 t + chunk + key_dim + 90) eps at most.
void expect_near_exact(const Shape& shape, const Inputs& inputs, const std::vector<float>& out) {
  std::vector<float> log_decay = shape.log_decay();
  for (int64_t h = 0; h < shape.heads; ++h) {
    double decay = std::exp(double{log_decay[h]});
    std::vector<double> state(shape.key_dim * shape.value_dim), magnitude = state;
    for (int64_t i = 0; i < inputs.length; ++i) {
      const float* q = inputs.q.data() + i * shape.key_width() + h * shape.key_dim;
      const float* k = inputs.k.data() + i * shape.key_width() + h * shape.key_dim;
      const float* v = inputs.v.data() + i * shape.value_width() + h * shape.value_dim;
      for (int64_t d = 0; d < shape.value_dim; ++d) {
        double exact = 0, error = 0;
        for (int64_t c = 0; c < shape.key_dim; ++c) {
          double& s = state[c * shape.value_dim + d];
          double& m = magnitude[c * shape.value_dim + d];
          s = decay * s + double{k[c]} * double{v[d]};
          m = decay * m + std::fabs(double{k[c]} * double{v[d]});
          exact += double{q[c]} * s * double{shape.scale()};
          error += std::fabs(double{q[c]}) * m * double{shape.scale()};
        }
        auto roundings = static_cast<double>(2 * i + shape.chunk + shape.key_dim + 90);
        ASSERT_NEAR(out[i * shape.value_width() + h * shape.value_dim + d], exact,
                    roundings * double{kEpsilon} * error)
            << "row " << i << " head " << h << " column " << d;
      }
    }
  }
}

// The plain scan in f64. The rule only shrinks what is in the state, so an error made in one step
// grows no more: after i steps it is at most i times that of one, which reads and writes a state of
// a norm that is at hand in key_dim terms, and applies it once more in products of up to a chunk of
// decays.
void expect_near_exact_delta(const Shape& shape, const Inputs& inputs,
                             const std::vector<float>& out) {
  for (int64_t h = 0; h < shape.heads; ++h) {
    std::vector<double> state(shape.key_dim * shape.value_dim);
    double largest = 0;
    for (int64_t i = 0; i < inputs.length; ++i) {
      int64_t key_head = h / shape.group, decays = shape.decay_dim();
      const float* q = inputs.q.data() + i * shape.key_width() + key_head * shape.key_dim;
      const float* k = inputs.k.data() + i * shape.key_width() + key_head * shape.key_dim;
      const float* decay = inputs.decay.data() + (i * shape.heads + h) * decays;
      const float* v = inputs.v.data() + i * shape.value_width() + h * shape.value_dim;
      double q_squares = 0;
      for (int64_t c = 0; c < shape.key_dim; ++c) q_squares += double{q[c]} * double{q[c]};
      for (int64_t d = 0; d < shape.value_dim; ++d) {
        double read = 0, exact = 0, squares = 0;
        for (int64_t c = 0; c < shape.key_dim; ++c) {
          double& s = state[c * shape.value_dim + d];
          s *= double{decay[decays == 1 ? 0 : c]};
          read += double{k[c]} * s;
        }
        double update = double{inputs.beta[i * shape.heads + h]} * (double{v[d]} - read);
        for (int64_t c = 0; c < shape.key_dim; ++c) {
          double& s = state[c * shape.value_dim + d];
          s += double{k[c]} * update;
          exact += double{q[c]} * s * double{shape.scale()};
          squares += s * s;
        }
        largest = std::max({largest, std::sqrt(squares), std::fabs(double{v[d]})});
        auto roundings = static_cast<double>(2 * i + shape.chunk + shape.key_dim + 8);
        ASSERT_NEAR(
            out[i * shape.value_width() + h * shape.value_dim + d], exact,
            roundings * double{kEpsilon} * largest * std::sqrt(q_squares) * double{shape.scale()})
            << "row " << i << " head " << h << " column " << d;
      }
    }
  }
}

// The plain scan of a state space in f64, with the bound of linear attention; a step is one more
// factor.
void expect_near_exact_state_space(const Shape& shape, const Inputs& inputs,
                                   const std::vector<float>& out) {
  for (int64_t h = 0; h < shape.heads; ++h) {
    std::vector<double> state(shape.key_dim * shape.value_dim), magnitude = state;
    for (int64_t i = 0; i < inputs.length; ++i) {
      int64_t key = i * shape.key_width() + h / shape.group * shape.key_dim;
      const float *q = inputs.q.data() + key, *k = inputs.k.data() + key;
      const float* v = inputs.v.data() + i * shape.value_width() + h * shape.value_dim;
      double decay = inputs.decay[i * shape.heads + h], step = inputs.beta[i * shape.heads + h];
      for (int64_t d = 0; d < shape.value_dim; ++d) {
        double exact = double{kSkip[h]} * double{v[d]}, error = std::fabs(exact);
        for (int64_t c = 0; c < shape.key_dim; ++c) {
          double& s = state[c * shape.value_dim + d];
          double& m = magnitude[c * shape.value_dim + d];
          s = decay * s + step * double{k[c]} * double{v[d]};
          m = decay * m + step * std::fabs(double{k[c]} * double{v[d]});
          exact += double{q[c]} * s;
          error += std::fabs(double{q[c]}) * m;
        }
        auto roundings = static_cast<double>(2 * i + shape.chunk + shape.key_dim + 92);
        ASSERT_NEAR(out[i * shape.value_width() + h * shape.value_dim + d], exact,
                    roundings * double{kEpsilon} * error + 1e-30)
            << "row " << i << " head " << h << " column " << d;
      }
    }
  }
}

void expect_near(const Shape& shape, const Inputs& inputs, const std::vector<float>& out) {
  if (shape.rule == Rule::kLinear) return expect_near_exact(shape, inputs, out);
  if (shape.rule == Rule::kStateSpace) return expect_near_exact_state_space(shape, inputs, out);
  expect_near_exact_delta(shape, inputs, out);
}

// Heads in groups, with numbers of each head.
TEST(RecurrenceOfHeads, BothFormsOfEveryTableAreWithinTheirErrorBound) {
  Random random(8);
  for (const KernelTable* table : tables()) {
    for (int64_t chunk : {5, 64}) {
      for (int64_t key_dim : {1, 13, 128}) {
        for (int64_t prompt : {0, 40, 100}) {
          bool wide = key_dim == 128;  // which registers of a GPU hold if they have whole columns
          Shape delta = {Rule::kHeadDelta, 6, key_dim, wide ? 32 : 9, chunk, 2};
          Shape space = {Rule::kStateSpace, 6, key_dim, wide ? 64 : 70, chunk, 3};
          SCOPED_TRACE(
              fmt::format("{} chunk {} key_dim {} prompt {}", table->name, chunk, key_dim, prompt));
          Inputs a(delta, 100, prompt, random), b(space, 100, prompt, random);
          expect_near_exact_delta(delta, a, run_whole(*table, delta, a));
          expect_near_exact_state_space(space, b, run_whole(*table, space, b));
        }
      }
    }
  }
}

TEST(DeltaAttention, BothFormsOfEveryTableAreWithinTheirErrorBound) {
  Random random(6);
  for (const KernelTable* table : tables()) {
    for (int64_t chunk : {5, 16, 64}) {
      for (int64_t key_dim : {1, 13, 128}) {
        for (int64_t value_dim : {9, 32, 70}) {
          for (int64_t prompt : {0, 40, 100}) {
            Shape shape = {Rule::kDelta, 3, key_dim, value_dim, chunk};
            SCOPED_TRACE(fmt::format("{} chunk {} dims {} x {} prompt {}", table->name, chunk,
                                     key_dim, value_dim, prompt));
            Inputs inputs(shape, 100, prompt, random);
            expect_near_exact_delta(shape, inputs, run_whole(*table, shape, inputs));
          }
        }
      }
    }
  }
}

// Heads beyond the scratch of the fast kernels.
TEST(RecurrenceKernels, TakeHeadsOfAnySize) {
  Random random(7);
  for (const KernelTable* table : tables()) {
    Shape linear = {Rule::kLinear, 1, 300, 300, 8}, delta = {Rule::kDelta, 1, 300, 300, 8};
    Shape space = {Rule::kStateSpace, 1, 300, 300, 8};
    Inputs a(linear, 20, 16, random), b(delta, 20, 16, random), c(space, 20, 16, random);
    expect_near_exact_state_space(space, c, run_whole(*table, space, c));
    expect_near_exact(linear, a, run_whole(*table, linear, a));
    expect_near_exact_delta(delta, b, run_whole(*table, delta, b));
  }
}

TEST(LinearAttention, BothFormsOfEveryTableAreWithinTheirErrorBound) {
  Random random(1);
  for (const KernelTable* table : tables()) {
    for (int64_t chunk : {1, 5, 8, 64}) {
      for (int64_t key_dim : {1, 8, 13, 64}) {
        for (int64_t prompt : {0, 1, 40, 64, 100}) {
          Shape shape = {.heads = 3, .key_dim = key_dim, .value_dim = 9, .chunk = chunk};
          SCOPED_TRACE(
              fmt::format("{} chunk {} key_dim {} prompt {}", table->name, chunk, key_dim, prompt));
          Inputs inputs(shape, 100, prompt, random);
          expect_near_exact(shape, inputs, run_whole(*table, shape, inputs));
        }
      }
    }
  }
}

class Recurrence : public testing::TestWithParam<Rule> {};

// Whose prompts tensor cores take in tiles, of which a chunk may have several.
Shape in_tiles(Rule rule) {
  Shape shape = {rule, 3, 128, 64, 64, rule == Rule::kHeadDelta ? 3 : 1};
  if (rule == Rule::kLinear) shape.value_dim = 192, shape.chunk = 128;
  if (rule == Rule::kDelta) shape.value_dim = 128;
  return shape;
}

// Several sequences in random spans, cut at chunks while they are in their prompts.
TEST_P(Recurrence, SpansNeighboursAndThreadsDoNotChangeABit) {
  Random random(2);
  int64_t group = GetParam() == Rule::kHeadDelta ? 3 : 1;
  std::vector<Shape> shapes = {
      {GetParam(), 3, 20, 70, 4, group}, {GetParam(), 3, 20, 70, 32, group}, in_tiles(GetParam())};
  for (const KernelTable* table : tables()) {
    for (const Shape& shape : shapes) {
      int64_t chunk = shape.chunk;
      ThreadPool threads(chunk == 4 ? 2 : 3);
      Inputs a(shape, 120, 77, random), b(shape, 90, 64, random), c(shape, 40, 3, random);
      std::vector<const Inputs*> inputs = {&a, &b, &c};
      std::vector<std::vector<float>> outs(3);
      std::vector<int64_t> done(3);
      Slots slots(shape, 5);
      for (bool more = true; more;) {
        std::vector<Span> spans;
        std::vector<size_t> owners;
        for (size_t s : {2, 0, 1}) {
          int64_t end = std::min(inputs[s]->length, done[s] + 1 + random.below(30));
          if (end < inputs[s]->prompt) end = (end + chunk - 1) / chunk * chunk;
          end = std::min(end, inputs[s]->length);
          if (end == done[s]) continue;
          spans.push_back({inputs[s], static_cast<int32_t>(4 - s), done[s], end - done[s]});
          owners.push_back(s);
          done[s] = end;
        }
        more = !spans.empty();
        std::vector<float> out = slots.step(*table, spans, {}, &threads);
        auto from = out.begin();
        for (size_t i = 0; i < spans.size(); ++i) {
          auto end = from + spans[i].count * shape.value_width();
          outs[owners[i]].insert(outs[owners[i]].end(), from, end);
          from = end;
        }
      }
      for (size_t s = 0; s < 3; ++s) {
        EXPECT_TRUE(same_bits(outs[s], run_whole(*table, shape, *inputs[s])))
            << table->name << " chunk " << chunk << " sequence " << s;
      }
    }
  }
}

// Prompts of one tile and of several, more of them than the emulation takes at once, whole and in
// parts, and what follows them.
TEST_P(Recurrence, TilesOfPrompts) {
  Random random(11);
  Shape shape = in_tiles(GetParam());
  int64_t chunk = shape.chunk;
  for (const KernelTable* table : tables()) {
    Inputs a(shape, chunk + 71, chunk + 66, random), b(shape, 50, 49, random);
    Slots slots(shape, 4);
    std::vector<float> begin = slots.step(*table, {{&a, 0, 0, chunk}, {&b, 1, 0, 50}},
                                          {{.span = 1, .position = 48, .slot = 2}});
    std::vector<float> whole = run_whole(*table, shape, a), after = run_whole(*table, shape, b);
    expect_near(shape, a, whole);
    expect_near(shape, b, after);
    std::vector<float> rest = slots.step(*table, {{&b, 2, 49, 1}, {&a, 0, chunk, 71}});
    auto rows = [&](const std::vector<float>& of, int64_t first, int64_t count) {
      auto from = of.begin() + first * shape.value_width();
      return std::vector<float>(from, from + count * shape.value_width());
    };
    EXPECT_TRUE(same_bits(rows(begin, 0, chunk), rows(whole, 0, chunk))) << table->name;
    EXPECT_TRUE(same_bits(rows(rest, 1, 71), rows(whole, chunk, 71))) << table->name;
    EXPECT_TRUE(same_bits(rows(begin, chunk, 50), after)) << table->name;
    EXPECT_TRUE(same_bits(rows(rest, 0, 1), rows(after, 49, 1))) << table->name;
  }
}

// The form depends on the position, not on the span: a whole prompt, then row by row.
TEST_P(Recurrence, TheTwoFormsDifferAndThePromptsLengthTellsWhichOneRuns) {
  Random random(5);
  for (const KernelTable* table : tables()) {
    Shape shape = {.rule = GetParam()};
    Inputs inputs(shape, 60, 29, random), scanned = inputs;
    scanned.prompt = 0;
    auto expected = run_whole(*table, shape, inputs);
    EXPECT_FALSE(same_bits(expected, run_whole(*table, shape, scanned))) << table->name;
    Slots slots(shape, 1);
    std::vector<float> out = slots.step(*table, {{&inputs, 0, 0, 29}});
    for (int64_t i = 29; i < 60; ++i) {
      std::vector<float> row = slots.step(*table, {{&inputs, 0, i, 1}});
      out.insert(out.end(), row.begin(), row.end());
    }
    EXPECT_TRUE(same_bits(out, expected)) << table->name;
  }
}

// A captured state equals that of a run that ended there, and a run that resumes from it continues
// as if it had never stopped.
TEST_P(Recurrence, CapturesAreTheStatesOfRunsThatEndThere) {
  Random random(3);
  for (const KernelTable* table : tables()) {
    Shape shape = {.rule = GetParam(), .chunk = 8};
    Inputs other(shape, 20, 20, random), inputs(shape, 70, 61, random);
    Slots slots(shape, 6);
    std::vector<float> out = slots.step(*table, {{&other, 5, 0, 20}, {&inputs, 2, 0, 70}},
                                        {{.span = 1, .position = 39, .slot = 0},
                                         {.span = 1, .position = 55, .slot = 4},
                                         {.span = 1, .position = 65, .slot = 3}});
    for (auto [end, slot] : {std::pair{40, 0}, std::pair{56, 4}}) {
      Slots alone(shape, 2);
      alone.step(*table, {{&inputs, 1, 0, end}});
      EXPECT_TRUE(same_bits(slots.state(slot), alone.state(1))) << table->name << " " << end;
      Inputs shorter = inputs;
      shorter.prompt = end;
      alone.step(*table, {{&shorter, 0, 0, end}});
      EXPECT_TRUE(same_bits(slots.state(slot), alone.state(0))) << table->name << " " << end;
      std::vector<float> rest = slots.step(*table, {{&inputs, slot, end, 70 - end}});
      std::vector<float> expected(out.end() - std::ssize(rest), out.end());
      EXPECT_TRUE(same_bits(rest, expected)) << table->name << " " << end;
    }
    Slots alone(shape, 1);
    alone.step(*table, {{&inputs, 0, 0, 66}});
    EXPECT_TRUE(same_bits(slots.state(3), alone.state(0))) << table->name << " behind the prompt";
    EXPECT_TRUE(std::isnan(slots.state(1)[0])) << table->name;
  }
}

// A slot is reused without clearing it: its next sequence starts at position 0.
TEST_P(Recurrence, ASpanFromTheStartForgetsTheSlot) {
  Random random(4);
  for (const KernelTable* table : tables()) {
    for (int64_t prompt : {0, 10}) {
      Shape shape = {.rule = GetParam()};
      Inputs before(shape, 30, 30, random), after(shape, 20, prompt, random);
      Slots slots(shape, 1);
      slots.step(*table, {{&before, 0, 0, 30}});
      EXPECT_TRUE(
          same_bits(slots.step(*table, {{&after, 0, 0, 20}}), run_whole(*table, shape, after)))
          << table->name;
    }
  }
}

// A sequence and its plain run, row by row.
class Verified {
 public:
  Verified(const KernelTable& table, const Shape& shape, Random& random)
      : table_(table),
        shape_(shape),
        inputs_(shape, kLength, kPrompt, random),
        lies_(shape, kLength, kPrompt, random),
        slots_(shape, 3) {
    Slots plain(shape, 1);
    out_ = plain.step(table, {{&inputs_, 0, 0, kPrompt}});
    states_.push_back(plain.state(0));
    for (int64_t i = kPrompt; i < kLength; ++i) {
      std::vector<float> row = plain.step(table, {{&inputs_, 0, i, 1}});
      out_.insert(out_.end(), row.begin(), row.end());
      states_.push_back(plain.state(0));
    }
    slots_.step(table, {{&inputs_, kSlot, 0, kPrompt}});
  }

  int64_t left() const { return kLength - done_; }

  // One step: the next row, then `drafts` of which the first `right` are the sequence's own.
  void step(int64_t drafts, int64_t right) {
    Inputs proposed = truth_until(done_ + 1 + right);
    Span span = {&proposed, kSlot, done_, 1 + drafts, draft_rows(drafts, replayed_, 0)};
    // A capture of the last row that is replayed.
    std::vector<Capture> captures;
    if (replayed_ > 0) captures = {{0, static_cast<int32_t>(done_ - 1), 2}};
    expect_rows(slots_.step(table_, {span}, captures), done_, 1 + right);
    if (replayed_ > 0) expect_state(2, done_);
    ++done_;
    expect_state(kSlot, done_);
    replayed_ = right;
    done_ += right;
  }

  // The next row, then drafts in a step each; all but the last of them are right.
  void step_one_by_one(int64_t drafts) {
    step(0, 0);
    int64_t stored = done_;
    for (int64_t held = 0; held < drafts; ++held) {
      Inputs proposed = truth_until(stored + drafts - 1);
      Span span = {&proposed, kSlot, stored + held, 1, draft_rows(1, 0, held)};
      int64_t right = held + 1 < drafts ? 1 : 0;
      expect_rows(slots_.step(table_, {span}), stored + held, right);
      expect_state(kSlot, stored);
    }
    replayed_ = drafts - 1;
    done_ = stored + replayed_;
  }

 private:
  static constexpr int64_t kLength = 40, kPrompt = 7;
  static constexpr int32_t kSlot = 1;

  static DraftRows draft_rows(int64_t count, int64_t replayed, int64_t held) {
    return {static_cast<int32_t>(count), static_cast<int32_t>(replayed),
            static_cast<int32_t>(held)};
  }

  // The sequence's rows before `end`, and then those of another.
  Inputs truth_until(int64_t end) const {
    Inputs mixed = lies_;
    auto copy = [&](const std::vector<float>& from, std::vector<float>& to) {
      std::copy_n(from.begin(), std::ssize(from) / kLength * end, to.begin());
    };
    copy(inputs_.q, mixed.q);
    copy(inputs_.k, mixed.k);
    copy(inputs_.v, mixed.v);
    copy(inputs_.decay, mixed.decay);
    copy(inputs_.beta, mixed.beta);
    return mixed;
  }

  void expect_rows(const std::vector<float>& out, int64_t first, int64_t count) const {
    int64_t width = shape_.value_width();
    std::vector<float> begin(out.begin(), out.begin() + count * width);
    std::vector<float> plain(out_.begin() + first * width, out_.begin() + (first + count) * width);
    EXPECT_TRUE(same_bits(begin, plain)) << table_.name << " rows from " << first;
  }

  void expect_state(int64_t slot, int64_t end) const {
    EXPECT_TRUE(same_bits(slots_.state(slot), states_[end - kPrompt]))
        << table_.name << " after " << end;
  }

  const KernelTable& table_;
  Shape shape_;
  Inputs inputs_, lies_;
  Slots slots_;
  std::vector<float> out_;
  std::vector<std::vector<float>> states_;  // after kPrompt positions, and each after these
  int64_t done_ = kPrompt, replayed_ = 0;
};

// Every number of drafts, of which every number is right, and what the next steps make of the log.
TEST_P(Recurrence, ReplaysAreTheBitsOfPlainSteps) {
  Random random(9);
  int64_t group = GetParam() == Rule::kHeadDelta ? 3 : 1;
  for (const KernelTable* table : tables()) {
    Shape shape = {GetParam(), 3, 20, 70, 4, group};
    for (int64_t drafts = 1; drafts <= 8; ++drafts) {
      for (int64_t right = 0; right <= drafts; ++right) {
        Verified sequence(*table, shape, random);
        sequence.step(drafts, right);
        sequence.step(8, random.below(9));
        sequence.step_one_by_one(drafts);
        sequence.step(0, 0);
        while (sequence.left() > 9) sequence.step(8, random.below(9));
      }
    }
  }
}

TEST_P(Recurrence, ReplaysInHeadsOfAnySize) {
  Random random(10);
  for (const KernelTable* table : tables()) {
    for (int64_t key_dim : {300, 128}) {  // registers of a GPU hold states of 128 channels
      int64_t value_dim = key_dim == 128 ? 64 : 300;
      Shape shape = {GetParam(), 1, key_dim, value_dim, 8};
      Verified sequence(*table, shape, random);
      sequence.step(4, 2);
      sequence.step(4, 4);
      sequence.step_one_by_one(3);
      sequence.step(0, 0);
    }
  }
}

std::string rule_name(const testing::TestParamInfo<Rule>& test) {
  constexpr const char* kNames[] = {"Linear", "Delta", "HeadDelta", "StateSpace"};
  return kNames[static_cast<size_t>(test.param)];
}

INSTANTIATE_TEST_SUITE_P(Rules, Recurrence,
                         testing::Values(Rule::kLinear, Rule::kDelta, Rule::kHeadDelta,
                                         Rule::kStateSpace),
                         rule_name);

}  // namespace
}  // namespace banyan::recurrent_test
