// Errors of a command line, in our words instead of CLI11's.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace banyan::cli {

// Names the option and the value, and suggests a name for an unknown option. `app` threw `error`
// while parsing.
std::string explain(const CLI::ParseError& error, const CLI::App& app);

}  // namespace banyan::cli
