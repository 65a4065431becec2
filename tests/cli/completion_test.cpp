// What shells complete, and manual pages: both follow from the options of the verbs.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <sstream>

#include "cli/program.h"

namespace banyan::completion_test {
namespace {

using test::run_program;

using Words = std::vector<std::string>;

// What `command` prints when it runs in bash.
std::string in_bash(const std::string& command) {
  std::string file = ::testing::TempDir() + "/completion_test.sh";
  std::ofstream(file) << command;
  FILE* pipe = popen(("bash " + file).c_str(), "r");
  std::string out;
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0);
  return out;
}

// The completions of the last word of `line`, which may be empty.
Words completed(const Words& line) {
  std::string words;
  for (const std::string& word : line) words += " '" + word + "'";
  std::string script = run_program({"completion", "bash"}).out;
  std::istringstream out(in_bash(script + "compopt() { :; }\nCOMP_WORDS=(" + words + ")\n" +
                                 "COMP_CWORD=" + std::to_string(line.size() - 1) +
                                 "\n_banyan\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"));
  Words found;
  for (std::string word; std::getline(out, word);) found.push_back(word);
  return found;
}

TEST(Completion, BashCompletesVerbsOptionsAndValues) {
  EXPECT_EQ(completed({"banyan", "ser"}), Words{"serve"});
  EXPECT_EQ(completed({"banyan", "bench", "one"}), Words{"one-batch"});
  EXPECT_EQ(completed({"banyan", "serve", "--drain-t"}), Words{"--drain-timeout"});
  EXPECT_EQ(completed({"banyan", "bench", "serving", "--base"}), Words{"--base-url"});
  EXPECT_EQ(completed({"banyan", "serve", "--dtype", "b"}), Words{"bf16"});
  EXPECT_EQ(completed({"banyan", "completion", "f"}), Words{"fish"});
  EXPECT_EQ(completed({"banyan", "generate", "--model", "src/gram"}), Words{"src/grammar"});
  EXPECT_EQ(completed({"banyan", "generate", "--threads", ""}), Words{""});  // any number
}

TEST(Completion, EveryShellHasAScriptAndOthersAreRefused) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    auto result = run_program({"completion", shell});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out.contains("max-running-requests")) << shell;
    EXPECT_FALSE(result.out.contains("trust-remote-code")) << shell << ": hidden in --help";
  }
  auto refused = run_program({"completion", "tcsh"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.err.contains("tcsh")) << refused.err;
}

TEST(Manual, PagesNameEveryOptionOfTheHelp) {
  std::string page = run_program({"man", "bench-serving"}).out;
  EXPECT_TRUE(page.starts_with(".TH \"banyan\\-bench\\-serving\" 1")) << page.substr(0, 80);
  std::istringstream help(run_program({"bench", "serving", "--help-all"}).out);
  int options = 0;
  for (std::string line; std::getline(help, line);) {
    size_t begin = line.find("--");
    if (!line.starts_with("  ") || begin > 6 || begin == line.npos) continue;
    std::string name = line.substr(begin, line.find_first_of(" ,", begin) - begin), escaped;
    for (char c : name) escaped += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_TRUE(page.contains(escaped)) << name;
    ++options;
  }
  EXPECT_GT(options, 10);
}

TEST(Manual, TheProgramsPageListsVerbsAndAnUnknownOneIsRefused) {
  EXPECT_TRUE(run_program({"man"}).out.contains("banyan\\-eval\\-nano"));
  auto refused = run_program({"man", "dance"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.err.contains("dance")) << refused.err;
}

}  // namespace
}  // namespace banyan::completion_test
