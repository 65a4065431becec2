// The repository's source files as the tidy rules see them.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/shared.h"

namespace banyan::tidy {

inline bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Whether the quote at `at` separates digits (1'000) and does not open a character.
inline bool is_digit_separator(std::string_view text, size_t at) {
  size_t start = at;
  while (start > 0 && (is_word(text[start - 1]) || text[start - 1] == '\'')) --start;
  return start < at && std::isdigit(static_cast<unsigned char>(text[start]));
}

// The position after the literal whose opening quote is at `at`.
inline size_t literal_end(std::string_view text, size_t at) {
  bool raw = text[at] == '"' && at > 0 && text[at - 1] == 'R' &&
             (at < 2 || !is_word(text[at - 2]) || text[at - 2] == '8' || text[at - 2] == 'L' ||
              text[at - 2] == 'u' || text[at - 2] == 'U');
  if (raw) {
    std::string_view delimiter = text.substr(at + 1, text.find('(', at) - at - 1);
    std::string close = ")" + std::string(delimiter) + "\"";
    size_t end = text.find(close, at);
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[at]) {
      return i + 1;
    }
  }
  return std::min(text.size(), text.find('\n', at));
}

// C++ text of the same length and the same lines, with comments and the insides of literals
// replaced by spaces: what is left is code.
inline std::string blank_comments_and_literals(std::string_view text) {
  std::string code(text);
  auto blank = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) code[i] = code[i] == '\n' ? '\n' : ' ';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text.substr(at).starts_with("//")) {
      end = std::min(text.size(), text.find('\n', at));
      blank(at, end);
    } else if (text.substr(at).starts_with("/*")) {
      end = std::min(text.size(), text.find("*/", at + 2));
      end = std::min(text.size(), end + 2);
      blank(at, end);
    } else if (text[at] == '"' || (text[at] == '\'' && !is_digit_separator(text, at))) {
      end = literal_end(text, at);
      blank(at + 1, end - 1);
    }
    at = end;
  }
  return code;
}

struct SourceFile {
  std::string path;  // from the repository's root: "src/base/file.h"
  std::string text;
  std::string code;  // C++ only: blank_comments_and_literals(text)

  bool is_header() const { return path.ends_with(".h") || path.ends_with(".cuh"); }
  bool is_cpp() const { return is_header() || path.ends_with(".cpp") || path.ends_with(".cu"); }
};

inline SourceFile make_source(std::string path, std::string text) {
  SourceFile file{std::move(path), std::move(text), ""};
  if (file.is_cpp()) file.code = blank_comments_and_literals(file.text);
  return file;
}

// Lines without their newline; line n is element n - 1.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

inline size_t line_number(std::string_view text, size_t at) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + at, '\n'));
}

// Whether `word` occurs in `line` with no letter, digit or underscore beside it.
inline bool has_word(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    bool before = at > 0 && is_word(line[at - 1]);
    bool after = at + word.size() < line.size() && is_word(line[at + word.size()]);
    if (!before && !after) return true;
  }
  return false;
}

// Every hand-written file that the rules speak of, read once. Data (goldens, corpora, vocabularies)
// is not code.
inline const std::vector<SourceFile>& repository() {
  static const std::vector<SourceFile> kFiles = [] {
    namespace fs = std::filesystem;
    std::vector<SourceFile> files;
    for (std::string root : {"src", "include", "tests", "bench", "bindings", "tools", "scripts"}) {
      if (!fs::exists(test::source_path(root))) continue;
      for (const auto& entry : fs::recursive_directory_iterator(test::source_path(root))) {
        std::string suffix = entry.path().extension().string();
        bool is_code = suffix == ".h" || suffix == ".cpp" || suffix == ".cu" || suffix == ".cuh" ||
                       suffix == ".py" || suffix == ".sh" || suffix == ".cmake" ||
                       entry.path().filename() == "CMakeLists.txt" || root == "scripts";
        if (!is_code || !entry.is_regular_file()) continue;
        std::ifstream stream(entry.path(), std::ios::binary);
        std::string text{std::istreambuf_iterator<char>(stream), {}};
        files.push_back(make_source(
            fs::relative(entry.path(), test::source_path("")).generic_string(), std::move(text)));
      }
    }
    return files;
  }();
  return kFiles;
}

// What a rule found, one line each: "src/x.cpp:12: what is wrong".
using Findings = std::vector<std::string>;

// Applies a rule to the whole repository.
template <class Rule>
std::string findings_in_repository(Rule rule) {
  std::string all;
  for (const SourceFile& file : repository()) {
    for (const std::string& finding : rule(file)) all += finding + "\n";
  }
  return all;
}

}  // namespace banyan::tidy
