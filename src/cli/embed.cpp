// banyan embed: texts as vectors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/signed.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

struct EmbedOptions {
  EngineConfig config;
  TextSource source;
  int64_t dimensions = 0;
  bool lines = false;
  bool compare = false;
  bool json = false;
};

using Vector = std::vector<float>;

// The text, or one text a line; lines without text are left out.
std::vector<std::string> split(std::string text, bool lines) {
  if (!lines) return {std::move(text)};
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) texts.push_back(std::move(line));
    begin = end + 1;
  }
  return texts;
}

std::string state_of(size_t done, size_t all, double seconds) {
  double rate = done / std::max(seconds, 1e-9);
  return fmt::format("{} of {}  {:.1f} texts/s  {:.0f} s left", done, all, rate,
                     (all - done) / std::max(rate, 1e-9));
}

void print(const EmbedOptions& o, const std::string& text, const Vector& embedding) {
  if (o.json) {
    fmt::print("{{\"text\":{},\"embedding\":[{}]}}\n", dump_json(text), fmt::join(embedding, ","));
  } else {
    fmt::print("{}\n", fmt::join(embedding, " "));
  }
}

// Embeds a part of the texts at a time, so that output and progress come early.
Result<std::vector<Vector>> embed_all(const EmbedOptions& o, Llm& llm,
                                      const std::vector<std::string>& texts) {
  constexpr size_t kPart = 256;
  ProgressLine line("embedding");
  auto begin = std::chrono::steady_clock::now();
  std::vector<Vector> kept;
  for (size_t first = 0; first < texts.size(); first += kPart) {
    size_t count = std::min(kPart, texts.size() - first);
    std::vector<TextRequest> part(count);
    for (size_t i = 0; i < count; ++i) part[i].text = texts[first + i];
    std::vector<Vector> embeddings = TRY(llm.embed(part, o.dimensions));
    for (size_t i = 0; i < count && !o.compare; ++i) print(o, texts[first + i], embeddings[i]);
    if (o.compare) std::ranges::move(embeddings, std::back_inserter(kept));
    std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (texts.size() > kPart) line.show(state_of(first + count, texts.size(), waited.count()));
  }
  return kept;
}

// The beginning of a long text, in whole characters.
std::string shortened(const std::string& text) {
  constexpr size_t kBytes = 40;
  if (text.size() <= kBytes) return text;
  size_t end = kBytes;
  while ((text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// The cosine of every two texts; embeddings have length 1.
void print_comparison(const std::vector<std::string>& texts, const std::vector<Vector>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    std::string row;
    for (const Vector& other : all) {
      row += fmt::format("{:7.4f}",
                         std::inner_product(all[i].begin(), all[i].end(), other.begin(), 0.0));
    }
    fmt::print("{}  {}\n", row, shortened(texts[i]));
  }
}

Result<int> embed(const EmbedOptions& o) {
  TextOrIds source = TRY(read_source(o.source, o.config.model_path, "TEXT, --text, --file, -"));
  std::vector<std::string> texts = split(std::move(source.text), o.lines || o.compare);
  constexpr size_t kComparedMax = 64;
  if (texts.empty()) return invalid_argument("there is no text to embed");
  if (o.compare && texts.size() > kComparedMax) {
    return invalid_argument("--compare is for at most {} texts; there are {}", kComparedMax,
                            texts.size());
  }
  std::unique_ptr<Llm> llm = TRY(load_llm(o.config));
  std::vector<Vector> kept = TRY(embed_all(o, *llm, texts));
  if (o.compare) print_comparison(texts, kept);
  return kExitSuccess;
}

VerbAction declare_embed(CLI::App& app) {
  auto o = std::make_shared<EmbedOptions>();
  NextWord text{"TEXT", "A text; - reads stdin", &o->source.positional};
  app.add_option("--text,-p,--prompt", o->source.text, "The same as TEXT")->type_name("TEXT");
  app.add_option("--file,-f", o->source.file, "The text in a file; - reads stdin")
      ->type_name("FILE");
  app.add_flag("--lines", o->lines, "Every line is a text of its own");
  app.add_option("--dimensions", o->dimensions,
                 "Keep only the first N values, for models trained for that; 0: all")
      ->check(between(int64_t{0}, int64_t{1} << 20))
      ->type_name("N");
  app.add_flag("--compare", o->compare,
               "Print a table with the cosine of every two lines instead of their vectors");
  app.add_flag("--json", o->json, "Print one JSON object per text: text, embedding");
  add_model_options(app, o->config, {.next = text, .generates = false});
  return [o] { return embed(*o); };
}

}  // namespace

const Verb kEmbedVerb = {
    "embed", "Embed texts",
    "  banyan embed Qwen/Qwen3-Embedding-0.6B \"The capital of China is Beijing.\"\n"
    "  banyan embed models/banyan-nano --file documents.txt --lines --json\n"
    "  printf 'a cat\\na kitten\\na truck\\n' | banyan embed models/banyan-nano - --compare\n"
    "\n"
    "Prints one vector of length 1 per text, its numbers separated by blanks. Every model has\n"
    "embeddings; those of models made for them are the useful ones. `serve` has them at\n"
    "/v1/embeddings, and ranks documents at /v1/rerank.\n",
    declare_embed};

}  // namespace banyan::cli
