#include "cli/options/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "banyan/grammar.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/space.h"
#include "cli/options/checks.h"

namespace banyan::cli {
namespace {

constexpr size_t kInputBytesMax = 256 << 20;

}  // namespace

void add_length_option(CLI::App& app, int64_t& tokens, const std::string& text) {
  app.add_option("--max-tokens,-n,--max-new-tokens,--n-predict,--predict", tokens, text)
      ->check(count_or_rest())
      ->type_name("N");
}

namespace {

void add_dry_options(CLI::App& app, SamplingOptions& options) {
  app.add_option("--dry-multiplier", options.dry_multiplier,
                 "Penalize tokens that would extend a repetition (DRY), by M * B^(length - N) [0]")
      ->type_name("M");
  app.add_option("--dry-base", options.dry_base, "Base of the DRY penalty, 1 or more [1.75]")
      ->type_name("B");
  app.add_option("--dry-allowed-length", options.dry_allowed_length,
                 "DRY: shorter repetitions, in tokens, are not penalized [2]")
      ->type_name("N");
  app.add_option("--dry-penalty-last-n", options.dry_penalty_last_n,
                 "DRY: last tokens searched for repetitions; -1: all, 0: off [-1]")
      ->type_name("N");
  app.add_option("--dry-sequence-breaker", options.dry_sequence_breakers,
                 "DRY: repetitions do not extend across STR, with escapes such as \\n; may be "
                 "repeated; none: no breakers [\\n : \" *]")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("STR");
}

// Resolves escapes such as "\n" as written on a command line.
std::string without_escapes(std::string_view text) {
  constexpr std::string_view kNames = "ntr\\\"'", kMeanings = "\n\t\r\\\"'";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t name = text[i] == '\\' && i + 1 < text.size() ? kNames.find(text[i + 1]) : kNames.npos;
    out += name == kNames.npos ? text[i] : kMeanings[name];
    if (name != kNames.npos) ++i;
  }
  return out;
}

void set_dry(const SamplingOptions& options, SamplingParams& params) {
  params.dry_multiplier = options.dry_multiplier.value_or(params.dry_multiplier);
  params.dry_base = options.dry_base.value_or(params.dry_base);
  params.dry_allowed_length = options.dry_allowed_length.value_or(params.dry_allowed_length);
  params.dry_penalty_last_n = options.dry_penalty_last_n.value_or(params.dry_penalty_last_n);
  if (options.dry_sequence_breakers.empty()) return;
  std::vector<std::string>& breakers = params.dry_sequence_breakers.emplace();
  for (const std::string& text : options.dry_sequence_breakers) {
    if (text != "none") breakers.push_back(without_escapes(text));
  }
}

}  // namespace

void add_sampling_options(CLI::App& app, SamplingOptions& options, std::string_view defaults_of) {
  std::string from = fmt::format(" [{}]", defaults_of);
  app.add_option("--temperature,--temp", options.temperature,
                 "0: always the likeliest token; higher: more random" + from)
      ->type_name("T");
  add_seed_option(app, options.seed, "Seed of the random draws [random]");
  OptionGroup group(app, "Sampling");
  app.add_option("--top-p", options.top_p,
                 "Draw from the likeliest tokens whose probabilities sum to P [1]")
      ->type_name("P");
  app.add_option("--top-k", options.top_k, "Draw from the K likeliest tokens; 0 or -1: all [0]")
      ->type_name("K");
  app.add_option("--min-p", options.min_p,
                 "Draw from tokens at least P times as likely as the best [0]")
      ->type_name("P");
  app.add_option("--typical,--typical-p", options.typical_p,
                 "Draw from the tokens of most typical probability that sum to P [1]")
      ->type_name("P");
  app.add_option("--xtc-probability", options.xtc_probability,
                 "Probability of excluding the top choices at a position (XTC), 0 to 1 [0]")
      ->type_name("P");
  app.add_option(
         "--xtc-threshold", options.xtc_threshold,
         "XTC: top choices are all tokens at least this likely except the least likely one [0.1]")
      ->type_name("P");
  app.add_option("--frequency-penalty", options.frequency_penalty,
                 "Penalize tokens by how often they have appeared, -2 to 2 [0]")
      ->type_name("F");
  app.add_option("--presence-penalty", options.presence_penalty,
                 "Penalize tokens that have appeared, -2 to 2 [0]")
      ->type_name("P");
  app.add_option("--repetition-penalty,--repeat-penalty", options.repetition_penalty,
                 "Divide the logits of tokens that have appeared [1]")
      ->type_name("R");
  app.add_option("--repeat-last-n", options.repeat_last_n,
                 "Last tokens that the three penalties count; -1: all, 0: none [-1]")
      ->type_name("N");
  add_dry_options(app, options);
  app.add_option("--stop,-r,--reverse-prompt", options.stop,
                 "End the output before STR; may be repeated")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("STR");
  app.add_option("--stop-regex", options.stop_regex,
                 "End the output after a match of REGEX; may be repeated")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("REGEX");
  app.add_option("--stop-token-ids", options.stop_token_ids,
                 "Tokens that end the output, in addition to the model's own")
      ->type_name("1,2,3");
  app.add_flag("--ignore-eos", options.ignore_eos, "Continue past the model's end of text");
  app.add_option("--adapter", options.adapter, "LoRA adapter, one of those of --lora-paths")
      ->default_str("")
      ->type_name("NAME");
}

