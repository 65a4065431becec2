// Finds function bodies in C++ text by tracking braces: enough for our own style, no parser.
//
// A `{` outside any function opens one when the text before it, back to the last `;`, `{` or `}`,
// has a parameter list and is neither a type, a namespace nor an initializer. Whatever is inside a
// function (blocks, lambdas, local types) belongs to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tidy/source.h"

namespace banyan::tidy {

struct Function {
  std::string name;
  size_t first_line;  // of the signature
  size_t lines;       // up to and with the closing brace
};

// `code` with preprocessor lines and their continuations blanked.
inline std::string blank_preprocessor(std::string code) {
  bool directive = false;
  for (size_t at = 0; at < code.size();) {
    size_t end = std::min(code.size(), code.find('\n', at));
    size_t first = std::min(end, code.find_first_not_of(" \t", at));
    directive = directive || (first < end && code[first] == '#');
    bool continued = end > at && code[end - 1] == '\\';
    if (directive) code.replace(at, end - at, end - at, ' ');
    directive = directive && continued;
    at = end + 1;
  }
  return code;
}

// The text before a brace: a declaration's head, judged as text.
class Head {
 public:
  explicit Head(std::string_view text) : text_(trim(text)) { drop_template_parameters(); }

  bool is_namespace_or_linkage() const {
    return has_word(text_, "namespace") || (has_word(text_, "extern") && !has_parameters());
  }
  bool is_type() const {
    std::string_view rest = text_;
    for (;;) {
      size_t length = 0;
      while (length < rest.size() && is_word(rest[length])) ++length;
      std::string_view word = rest.substr(0, length);
      if (word == "class" || word == "struct" || word == "union" || word == "enum") return true;
      if (word != "typedef" && word != "static" && word != "const" && word != "constexpr" &&
          word != "inline") {
        return false;
      }
      rest = trim(rest.substr(length));
    }
  }
  bool is_function() const {
    if (!has_parameters() || is_type() || is_namespace_or_linkage()) return false;
    size_t assignment = find_assignment();
    return assignment == text_.npos || trim(text_.substr(assignment + 1)).starts_with('[');
  }
  // The word before the parameters; for a test macro, the macro with its arguments.
  std::string name() const {
    size_t open = text_.find('(');
    if (text_.starts_with("TEST")) return std::string(text_.substr(0, text_.find(')') + 1));
    std::string_view before = trim(text_.substr(0, open));
    if (before.ends_with('>')) before = before.substr(0, before.find('<'));
    size_t begin = before.size();
    while (begin > 0 &&
           (is_word(before[begin - 1]) || before[begin - 1] == ':' || before[begin - 1] == '~')) {
      --begin;
    }
    size_t symbol = before.rfind("operator");
    if (begin == before.size() && symbol == before.npos) return "lambda";
    return std::string(before.substr(std::min(begin, symbol)));
  }

  static std::string_view trim(std::string_view text) {
    size_t begin = text.find_first_not_of(" \t\n");
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
  }

 private:
  bool has_parameters() const { return text_.find('(') != text_.npos; }

  void drop_template_parameters() {
    while (text_.starts_with("template")) {
      size_t at = text_.find('<');
      int depth = 0;
      for (; at < text_.size(); ++at) {
        depth += text_[at] == '<' ? 1 : text_[at] == '>' ? -1 : 0;
        if (depth == 0) break;
      }
      text_ = trim(text_.substr(std::min(at + 1, text_.size())));
    }
  }

  // The `=` of an initializer: outside parentheses, and no part of an operator's name.
  size_t find_assignment() const {
    int depth = 0;
    if (has_word(text_, "operator")) return text_.npos;
    for (size_t at = 0; at < text_.size(); ++at) {
      depth += text_[at] == '(' ? 1 : text_[at] == ')' ? -1 : 0;
      if (depth == 0 && text_[at] == '=') return at;
    }
    return text_.npos;
  }

  std::string_view text_;
};

class FunctionFinder {
 public:
  // `code` has no comments, literals or preprocessor lines.
  explicit FunctionFinder(std::string_view code) : code_(code) {}

  std::vector<Function> find() {
    for (at_ = 0; at_ < code_.size(); ++at_) {
      char c = code_[at_];
      if (function_depth_ > 0) {
        inside_function(c);
      } else {
        outside_function(c);
      }
    }
    return std::move(functions_);
  }

 private:
  void outside_function(char c) {
    if (c == '(') ++parentheses_;
    if (c == ')') --parentheses_;
    if (parentheses_ > 0) return;
    if (c == '{') {
      if (Head(code_.substr(head_, at_ - head_)).is_function()) {
        function_depth_ = 1;
      } else {
        head_ = at_ + 1;
      }
    } else if (c == ';' || c == '}' || is_access_label(c)) {
      head_ = at_ + 1;
    }
  }

  void inside_function(char c) {
    function_depth_ += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (function_depth_ > 0) return;
    // A member's initializer, a_{1}, in a constructor: the body is still to come.
    size_t next = code_.find_first_not_of(" \t\n", at_ + 1);
    if (next != code_.npos && (code_[next] == ',' || code_[next] == '{')) return;
    size_t first = line_number(code_, code_.find_first_not_of(" \t\n", head_));
    functions_.push_back({Head(code_.substr(head_, at_ - head_)).name(), first,
                          line_number(code_, at_) - first + 1});
    head_ = at_ + 1;
  }

  bool is_access_label(char c) const {
    if (c != ':') return false;
    std::string_view head = Head::trim(code_.substr(head_, at_ - head_));
    return head == "public" || head == "private" || head == "protected";
  }

  std::string_view code_;
  std::vector<Function> functions_;
  size_t at_ = 0;
  size_t head_ = 0;  // where the declaration that at_ is in begins
  int parentheses_ = 0;
  int function_depth_ = 0;  // braces open since a function began; 0 outside
};

inline std::vector<Function> find_functions(const SourceFile& file) {
  std::string code = blank_preprocessor(file.code);
  return FunctionFinder(code).find();
}

}  // namespace banyan::tidy
