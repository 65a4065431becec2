// A model with states of every class, driven below the engine: every position has the logits of the
// naive run bit for bit, however it is cut into spans and wherever its states lie.
#include <gtest/gtest.h>

#include <numeric>

#include "cache/state_classes.h"
#include "kernels/select.h"
#include "support/drive.h"
#include "support/models/hybrid_model.h"

namespace banyan::test::hybrid_runner_test {
namespace {

constexpr int64_t kTokens = 80, kPrompt = 51;
constexpr int64_t kWindow = 12, kChunk = 8;
constexpr int64_t kVocabulary = 97;
constexpr int64_t kCopies = 5;  // sequences that fit the pools at once

// The layers that there are, in every combination.
std::vector<HybridLayers> layer_sets() {
  std::vector<HybridLayers> sets;
  for (int mask = 1; mask < 16; ++mask) {
    sets.push_back({.full = (mask & 1) != 0,
                    .window = (mask & 2) != 0,
                    .lightning = (mask & 4) != 0,
                    .delta = (mask & 8) != 0,
                    .window_tokens = kWindow,
                    .chunk_tokens = kChunk});
  }
  return sets;
}

std::unique_ptr<Runner> runner_of(const HybridLayers& layers, int page_size = 4, int threads = 1,
                                  const std::string& kernels = "auto") {
  TemporaryFolder folder;
  EngineConfig config = hybrid_config(folder, layers);
  config.page_size_tokens = page_size;
  config.threads = threads;
  config.kernels = kernels;
  config.total_tokens_max = kCopies * 128 * 4;  // a fourth of the pages are window pages
  return load_hybrid_runner(config);
}

// A sequence, where its states lie, and the logits of its positions so far.
struct Sequence {
  Sequence(const Runner& runner, int index, uint64_t seed)
      : page_size(runner.info().page_size_tokens), slot(index) {
    for (int64_t i = 0; i < kTokens; ++i) {
      tokens.push_back(static_cast<TokenId>((seed + 1) * (i * i + 31 * i + 7) % kVocabulary));
    }
    int64_t count = (kTokens + page_size - 1) / page_size;
    for (int64_t page = count - 1; page >= 0; --page) {
      pages.push_back(static_cast<int32_t>(index * count + page));
    }
    window_pages.assign(pages.rbegin(), pages.rend());
  }

  // Leaves only `count` window pages, which its pages take in turn.
  void share_window_pages(int64_t count) {
    for (size_t i = static_cast<size_t>(count); i < window_pages.size(); ++i) {
      window_pages[i] = window_pages[i - static_cast<size_t>(count)];
    }
  }

