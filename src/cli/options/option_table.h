// The options of a verb as rows, from its declarations. Help, man pages and completions are made
// from these.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"

namespace banyan::cli {

struct OptionRow {
  std::vector<std::string> names;    // "-m", "--model"; a name without dashes is a positional
  std::string value;                 // "DIR"; empty: a flag
  std::vector<std::string> choices;  // all allowed values, if they are listed
  std::string default_value;
  std::string description;
  std::string group;  // "Options": the common ones
  bool required = false;
  bool repeats = false;

  bool is_positional() const { return !names.front().starts_with('-'); }
  bool takes_folder() const { return value == "DIR" || value == "MODEL"; }
  bool takes_file() const { return value.starts_with("FILE"); }
};

// Settings for the options of every verb; call it before they are declared.
void prepare(CLI::App& app);

// In the order of --help, without hidden options.
std::vector<OptionRow> option_rows(const Verb& verb);

// "`banyan serve` and `banyan run`": the verbs that list an option of that name, three at most.
std::string verbs_with(std::span<const Verb* const> verbs, std::string_view option);

// The first sentence of a description, for lists with one line per option.
std::string first_sentence(const std::string& text);

}  // namespace banyan::cli
