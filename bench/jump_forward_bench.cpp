// The share of steps that jump-forward saves for a model that writes the valid instances of schema
// samples, spelled as its tokenizer does. The drafts are those of the engine, including its pauses.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target jump_forward_bench
//
//   build/release/bench/jump_forward_bench TOKENIZER_DIR SAMPLES_DIR [show]
//
// With `show`, prints the rejected drafts, most frequent first.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "banyan/grammar.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/drafters/speculate.h"
#include "grammar/run/matcher.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

enum class Style : uint8_t { kCompact, kSpaced, kIndented };

// As Python's json.dumps writes it: with `indent` below 0 on one line.
void write_json(const Json& value, int indent, int depth, std::string& out) {
  auto line = [&](int to) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent * to), ' ');
  };
  if (!value.is_structured() || value.empty()) {
    out += value.dump(-1, ' ', false);
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += indent < 0 ? ", " : ",";
    first = false;
    line(depth + 1);
    if (value.is_object()) out += Json(key).dump() + ": ";
    write_json(item, indent, depth + 1, out);
  }
  line(depth);
  out += value.is_object() ? '}' : ']';
}

std::string json_text(const Json& value, Style style) {
  if (style == Style::kCompact) return value.dump();
  std::string text;
  write_json(value, style == Style::kIndented ? 2 : -1, 0, text);
  return text;
}

class Bench {
 public:
  Bench(const Tokenizer& tokenizer, std::shared_ptr<const TokenVocabulary> vocabulary, Style style)
      : tokenizer_(tokenizer),
        vocabulary_(std::move(vocabulary)),
        style_(style),
        speculator_(EngineConfig{}, vocabulary_->mask_tokens()) {}

  void sample(const std::string& path) {
    Json document = Json::parse(*read_file(path));
    auto grammar = Grammar::from_json_schema(document["schema"].dump(),
                                             {.flexible_whitespace = style_ != Style::kCompact},
                                             {.compile_s = 60});
    if (!grammar) return;
    TokenizeText tokenize = [this](std::string_view text) { return encode(text); };
    auto compiled = std::make_shared<const CompiledGrammar>(*grammar, vocabulary_, tokenize);
    for (const Json& test : document["tests"]) {
      if (test["valid"] == false) continue;
      std::vector<TokenId> ids = encode(json_text(test["data"], style_));
      Matcher check(compiled);
      bool accepts = std::ranges::all_of(ids, [&](TokenId id) { return check.try_accept(id); });
      if (!accepts || !check.complete()) {
        ++left_out_;
        continue;
      }
      ids.push_back(vocabulary_->ends()[0]);
      follow(compiled, ids);
    }
  }

  void report(const char* what) const {
    EngineStats stats;
    speculator_.report(stats);
    auto tokens = static_cast<double>(tokens_);
    fmt::print(
        "{:<9} {} texts ({} left out), {} tokens, {} steps: {:.1f}% saved; {:.1f}% of {} drafted "
        "tokens kept\n",
        what, texts_, left_out_, tokens_, steps_,
        100.0 - 100.0 * static_cast<double>(steps_) / tokens,
        100.0 * static_cast<double>(stats.accepted_draft_tokens) /
            static_cast<double>(stats.draft_tokens),
        stats.draft_tokens);
  }

  void show_rejected() const {
    std::vector<std::pair<int, std::string>> sorted;
    for (const auto& [text, count] : rejected_) sorted.emplace_back(count, text);
    std::ranges::sort(sorted, std::greater<>());
    for (size_t i = 0; i < std::min<size_t>(sorted.size(), 40); ++i) {
      fmt::print("  {:>6}  {}\n", sorted[i].first, sorted[i].second);
    }
  }

 private:
  std::vector<TokenId> encode(std::string_view text) const {
    auto ids = tokenizer_.encode(text, {.add_special_tokens = false, .parse_special = false});
    return ids ? *ids : std::vector<TokenId>();
  }

  // The steps that the engine takes if the model draws `text`.
  void follow(const std::shared_ptr<const CompiledGrammar>& compiled,
              const std::vector<TokenId>& text) {
    Sequence s;
    s.request.constraint = std::make_shared<Matcher>(compiled);
    s.tokens_max = static_cast<int64_t>(text.size());
    speculator_.start(s, 1);
    StepPlan plan;
    while (s.length() < s.tokens_max) {
      plan.spans = {{.sequence = &s, .drafts = std::ssize(s.draft.tokens)}};
      std::vector<TokenId> drafts = s.draft.tokens;
      bool stands = true;
      for (size_t i = 0; i <= drafts.size() && stands; ++i) {
        TokenId drawn = text[static_cast<size_t>(s.length())];
        stands = i < drafts.size() && drawn == drafts[i];
        if (i < drafts.size() && !stands) note(drafts, i, drawn);
        s.tokens.push_back(drawn);
        ++s.drawn;
        s.request.constraint->accept(drawn);
      }
      speculator_.settle(plan, 1);
      ++steps_;
    }
    ++texts_;
    tokens_ += s.length();
  }

  void note(const std::vector<TokenId>& drafts, size_t i, TokenId drawn) {
    auto spell = [&](TokenId id) {
      return Json(tokenizer_.token_bytes(id)).dump(-1, ' ', true, Json::error_handler_t::replace);
    };
    ++rejected_[fmt::format("{} {} instead of {}{}", i == 0 ? "first" : "later", spell(drawn),
                            spell(drafts[i]), i + 1 == drafts.size() ? ", the last" : "")];
  }

  const Tokenizer& tokenizer_;
  std::shared_ptr<const TokenVocabulary> vocabulary_;
  Style style_;
  Speculator speculator_;
  int64_t texts_ = 0, left_out_ = 0, tokens_ = 0, steps_ = 0;
  std::map<std::string, int> rejected_;
};

int run(const char* tokenizer_folder, const char* samples, bool show) {
  auto tokenizer = Tokenizer::load(tokenizer_folder);
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }
  // The last token ends a text, as good as any that no text has.
  TokenId end = (*tokenizer)->vocab_size() - 1;
  auto vocabulary = TokenVocabulary::make(**tokenizer, {end});
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(samples)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (auto [style, name] :
       {std::pair(Style::kCompact, "compact"), std::pair(Style::kSpaced, "spaced"),
        std::pair(Style::kIndented, "indented")}) {
    Bench bench(**tokenizer, vocabulary, style);
    for (const std::string& file : files) bench.sample(file);
    bench.report(name);
    if (show) bench.show_rejected();
  }
  return 0;
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  bool show = argc == 4 && std::string(argv[3]) == "show";
  if (argc != 3 && !show) {
    fmt::print(stderr, "usage: jump_forward_bench TOKENIZER_DIR SAMPLES_DIR [show]\n");
    return 2;
  }
  return banyan::run(argv[1], argv[2], show);
}
