// banyan detokenize: token ids to text. Needs only the tokenizer files of a model folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/format.h"
#include "cli/model_source.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

struct DetokenizeOptions {
  std::string model;
  std::optional<std::string> ids, positional;
  bool skip_special_tokens = false;
  bool json = false;
};

Result<int> detokenize(const DetokenizeOptions& o) {
  if (o.ids.has_value() == o.positional.has_value()) {
    return invalid_argument("give token ids once: --ids 1,2,3, or - to read stdin");
  }
  TextOrIds source =
      TRY(read_source({.ids = o.ids ? o.ids : o.positional}, o.model, "--ids 1,2,3, -"));
  std::unique_ptr<Tokenizer> tokenizer = TRY(Tokenizer::load(TRY(locate_model(o.model))));
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
  add_model_argument(app, o->model, NextWord{"IDS", "1,2,3; - reads stdin", &o->positional});
  app.add_option("--ids", o->ids, "The same as IDS")->type_name("1,2,3");
  app.add_flag("--skip-special-tokens", o->skip_special_tokens,
               "Leave out tokens such as the beginning of text");
  app.add_flag("--json", o->json, "Print one JSON object: text");
  add_log_level(app);
  return [o] { return detokenize(*o); };
}

}  // namespace

const Verb kDetokenizeVerb = {"detokenize", "Token ids to text",
                              "  banyan detokenize models/banyan-nano 1,403,407\n"
                              "  banyan tokenize models/banyan-nano \"Hello\" |\n"
                              "    banyan detokenize models/banyan-nano --skip-special-tokens -\n"
                              "\n"
                              "The tokenizer files of a model are enough.\n",
                              declare_detokenize};

}  // namespace banyan::cli
