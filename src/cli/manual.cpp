// banyan man: roff manual pages of the program and of each verb.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/option_table.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

// Escapes text for roff: no requests, no escapes, and dashes that can be copied.
std::string roff(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool at_line_start = i == 0 || text[i - 1] == '\n';
    if (at_line_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string page_name(std::string_view verb) {
  std::string name = verb.empty() ? "banyan" : fmt::format("banyan-{}", verb);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string head(std::string_view verb, std::string_view summary) {
  std::string name = page_name(verb);
  return fmt::format(".TH \"{}\" 1 \"\" \"banyan {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     roff(name), BANYAN_VERSION, roff(name), roff(summary));
}

std::string option_entry(const OptionRow& row) {
  std::string text =
      fmt::format(".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(row.names, ", "))));
  if (!row.value.empty()) text += " \\fI" + roff(row.value) + "\\fR";
  if (row.repeats) text += " ...";
  text += "\n" + roff(row.description);
  if (!row.choices.empty()) {
    text += roff(fmt::format("\n(one of {})", fmt::join(row.choices, ", ")));
  }
  if (row.required) text += "\n(required)";
  if (!row.default_value.empty()) text += roff(fmt::format("\n[default: {}]", row.default_value));
  return text + "\n";
}

std::string verb_page(const Verb& verb) {
  std::string text = head(verb.name, verb.summary);
  text += fmt::format(".SH SYNOPSIS\n\\fBbanyan {}\\fR [\\fIOPTIONS\\fR]\n.SH OPTIONS\n",
                      roff(verb.name));
  for (const OptionRow& row : option_rows(verb)) text += option_entry(row);
  text += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", roff(verb.examples));
  return text + ".SH SEE ALSO\n\\fBbanyan\\fR(1)\n";
}

std::string program_page() {
  std::string text = head("", "run language models from their Hugging Face folders");
  text += ".SH SYNOPSIS\n\\fBbanyan\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR]\n.SH VERBS\n";
  for (const Verb* verb : verbs()) {
    text +=
        fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(verb->name)), roff(verb->summary));
  }
  return text +
         ".SH EXIT STATUS\n0 done, 1 failed, 2 a wrong value on the command line, 130 "
         "interrupted.\n";
}

Result<int> run_manual(const std::string& name) {
  if (name.empty()) {
    fmt::print("{}", program_page());
    return kExitSuccess;
  }
  for (const Verb* verb : verbs()) {
    if (page_name(verb->name) != page_name(name)) continue;
    fmt::print("{}", verb_page(*verb));
    return kExitSuccess;
  }
  return invalid_argument("there is no verb {}; `banyan --help` lists them", quote(name));
}

VerbAction declare_manual(CLI::App& app) {
  auto verb = std::make_shared<std::string>();
  app.add_option("verb", *verb,
                 "Verb whose page to print, such as bench-serving; none: the program's page")
      ->type_name("VERB");
  return [verb] { return run_manual(*verb); };
}

}  // namespace

const Verb kManualVerb = {"man", "Print a manual page in roff",
                          "  banyan man | man -l -\n"
                          "  banyan man bench-serving | man -l -\n",
                          declare_manual};

}  // namespace banyan::cli
