// Adds the special tokens around a text's tokens: begin and end of sequence.
#pragma once

#include <string>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

struct PostProcessor {
  std::vector<TokenId> before;
  std::vector<TokenId> after;

  // `json` is tokenizer.json's post_processor; `place` names it in errors.
  static Result<PostProcessor> make(const Json& json, const std::string& place);
};

}  // namespace banyan
