// The options of a verb as rows, read off what the verb declares: man pages and completions are
// made of these, so that nothing is listed twice.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace banyan::cli {

struct OptionRow {
  std::vector<std::string> names;    // "-m", "--model"; one that names no option is a positional
  std::string value;                 // "DIR"; empty: a flag
  std::vector<std::string> choices;  // all values that it takes, where they are few
  std::string default_value;
  std::string description;
  std::string group;  // "Options": the common ones
  bool required = false;
  bool repeats = false;

  bool is_positional() const { return !names.front().starts_with('-'); }
  bool takes_folder() const { return value == "DIR" || value == "MODEL"; }
  bool takes_file() const { return value.starts_with("FILE"); }
};

// What holds for the options of every verb; before they are declared.
void prepare(CLI::App& app);

// In the order of --help; options that it hides are left out.
std::vector<OptionRow> option_rows(const Verb& verb);

// The first sentence of a description, for lists that have room for a line.
std::string first_sentence(const std::string& text);

}  // namespace banyan::cli