Result<SamplingParams> sampling_params(const SamplingOptions& options, SamplingParams defaults) {
  SamplingParams params = std::move(defaults);
  params.temperature = options.temperature.value_or(params.temperature);
  params.top_p = options.top_p.value_or(params.top_p);
  params.top_k = options.top_k.value_or(params.top_k);
  if (params.top_k == -1) params.top_k = 0;  // another way to say "all"
  params.min_p = options.min_p.value_or(params.min_p);
  params.typical_p = options.typical_p.value_or(params.typical_p);
  params.xtc_probability = options.xtc_probability.value_or(params.xtc_probability);
  params.xtc_threshold = options.xtc_threshold.value_or(params.xtc_threshold);
  params.frequency_penalty = options.frequency_penalty.value_or(params.frequency_penalty);
  params.presence_penalty = options.presence_penalty.value_or(params.presence_penalty);
  params.repetition_penalty = options.repetition_penalty.value_or(params.repetition_penalty);
  params.repeat_last_n = options.repeat_last_n.value_or(params.repeat_last_n);
  set_dry(options, params);
  if (options.seed) {
    params.seed = *options.seed;
  } else if (params.temperature > 0) {
    params.seed = random_seed();
  }
  TRY(params.validate());
  return params;
}

Result<GenerationOptions> generation_options(const SamplingOptions& options) {
  for (const std::string& stop : options.stop) {
    if (stop.empty()) return invalid_argument("--stop is empty; give the text to stop at");
  }
  GenerationOptions generation{
      .stop = options.stop,
      .stop_regex = options.stop_regex,
      .ignore_eos = options.ignore_eos,
      .adapter = options.adapter.empty() ? options.adapters.of_all : options.adapter};
  if (!options.stop_token_ids.empty()) {
    generation.stop_token_ids = TRY(parse_numbers(options.stop_token_ids, "--stop-token-ids"));
  }
  return generation;
}

std::string check_seed(const std::string& text) {
  uint64_t seed = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return "";
  return fmt::format("{} is not a whole number from 0 to {}", quote(text),
                     std::numeric_limits<uint64_t>::max());
}

void add_seed_option(CLI::App& app, std::optional<uint64_t>& seed, const std::string& text) {
  static constexpr std::string_view kRandom = "-1";
  app.add_option_function<std::string>(
         "--seed,-s,--random-seed",
         [&seed](const std::string& word) {
           seed.reset();
           if (word != kRandom)
             std::from_chars(word.data(), word.data() + word.size(), seed.emplace());
         },
         text)
      ->check([](const std::string& word) -> std::string {
        std::string error = word == kRandom ? "" : check_seed(word);
        return error.empty() ? error : error + ", nor -1 (random)";
      })
      ->default_str("")
      ->type_name("S");
}

uint64_t random_seed() {
  return std::random_device{}();
}

Result<std::vector<int32_t>> parse_numbers(std::string_view text, std::string_view option) {
  std::vector<int32_t> numbers;
  std::string_view rest = trim_space(text);
  if (rest.size() >= 2 && rest.starts_with('[') && rest.ends_with(']')) {
    rest = trim_space(rest.substr(1, rest.size() - 2));
  }
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find_first_of(", \t\r\n"));
    int32_t number = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 0) {
      return invalid_argument("{}: {} is not a whole number from 0 to {}; give a list as 1,2,3",
                              option, quote(word), std::numeric_limits<int32_t>::max());
    }
    numbers.push_back(number);
    rest = trim_space(rest.substr(word.size()));
    if (rest.starts_with(',')) rest = trim_space(rest.substr(1));
  }
  if (numbers.empty()) return invalid_argument("{} is empty; give a list as 1,2,3", option);
  return numbers;
}

namespace {

// Reads an open stream (file, pipe or terminal) to its end.
Result<std::string> read_stream(std::FILE* stream, std::string_view name) {
  std::string text;
  char buffer[1 << 16];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, stream)) {
    text.append(buffer, count);
    if (text.size() > kInputBytesMax) {
      return exhausted("{} exceeds the limit of {} bytes", name, kInputBytesMax);
    }
  }
  if (std::ferror(stream)) return io_error("{}: {}", name, std::strerror(errno));
  return text;
}

