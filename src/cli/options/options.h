// Options that several verbs share, and reading what they name.
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

namespace CLI {
class App;
}

namespace banyan::cli {

// How to draw tokens and when to stop; what is not given is left to the verb.
struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p, typical_p, xtc_probability, xtc_threshold;
  std::optional<float> frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<float> dry_multiplier, dry_base;
  std::optional<int> top_k, dry_allowed_length, dry_penalty_last_n;
  std::vector<std::string> dry_sequence_breakers;  // with escapes; "none" alone: none
  std::optional<uint64_t> seed;
  std::vector<std::string> stop, stop_regex;
  std::string stop_token_ids;
  bool ignore_eos = false;
  std::string adapter;
};

// --max-tokens and what other programs call it; -1 is all that fits into the context.
void add_length_option(CLI::App& app, int64_t& tokens, const std::string& text);

// `defaults_of` says in --help where values come from that are not given.
void add_sampling_options(CLI::App& app, SamplingOptions& options, std::string_view defaults_of);

// `defaults` changed by what was given; a seed that was not is random if it matters. The values are
// checked.
Result<SamplingParams> sampling_params(const SamplingOptions& options, SamplingParams defaults);

// Stop strings, stop ids, ignore_eos and the adapter.
Result<GenerationOptions> generation_options(const SamplingOptions& options);

// What the output may be; at most one of these may be given.
struct GrammarOptions {
  std::optional<std::string> regex, json_schema, ebnf;
  std::vector<std::string> choices;
  bool json_object = false;
  bool relaxed = false;              // of a schema, leave out what cannot be enforced
  bool flexible_whitespace = false;  // in JSON
};

// --regex, --json-schema, --json-object, --grammar, --choice and how JSON is written.
void add_grammar_options(CLI::App& app, GrammarOptions& options);

// What was asked for, files read; nothing if nothing was.
Result<std::optional<GrammarSource>> grammar_source(const GrammarOptions& options);

// For CLI11, which would wrap negative numbers: what is wrong with `text` as a seed, or nothing.
std::string check_seed(const std::string& text);

// A number below 2^32: readable, and exact in every JSON reader.
uint64_t random_seed();

// Numbers from 0 on as "1,2,3", "1 2 3" or "[1, 2, 3]"; at least one. `option` names the place in
// errors.
Result<std::vector<int32_t>> parse_numbers(std::string_view text, std::string_view option);

// All of stdin, at most 256 MB.
Result<std::string> read_stdin();

// Where a text or its ids come from: exactly one of these may be given.
struct TextSource {
  std::optional<std::string> text;        // --text, --prompt
  std::optional<std::string> ids;         // --ids, --prompt-ids
  std::optional<std::string> file;        // --file, --prompt-file; "-" is stdin
  std::optional<std::string> positional;  // "-" is stdin, else the text itself
};

struct TextOrIds {
  std::string text;
  std::vector<TokenId> ids;  // when not empty, the text is not given
};

// Reads the one that is given. `choices` lists them for the error if there is none or a second. It
// also names `model`: who leaves the model out has given the text in its place.
Result<TextOrIds> read_source(const TextSource& source, std::string_view model,
                              std::string_view choices);

// Loads with a progress line.
Result<std::unique_ptr<Llm>> load_llm(const EngineConfig& config);

}  // namespace banyan::cli
