// Tokenizes template text and applies trim_blocks, lstrip_blocks and the - and + markers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace banyan::jinja {

enum class TokenType : uint8_t {
  kText,
  kPrintBegin,
  kPrintEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string_view text;  // source text; a string's or text's unescaped value
  int64_t integer = 0;
  double real = 0;

  bool is_operator(std::string_view symbol) const {
    return type == TokenType::kOperator && text == symbol;
  }
  bool is_name(std::string_view name) const { return type == TokenType::kName && text == name; }
};

// `source` has \n line ends. It must outlive the tokens, as must `heap`, which holds unescaped
// strings. The last token is kEnd. Errors name the line.
Result<std::vector<Token>> tokenize(std::string_view source, Heap& heap);

// Converts \r\n and \r to \n and drops one final newline, as Jinja does first.
std::string normalize_source(std::string_view source);

}  // namespace banyan::jinja
