// The names that options have on the command line, for the errors of code that knows only the
// names of their values.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace banyan::cli {

// `message` with the names of configured values ("page_size_tokens is 3; ...") replaced by the
// options of `app` that set them: as typed in `words`, or else by their first name.
std::string with_option_names(const std::string& message, const CLI::App& app,
                              std::span<const std::string> words);

}  // namespace banyan::cli
