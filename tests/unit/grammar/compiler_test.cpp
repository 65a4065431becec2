// The cache of compiled grammars: sharing, eviction, errors.
#include "grammar/compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

namespace banyan::compiler_test {
namespace {

std::shared_ptr<const TokenVocabulary> byte_vocabulary() {
  std::vector<std::string> bytes;
  for (int b = 0; b < 255; ++b) bytes.push_back(std::string(1, static_cast<char>(b)));
  return TokenVocabulary::make(bytes, {});
}

TEST(GrammarCompiler, RemembersWhatItCompiled) {
  GrammarCompiler compiler(byte_vocabulary(), {}, {});
  GrammarSource source{GrammarSource::Kind::kRegex, "[0-9]+"};
  auto first = compiler.compile(source);
  auto second = compiler.compile(source);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  source.after = "</think>";
  auto third = compiler.compile(source);
  ASSERT_TRUE(third.has_value());
  EXPECT_NE(*first, *third);
  EXPECT_EQ(compiler.counters().hits, 1u);
  EXPECT_EQ(compiler.counters().misses, 2u);
}

TEST(GrammarCompiler, StaysWithinItsBytesWhateverComes) {
  GrammarCompiler compiler(byte_vocabulary(), {}, {.bytes_max = 1 << 20, .entries_max = 100});
  for (int i = 0; i < 2000; ++i) {
    std::string schema = fmt::format(R"({{"type": "object", "properties": {{"p{}": {{}}}}}})", i);
    ASSERT_TRUE(compiler.compile({GrammarSource::Kind::kJsonSchema, schema}).has_value());
    ASSERT_LE(compiler.counters().bytes, size_t{1} << 20);
    ASSERT_LE(compiler.counters().entries, 100u);
  }
  EXPECT_GT(compiler.counters().evictions, 1800u);
}

TEST(GrammarCompiler, SharesOneCompilationAmongThreads) {
  GrammarCompiler compiler(byte_vocabulary(), {}, {});
  GrammarSource source{GrammarSource::Kind::kRegex, "(?:[a-z]{1,9} ){1,40}"};
  std::vector<std::shared_ptr<const CompiledGrammar>> compiled(8);
  std::vector<std::thread> threads;
  for (auto& slot : compiled) {
    threads.emplace_back([&] { slot = compiler.compile(source).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : compiled) EXPECT_EQ(one, compiled[0]);
  EXPECT_EQ(compiler.counters().misses, 1u);
}

TEST(GrammarCompiler, TellsWhyAndTriesAgain) {
  GrammarCompiler compiler(byte_vocabulary(), {}, {});
  for (int i = 0; i < 2; ++i) {
    auto failed = compiler.compile({GrammarSource::Kind::kChoices, "[]"});
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().message, "the choices must not be empty");
  }
  EXPECT_EQ(compiler.counters().failures, 2u);
  GrammarLimits hurry{.compile_s = 0};
  GrammarCompiler late(byte_vocabulary(), {}, {.limits = hurry});
  auto failed = late.compile({GrammarSource::Kind::kRegex, "(?:[a-z]{1,9} ){1,40}"});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(late.counters().timeouts, 1u);
}

}  // namespace
}  // namespace banyan::compiler_test
