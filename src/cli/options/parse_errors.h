// Errors of a command line, in our words instead of CLI11's.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace banyan::cli {

// The commands that have an option of that name, "`banyan serve`"; empty: none.
using OptionOwners = std::function<std::string(const std::string& option)>;

// Names the option and the value. For an unknown option, names the commands that have it, or
// suggests a similar name. `app` threw `error` while parsing.
std::string explain(const CLI::ParseError& error, const CLI::App& app,
                    const OptionOwners& owners_of = {});

}  // namespace banyan::cli
