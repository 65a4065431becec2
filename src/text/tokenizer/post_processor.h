// What a tokenizer puts around a text's tokens: the beginning and end of a sequence.
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

  // `json` is tokenizer.json's post_processor; `place` names it in messages.
  static Result<PostProcessor> make(const Json& json, const std::string& place);
};

}  // namespace banyan