Result<std::string> read_named(const std::string& name) {
  std::FILE* stream = std::fopen(name.c_str(), "rb");
  if (stream == nullptr) return io_error("{}: {}", name, std::strerror(errno));
  Result<std::string> text = read_stream(stream, name);
  std::fclose(stream);
  return text;
}

}  // namespace

Result<std::string> read_stdin() {
  return read_stream(stdin, "stdin");
}

Result<TextOrIds> read_source(const TextSource& source, std::string_view model,
                              std::string_view choices) {
  int given = source.text.has_value() + source.ids.has_value() + source.file.has_value() +
              source.positional.has_value();
  if (given == 0) {
    return invalid_argument("nothing follows the model {}; give one of {}", quote(model), choices);
  }
  if (given > 1) return invalid_argument("more than one input is given; give one of {}", choices);
  if (source.ids) {
    std::string text = *source.ids == "-" ? TRY(read_stdin()) : *source.ids;
    return TextOrIds{.text = "", .ids = TRY(parse_numbers(text, "ids"))};
  }
  if (source.text) return TextOrIds{.text = *source.text, .ids = {}};
  const std::string& name = source.file ? *source.file : *source.positional;
  if (name == "-") return TextOrIds{.text = TRY(read_stdin()), .ids = {}};
  if (source.file) return TextOrIds{.text = TRY(read_named(name)), .ids = {}};
  return TextOrIds{.text = name, .ids = {}};
}

void add_grammar_options(CLI::App& app, GrammarOptions& options) {
  OptionGroup group(app, "Constrained output");
  app.add_option("--json-schema,-j", options.json_schema,
                 "The output is JSON valid for this schema: a file, or the schema itself")
      ->type_name("FILE|JSON");
  app.add_flag("--json-object", options.json_object, "The output is a JSON object");
  app.add_option("--regex", options.regex, "The whole output matches this regular expression")
      ->type_name("REGEX");
  app.add_option("--grammar,--grammar-file", options.ebnf,
                 "The output follows this GBNF grammar, from its rule `root`: a file, or the rules")
      ->type_name("FILE|RULES");
  app.add_option("--choice", options.choices, "The output is one of these; may be repeated")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("TEXT");
  app.add_flag("--relaxed-schema", options.relaxed,
               "With --json-schema: ignore what cannot be enforced, and list it");
  app.add_flag("--json-flexible-whitespace", options.flexible_whitespace,
               "JSON may have spaces and line breaks between its parts");
}

Result<std::optional<GrammarSource>> grammar_source(const GrammarOptions& o) {
  using Kind = GrammarSource::Kind;
  std::vector<std::pair<const char*, Kind>> given;
  if (o.regex) given.emplace_back("--regex", Kind::kRegex);
  if (o.json_schema) given.emplace_back(o.schema_name, Kind::kJsonSchema);
  if (o.json_object) given.emplace_back("--json-object", Kind::kJsonObject);
  if (o.ebnf) given.emplace_back("--grammar", Kind::kEbnf);
  if (!o.choices.empty()) given.emplace_back("--choice", Kind::kChoices);
  if (given.size() > 1) {
    return invalid_argument("{} and {} are both given; give only one of them", given[0].first,
                            given[1].first);
  }
  Kind kind = given.empty() ? Kind::kRegex : given[0].second;
  if (o.relaxed && kind != Kind::kJsonSchema) {
    return invalid_argument("--relaxed-schema needs --json-schema");
  }
  if (o.flexible_whitespace && kind != Kind::kJsonSchema && kind != Kind::kJsonObject) {
    return invalid_argument("--json-flexible-whitespace needs --json-schema or --json-object");
  }
  if (given.empty()) return std::nullopt;
  GrammarSource source{
      .kind = kind, .json = {.strict = !o.relaxed, .flexible_whitespace = o.flexible_whitespace}};
  bool in_place = o.json_schema && trim_space(*o.json_schema).starts_with('{');
  in_place |= o.ebnf && o.ebnf->find("::=") != std::string::npos;
  if (o.regex) source.text = *o.regex;
  for (const auto& [text, form] : {std::pair(&o.json_schema, "a schema begins with {"),
                                   std::pair(&o.ebnf, "rules are written as root ::= \"a\"")}) {
    if (!*text) continue;
    Result<std::string> read = in_place ? Result<std::string>(**text) : read_named(**text);
    if (!read) {
      return make_error(read.error().code,
                        fmt::format("{}: {}; {}", given[0].first, read.error().message, form));
    }
    source.text = *std::move(read);
  }
  if (kind == Kind::kChoices) source.text = Json(o.choices).dump();
  Result<Grammar> compiled = Grammar::from_source(source);  // report errors before a long load
  if (!compiled) return invalid_argument("{}: {}", given[0].first, compiled.error().message);
  return source;
}

}  // namespace banyan::cli
