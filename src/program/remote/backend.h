// A Backend on a server: /generate, or OpenAI's completions or chat. Thread-safe, like every
// Backend.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "program/remote/format.h"
#include "program/remote/transport.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer_config.h"

namespace banyan {

struct RemoteOptions {
  std::string name;  // for errors: "http://127.0.0.1:30000/generate"
  RemoteStyle style;
  std::optional<ChatTemplate> chat_template;
  SpecialTokens special;  // of the template's model
};

std::shared_ptr<Backend> remote_backend(Transport transport, RemoteOptions options);

}  // namespace banyan
