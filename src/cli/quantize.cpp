// banyan quantize: writes a quantised copy of a checkpoint.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/gguf.h"
#include "base/threads/thread_pool.h"
#include "cli/format.h"
#include "cli/model_source.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "quantize/quantise_checkpoint.h"

namespace banyan::cli {
namespace {

struct QuantizeOptions {
  QuantiseOptions quantise;
  int threads = 0;
  bool json = false;
};

Result<int> quantize(QuantizeOptions& o) {
  o.quantise.folder = TRY(locate_model(o.quantise.folder));
  if (is_gguf_file(o.quantise.folder)) {
    return invalid_argument(
        "{} is a GGUF file, which `banyan run` and `banyan serve` load as it is; give a folder of "
        "safetensors to quantize",
        o.quantise.folder);
  }
  ThreadPool threads(o.threads > 0 ? o.threads : usable_processors());
  QuantiseResult result;
  {
    ProgressLine progress("quantizing");
    o.quantise.threads = &threads;
    o.quantise.progress = progress.load_progress();
    result = TRY(quantise_checkpoint(o.quantise));
  }
  if (o.json) {
    fmt::print("{}\n", dump_json({{"out", o.quantise.out},
                                  {"format", o.quantise.format},
                                  {"bytes_read", result.bytes_read},
                                  {"bytes_written", result.bytes_written}}));
    return kExitSuccess;
  }
  write_stdout(fmt::format("{}: {} of tensors, of {}\n", o.quantise.out,
                           format_bytes(result.bytes_written), format_bytes(result.bytes_read)));
  return kExitSuccess;
}

VerbAction declare_quantize(CLI::App& app) {
  auto o = std::make_shared<QuantizeOptions>();
  add_model_argument(app, o->quantise.folder)
      ->description("Model folder with safetensors, or OWNER/NAME on a Hugging Face hub");
  app.add_option("--to", o->quantise.format,
                 "Format: int8, int4, fp8, mxfp4; int4:64 sets the group size")
      ->required()
      ->type_name("NAME");
  app.add_option("--out", o->quantise.out, "Folder to write; new or empty")
      ->required()
      ->type_name("DIR");
  add_quantization_overrides(app, o->quantise.overrides);
  add_threads_option(app, o->threads, "Threads that compute; 0: one per processor");
  app.add_flag("--json", o->json, "Print one JSON object: out, format, bytes_read, bytes_written");
  return [o] { return quantize(*o); };
}

}  // namespace

const Verb kQuantizeVerb = {
    "quantize", "Write a quantised copy of a model",
    "  banyan quantize models/Qwen3-0.6B --to int4 --out models/Qwen3-0.6B-int4\n"
    "  banyan quantize DIR --to int4 --quantization-override lm_head=int8 --out DIR-int4\n"
    "\n"
    "The copy computes the same as DIR loaded with --quantization, and loads faster. The folder\n"
    "appears when it is complete.\n",
    declare_quantize};

}  // namespace banyan::cli
