// Options of SGLang, vLLM and llama-server that people's scripts have in them and that mean nothing
// here, or not yet: each is accepted or refused by name, never silently dropped.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace banyan::cli {

// Hidden from --help. Call it after the verb's own options are declared.
void add_peer_options(CLI::App& app);

// Names of one dash and several letters ("-np"), which CLI11 does not have, as longer ones; other
// words as they are.
std::string respell_peer_option(const std::string& word);

}  // namespace banyan::cli
