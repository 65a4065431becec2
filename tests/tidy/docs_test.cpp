// Documents name only files that exist.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "support/shared.h"
#include "tidy/source.h"

namespace banyan::tidy::docs_test {
namespace {

namespace fs = std::filesystem;

// Whether `name`, of a file or folder of the repository or of src/, is there. `x/y` may be y.h or
// y.cpp.
bool exists(const std::string& name) {
  for (std::string_view root : {"", "src/"}) {
    for (std::string_view suffix : {"", ".h", ".cpp"}) {
      if (fs::exists(test::source_path(fmt::format("{}{}{}", root, name, suffix)))) return true;
    }
  }
  return false;
}

// Whether text in backticks reads as a path: lower case, with a slash, without a placeholder.
bool is_path(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_./";
  return text.find_first_not_of(kLetters) == text.npos && text.find('/') != text.npos &&
         !text.starts_with('/') && !text.starts_with('.');
}

// Paths in backticks whose first part is a folder of src/ or of the repository.
Findings check_names(const std::string& document, std::string_view text) {
  Findings findings;
  for (size_t open = text.find('`'); open != text.npos; open = text.find('`', open + 1)) {
    size_t close = text.find('`', open + 1);
    if (close == text.npos) break;
    std::string name(text.substr(open + 1, close - open - 1));
    open = close;
    std::string folder = name.substr(0, name.find('/'));
    if (!is_path(name) || folder == "build" || folder == "models") continue;
    if (!exists(folder) || exists(name)) continue;
    findings.push_back(fmt::format("{}: `{}` is not there", document, name));
  }
  return findings;
}

Findings check_documents() {
  Findings findings;
  std::vector<fs::path> documents = {test::source_path("README.md"),
                                     test::source_path("CONTRIBUTING.md")};
  for (const auto& entry : fs::directory_iterator(test::source_path("docs"))) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  for (const fs::path& path : documents) {
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    std::ranges::copy(check_names(path.filename(), text), std::back_inserter(findings));
  }
  return findings;
}

TEST(Docs, NameFilesThatExist) {
  EXPECT_EQ(fmt::format("{}", fmt::join(check_documents(), "\n")), "");
}

TEST(Docs, TheRuleSeesAFileThatIsGone) {
  EXPECT_EQ(check_names("x.md", "`engine/engine`, `src/base/file.h` and `tools/nano`").size(), 0u);
  EXPECT_EQ(check_names("x.md", "`engine/no_such_file` and `owner/name`").size(), 1u);
}

}  // namespace
}  // namespace banyan::tidy::docs_test