  int64_t page_size;
  std::vector<TokenId> tokens;
  int64_t prompt = kPrompt;
  std::vector<int32_t> pages, window_pages;
  int32_t slot;
  std::vector<float> logits;  // [positions, vocabulary]
};

struct Part {
  Sequence* sequence;
  int64_t first, end;
};

// All pages of the sequence; -1 where the span must not read.
void add_pages(const Part& part, const UnitClass& unit_class, std::vector<int32_t>& table) {
  const Sequence& s = *part.sequence;
  const std::vector<int32_t>& pages = unit_class.windowed() ? s.window_pages : s.pages;
  for (size_t i = 0; i < s.pages.size(); ++i) {
    int64_t begin = static_cast<int64_t>(i) * s.page_size, end = begin + s.page_size;
    bool ahead = begin >= part.end;
    bool behind = end <= unit_class.reach_begin(part.first);
    table.push_back(ahead || behind ? -1 : pages[i]);
  }
}

void add_units(const Part& part, const StateClasses& classes, Batch& batch) {
  for (int c = 0; c < classes.count; ++c) {
    std::vector<int32_t>& table = batch.tables[static_cast<size_t>(c)].units;
    if (classes[c].paged()) {
      add_pages(part, classes[c], table);
    } else {
      table.push_back(part.sequence->slot);
    }
  }
}

// Runs the parts in one batch, which may have copies and captures already.
void run(Runner& runner, const std::vector<Part>& parts, Batch batch = {}) {
  std::vector<Sequence*> owners;
  for (const Part& part : parts) {
    const Sequence& s = *part.sequence;
    batch.spans.push_back(
        {.row_begin = static_cast<int32_t>(batch.rows()),
         .row_count = static_cast<int32_t>(part.end - part.first),
         .first_position = static_cast<int32_t>(part.first),
         .page_begin = static_cast<int32_t>(batch.tables[kPathClass].units.size())});
    batch.adapters.push_back(-1);
    batch.prompt_tokens.push_back(static_cast<int32_t>(s.prompt));
    add_units(part, runner.classes(), batch);
    for (int64_t position = part.first; position < part.end; ++position) {
      batch.logit_rows.push_back(static_cast<int32_t>(batch.rows()));
      batch.tokens.push_back(s.tokens[static_cast<size_t>(position)]);
      batch.positions.push_back(static_cast<int32_t>(position));
      owners.push_back(part.sequence);
    }
  }
  Status valid = batch.validate(kVocabulary, runner.classes());
  ASSERT_TRUE(valid.has_value()) << valid.error().message;
  runner.run(batch, [&](int64_t first, Tensor logits, const LogitStats&) {
    for (int64_t i = 0; i < logits.dim(0); ++i) {
      const float* row = logits.rows(i, 1).f32();
      std::vector<float>& to = owners[static_cast<size_t>(first + i)]->logits;
      to.insert(to.end(), row, row + kVocabulary);
    }
  });
}

// The prompt in one span, then row by row.
std::vector<float> naive(Runner& runner, uint64_t seed = 0, int64_t prompt = kPrompt) {
  Sequence s(runner, 0, seed);
  s.prompt = prompt;
  if (prompt > 0) run(runner, {{&s, 0, prompt}});
  for (int64_t i = prompt; i < kTokens; ++i) run(runner, {{&s, i, i + 1}});
  return s.logits;
}

std::vector<float> in_chunks(Runner& runner, Sequence s, int64_t chunk) {
  for (int64_t i = 0; i < kTokens; i += chunk) {
    run(runner, {{&s, i, std::min(i + chunk, kTokens)}});
  }
  return s.logits;
}

TEST(HybridRunner, ClassifiesItsStates) {
  auto classes = [](const HybridLayers& layers) { return runner_of(layers)->classes(); };
  StateClasses all = classes({});
  ASSERT_EQ(all.count, 4);  // pages, window pages, slots and the log of drafts
  EXPECT_EQ(all[1].window_tokens, kWindow);
  EXPECT_EQ(all.resume_alignment_tokens, kChunk);
  EXPECT_TRUE(all.needs_snapshots() && all.prompt_only);
  StateClasses paged = classes({.lightning = false, .delta = false});
  EXPECT_EQ(paged.resume_alignment_tokens, 1);
  EXPECT_FALSE(paged.needs_snapshots() || paged.prompt_only);
  EXPECT_EQ(classes({.window = false}).count, 3);
}

TEST(HybridRunner, ChunksDoNotChangeABit) {
  for (const HybridLayers& layers : layer_sets()) {
    for (const std::string& kernels : all_kernels()) {
      auto runner = runner_of(layers, 4, 1, kernels);
      std::vector<float> expected = naive(*runner);
      std::vector<int64_t> chunks = {8, 16, 24, kTokens};
      if (!layers.recurrent()) chunks.insert(chunks.end(), {1, 3, 11});
      for (int64_t chunk : chunks) {
        EXPECT_TRUE(same_bits(in_chunks(*runner, Sequence(*runner, 0, 0), chunk), expected))
            << kernels << " chunks of " << chunk;
      }
    }
  }
}

TEST(HybridRunner, PageSizesThreadsAndPlacesDoNotChangeABit) {
  for (const HybridLayers& layers : layer_sets()) {
    std::vector<float> expected = naive(*runner_of(layers));
    for (int page_size : {1, 2, 8, 16, 64}) {
      for (int threads : {1, 3}) {
        auto runner = runner_of(layers, page_size, threads);
        EXPECT_TRUE(same_bits(naive(*runner), expected)) << page_size << " " << threads;
        EXPECT_TRUE(same_bits(in_chunks(*runner, Sequence(*runner, 3, 0), 16), expected))
            << page_size << " " << threads;
      }
    }
  }
}

// The window's pages are reused as soon as they are out of reach.
TEST(HybridRunner, PagesBehindTheWindowAreNeverRead) {
  for (const HybridLayers& layers : layer_sets()) {
    for (int page_size : {1, 4}) {
      auto runner = runner_of(layers, page_size);
      std::vector<float> expected = naive(*runner);
      for (int64_t chunk : {8, 16}) {
        Sequence s(*runner, 1, 0);
        s.share_window_pages((chunk + kWindow - 2) / page_size + 2);
        EXPECT_TRUE(same_bits(in_chunks(*runner, s, chunk), expected)) << page_size;
      }
    }
  }
}

// Three sequences with prompts of different lengths, at different positions, beside each other.
TEST(HybridRunner, NeighboursDoNotChangeABit) {
  for (const HybridLayers& layers : layer_sets()) {
    auto runner = runner_of(layers, 4, 2);
    std::vector<Sequence> sequences;
    const int64_t prompts[] = {kPrompt, 64, 5}, chunks[] = {8, 16, 8};
    std::vector<std::vector<float>> expected;
    for (int i = 0; i < 3; ++i) {
      sequences.emplace_back(*runner, i + 1, i);
      sequences.back().prompt = prompts[i];
      expected.push_back(naive(*runner, i, prompts[i]));
    }
    std::vector<int64_t> done(3);
    for (bool more = true; more;) {
      std::vector<Part> parts;
      for (int i : {1, 2, 0}) {
        int64_t end = std::min(kTokens, done[i] + (done[i] < prompts[i] ? chunks[i] : 1 + i));
        if (done[i] < end) parts.push_back({&sequences[i], done[i], end});
        done[i] = end;
      }
      more = !parts.empty();
      if (more) run(*runner, parts);
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(sequences[i].logits, expected[i])) << i;
  }
}

// What another sequence leaves at `position` of its prompt is copied to other pages and a slot that
// was captured in passing, and the sequence goes on from there.
TEST(HybridRunner, ResumingFromCopiesDoesNotChangeABit) {
  for (const HybridLayers& layers : layer_sets()) {
    auto runner = runner_of(layers);
    std::vector<float> expected = naive(*runner);
    std::vector<int64_t> positions = {8, 40, 48};
    if (!layers.recurrent()) positions.insert(positions.end(), {1, 13, 50, 51, 70});
    for (int64_t position : positions) {
      Sequence from(*runner, 1, 0), to(*runner, 2, 0);
      auto at = static_cast<int32_t>(position);
      Batch captures;
      const StateClasses& classes = runner->classes();
      int slots = classes.count - 2;  // the last class is the log of drafts
      if (layers.recurrent()) {
        captures.tables[static_cast<size_t>(slots)].captures = {
            {0, 7, 6}, {0, at - 1, 5}, {0, 15, 7}};
      }
      run(*runner, {{&from, 0, kTokens}}, captures);
      Sequence other(*runner, 2, 1);  // leaves its own states where the sequence will be resumed
      run(*runner, {{&other, 0, kTokens}});

      Batch copies;
      for (int32_t i = 0; i * 4 < at; ++i) {
        auto page = static_cast<size_t>(i);
        int32_t rows = std::min(4, at - i * 4);
        copies.copies.push_back({kPathClass, from.pages[page], to.pages[page], rows});
        if (layers.window && (i + 1) * 4 > at - kWindow + 1) {
          copies.copies.push_back({1, from.window_pages[page], to.window_pages[page], rows});
        }
      }
      if (layers.recurrent()) {
        copies.copies.push_back({slots, 6, 3});
        copies.copies.push_back({slots, 5, to.slot});
      }
      run(*runner, {{&to, position, kTokens}}, copies);
      std::vector<float> rest(expected.begin() + position * kVocabulary, expected.end());
      EXPECT_TRUE(same_bits(to.logits, rest)) << "from " << position;
    }
  }
}

}  // namespace
}  // namespace banyan::test::hybrid_runner_test
