// banyan detokenize: token ids to text. Needs the tokenizer files of a model folder only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/format.h"
#include "cli/options/options.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

struct DetokenizeOptions {
  EngineConfig config;
  std::optional<std::string> ids, positional;
  bool skip_special_tokens = false;
  bool json = false;
};

Result<int> detokenize(const DetokenizeOptions& o) {
  if (o.ids.has_value() == o.positional.has_value()) {
    return invalid_argument("give token ids once: --ids 1,2,3, or - to read stdin");
  }
  TextOrIds source = TRY(read_source({.ids = o.ids ? o.ids : o.positional}, "--ids 1,2,3, -"));
  std::unique_ptr<Tokenizer> tokenizer = TRY(Tokenizer::load(o.config.model_path));
  for (TokenId id : source.ids) {
    if (id >= tokenizer->vocab_size()) {
      return invalid_argument("token {} is not in the tokenizer's vocabulary of {}", id,
                              tokenizer->vocab_size());
    }
  }
  std::string text = TRY(tokenizer->decode(source.ids, o.skip_special_tokens));
  if (o.json) {
    fmt::print("{}\n", dump_json({{"text", text}}));
  } else {
    write_stdout(text + "\n");
  }
  return kExitSuccess;
}

VerbAction declare_detokenize(CLI::App& app) {
  auto o = std::make_shared<DetokenizeOptions>();
  app.add_option("ids", o->positional, "The same; - reads stdin")->type_name("1,2,3");
  app.add_option("--ids", o->ids, "Token ids")->type_name("1,2,3");
  app.add_flag("--skip-special-tokens", o->skip_special_tokens,
               "Leave out tokens such as the beginning of text");
  app.add_flag("--json", o->json, "Print one JSON object: text");
  add_model_options(app, o->config);
  return [o] { return detokenize(*o); };
}

}  // namespace

const Verb kDetokenizeVerb = {
    "detokenize", "Token ids to text",
    "  banyan detokenize --model models/stories260K --ids 1,403,407\n"
    "  banyan tokenize --model models/stories260K \"Hello\" |\n"
    "    banyan detokenize --model models/stories260K --skip-special-tokens -\n"
    "\n"
    "The tokenizer files of a model suffice; options about weights have no effect.\n",
    declare_detokenize};

}  // namespace banyan::cli
