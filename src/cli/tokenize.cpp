// banyan tokenize: text to token ids. Needs only the tokenizer files of a model folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/quote.h"
#include "cli/format.h"
#include "cli/model_source.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  TextSource source;
  bool no_special_tokens = false;
  bool tokens = false;
  bool json = false;
};

Result<int> tokenize(const TokenizeOptions& o) {
  TextOrIds source = TRY(read_source(o.source, o.model, "TEXT, --text TEXT, --file FILE, -"));
  std::unique_ptr<Tokenizer> tokenizer = TRY(Tokenizer::load(TRY(locate_model(o.model))));
  std::vector<TokenId> ids =
      TRY(tokenizer->encode(source.text, {.add_special_tokens = !o.no_special_tokens}));
  if (o.json) {
    Json tokens = Json::array();
    for (TokenId id : ids) tokens.push_back(std::string(tokenizer->token(id)));
    fmt::print("{}\n", dump_json({{"ids", ids}, {"tokens", std::move(tokens)}}));
  } else if (o.tokens) {
    for (TokenId id : ids) fmt::print("{}\t{}\n", id, quote(tokenizer->token(id)));
  } else {
    fmt::print("{}\n", fmt::join(ids, ","));
  }
  return kExitSuccess;
}

VerbAction declare_tokenize(CLI::App& app) {
  auto o = std::make_shared<TokenizeOptions>();
  add_model_argument(app, o->model,
                     NextWord{"TEXT", "The text; - reads stdin", &o->source.positional});
  app.add_option("--text,-p,--prompt", o->source.text, "The text, whatever it begins with")
      ->type_name("TEXT");
  app.add_option("--file,-f", o->source.file, "The text in a file, byte for byte; - reads stdin")
      ->type_name("FILE");
  app.add_flag("--no-special-tokens", o->no_special_tokens,
               "Leave out the special tokens that the model needs around a text");
  app.add_flag("--tokens", o->tokens, "Print one token a line: id and spelling");
  app.add_flag("--json", o->json,
               "Print one JSON object: ids, tokens (as the vocabulary spells them)");
  add_log_level(app);
  return [o] { return tokenize(*o); };
}

}  // namespace

const Verb kTokenizeVerb = {
    "tokenize", "Text to token ids",
    "  banyan tokenize models/banyan-nano \"Once upon a time\"\n"
    "  banyan tokenize models/banyan-nano --file story.txt --json\n"
    "\n"
    "Prints the ids as 1,2,3, which --prompt-ids, `score --ids` and `detokenize --ids` take. The\n"
    "tokenizer files of a model are enough.\n",
    declare_tokenize};

}  // namespace banyan::cli
