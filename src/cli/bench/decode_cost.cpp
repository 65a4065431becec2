// banyan bench decode-cost: the limits of decoding over many devices, and its price.
#include "fleet/decode_cost.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

// LongCat-Flash: 28 layers; of the 12 experts chosen for a token, 8 have weights on average.
struct BenchDecodeCostOptions {
  DecodeShape shape = {.layers = 28, .hidden = 6144, .experts_per_token = 8};
  double exposed_us = 264, overlapped_us = 0, experts_us = 60;
  DecodeSetting setting;
  double gigabytes_per_s = 40;
  bool json = false;
};

Json to_json(const DecodeCost& cost) {
  return {{"dispatch_us", cost.dispatch_s * 1e6},
          {"combine_us", cost.combine_s * 1e6},
          {"layer_us", cost.layer_s * 1e6},
          {"tpot_ms", cost.tpot_s * 1e3},
          {"tokens_per_s_of_user", cost.tokens_per_s_of_user},
          {"tokens_per_s_of_device", cost.tokens_per_s_of_device},
          {"dollars_per_million_tokens", cost.dollars_per_million}};
}

Result<int> bench(BenchDecodeCostOptions o) {
  o.shape.exposed_s = o.exposed_us * 1e-6;
  o.shape.overlapped_s = o.overlapped_us * 1e-6;
  o.shape.experts_s = o.experts_us * 1e-6;
  o.setting.bytes_per_s = o.gigabytes_per_s * 1e9;
  TRY(o.setting.validate());
  DecodeCost cost = decode_cost(o.shape, o.setting);
  if (o.json) {
    fmt::print("{}\n", dump_json(to_json(cost)));
    return kExitSuccess;
  }
  write_stdout(fmt::format(
      "dispatch           {:9.1f} us\n"
      "combine            {:9.1f} us\n"
      "layer              {:9.1f} us\n"
      "output token       {:9.2f} ms\n"
      "tokens/s of a user {:9.1f}\n"
      "tokens/s of device {:9.0f}\n"
      "million tokens     {:9.3f} dollars\n",
      cost.dispatch_s * 1e6, cost.combine_s * 1e6, cost.layer_s * 1e6, cost.tpot_s * 1e3,
      cost.tokens_per_s_of_user, cost.tokens_per_s_of_device, cost.dollars_per_million));
  return kExitSuccess;
}

void declare_shape(CLI::App& app, BenchDecodeCostOptions& o) {
  app.add_option("--layers", o.shape.layers, "Layers")
      ->check(between(int64_t{1}, int64_t{1} << 16))
      ->type_name("N");
  app.add_option("--hidden-size", o.shape.hidden, "Elements of a row")
      ->check(between(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--experts-per-token", o.shape.experts_per_token,
                 "Experts on other devices that a row goes to")
      ->check(between(0.0, 1e4))
      ->type_name("F");
  auto time = [&](const char* name, double& value, const char* what) {
    app.add_option(name, value, what)->check(between(0.0, 1e9))->type_name("T");
  };
  time("--exposed-us", o.exposed_us, "Of a layer: attention that its experts wait for...");
  time("--overlapped-us", o.overlapped_us, "... what computes while rows travel...");
  time("--experts-us", o.experts_us, "... and its experts");
}

VerbAction declare_bench_decode_cost(CLI::App& app) {
  auto o = std::make_shared<BenchDecodeCostOptions>();
  declare_shape(app, *o);
  app.add_option("--batch-size", o->setting.batch, "Sequences per device")
      ->check(between(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--draft-tokens", o->setting.draft_tokens, "Draft tokens verified per step")
      ->check(between(int64_t{0}, int64_t{1} << 10))
      ->type_name("N");
  app.add_option("--acceptance", o->setting.acceptance, "Share of draft tokens that are accepted")
      ->type_name("F");
  app.add_option("--bandwidth", o->gigabytes_per_s,
                 "GB/s that a device sends, and as many that it receives")
      ->check(between(1e-3, 1e6))
      ->type_name("F");
  app.add_option("--reached", o->setting.reached, "Share of the limit that a real system reaches")
      ->type_name("F");
  app.add_option("--dollars-per-hour", o->setting.dollars_per_hour, "Price of a device per hour")
      ->check(between(0.0, 1e6))
      ->type_name("F");
  app.add_flag("--json", o->json, "Print one JSON object");
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchDecodeCostVerb = {
    "bench decode-cost", "The limit of decoding over many devices, and its price",
    "  banyan bench decode-cost\n"
    "  banyan bench decode-cost --reached 0.615\n"
    "  banyan bench decode-cost --layers 61 --hidden-size 7168 --exposed-us 0 \\\n"
    "      --overlapped-us 471\n"
    "\n"
    "The cost model of the LongCat-Flash report, whose model and devices (H800, attention data\n"
    "parallel, experts spread over 128) are the defaults. A row goes to its experts as fp8 and\n"
    "comes back as bf16; a step has a row for each sequence and for each of its drafts.\n"
    "  layer = exposed + max(dispatch + combine, overlapped) + experts\n"
    "  time of an output token = layer x layers / (1 + draft tokens x acceptance)\n"
    "  dollars = that time / batch size x price\n",
    declare_bench_decode_cost};

}  // namespace banyan::cli
