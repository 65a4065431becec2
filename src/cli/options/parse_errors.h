// What is wrong with a command line, in our words instead of CLI11's.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace banyan::cli {

// A sentence that names the option and the value, and a near name for one that is not known.
// `app` is what threw `error` while it parsed.
std::string explain(const CLI::ParseError& error, const CLI::App& app);

}  // namespace banyan::cli
