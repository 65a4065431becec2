// Options shared by several verbs, and how their values are read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/config.h"
#include "banyan/llm.h"
#include "banyan/request.h"
#include "banyan/status.h"
#include "cli/options/adapter_options.h"
#include "engine/assemble.h"

namespace CLI {
class App;
}

namespace banyan::cli {

// How to draw tokens and when to stop. The verb decides what is not given.
struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p, typical_p, xtc_probability, xtc_threshold;
  std::optional<float> frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<float> dry_multiplier, dry_base;
  std::optional<int> top_k, repeat_last_n, dry_allowed_length, dry_penalty_last_n;
  std::vector<std::string> dry_sequence_breakers;  // with escapes; only "none": no breakers
  std::optional<uint64_t> seed;
  std::vector<std::string> stop, stop_regex;
  std::string stop_token_ids;
  bool ignore_eos = false;
  std::string adapter;
  AdapterOptions adapters;  // of verbs that load some
};

// --max-tokens and its aliases. -1: as many as fit into the context.
void add_length_option(CLI::App& app, int64_t& tokens, const std::string& text);

// `defaults_of` names the source of the defaults in --help.
void add_sampling_options(CLI::App& app, SamplingOptions& options, std::string_view defaults_of);

// `defaults` with the given options applied, validated. Without --seed the seed is random if the
// temperature is above 0.
Result<SamplingParams> sampling_params(const SamplingOptions& options, SamplingParams defaults);

// Stop strings, stop ids, ignore_eos and the adapter.
Result<GenerationOptions> generation_options(const SamplingOptions& options);

// The constraint of the output; at most one kind may be given.
struct GrammarOptions {
  std::optional<std::string> regex, json_schema, ebnf;
  std::vector<std::string> choices;
  bool json_object = false;
  bool relaxed = false;                       // ignore parts of a schema that cannot be enforced
  bool flexible_whitespace = false;           // in JSON
  const char* schema_name = "--json-schema";  // in errors
};

// --regex, --json-schema, --json-object, --grammar, --choice and the format of JSON.
void add_grammar_options(CLI::App& app, GrammarOptions& options);

// The given constraint with its file read, which compiles; nullopt if none was given.
Result<std::optional<GrammarSource>> grammar_source(const GrammarOptions& options);

// Validator for CLI11, which would wrap negative numbers. Returns an error, or "" if `text` is a
// seed.
std::string check_seed(const std::string& text);

// --seed and its aliases; -1 leaves it to chance, as llama.cpp and SGLang have it.
void add_seed_option(CLI::App& app, std::optional<uint64_t>& seed, const std::string& text);

// Below 2^32, so it is short, and exact in every JSON reader.
uint64_t random_seed();

// Parses one or more non-negative numbers: "1,2,3", "1 2 3" or "[1, 2, 3]". `option` is named in
// errors.
Result<std::vector<int32_t>> parse_numbers(std::string_view text, std::string_view option);

// Reads stdin to its end; at most 256 MB.
Result<std::string> read_stdin();

// The source of a text or its token ids; exactly one must be given.
struct TextSource {
  std::optional<std::string> text;        // --text, --prompt
  std::optional<std::string> ids;         // --ids, --prompt-ids
  std::optional<std::string> file;        // --file, --prompt-file; "-" is stdin
  std::optional<std::string> positional;  // "-" is stdin, else the text itself
};

struct TextOrIds {
  std::string text;
  std::vector<TokenId> ids;  // if not empty, there is no text
};

// Reads the one that is given. `choices` lists them for the error if there is none or a second. It
// also names `model`: who leaves the model out has given the text in its place.
Result<TextOrIds> read_source(const TextSource& source, std::string_view model,
                              std::string_view choices);

// Loads the model with a progress line. The engine also uses `storage`.
Result<std::unique_ptr<Llm>> load_llm(const EngineConfig& config,
                                      EngineAssembly::Storage storage = {});

}  // namespace banyan::cli
