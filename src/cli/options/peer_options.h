// Options of SGLang, vLLM and llama-server that existing scripts use but that have no effect here,
// or are not supported yet. Each is accepted or refused by name, never silently ignored.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace banyan::cli {

// Adds them, hidden from --help. Call it after the verb's own options are declared.
void add_peer_options(CLI::App& app);

// Replaces names such as "-np", which CLI11 does not support, with their long names. Returns other
// words unchanged.
std::string respell_peer_option(const std::string& word);

}  // namespace banyan::cli
