// Where models are downloaded from and cached, from huggingface_hub's environment variables. Also
// parses model names.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct HubSettings {
  std::string endpoint;  // HF_ENDPOINT, without a trailing slash
  std::string token;     // HF_TOKEN, or the file written by `hf auth login`; empty: none
  std::string cache;     // HF_HUB_CACHE, else hub in HF_HOME; empty: no home folder
  bool offline = false;  // HF_HUB_OFFLINE
};

HubSettings hub_settings();

// A model on a hub: "OWNER/NAME", "OWNER/NAME@REVISION", "OWNER/NAME:GGUF" or with both.
struct HubModel {
  std::string owner, name;
  std::string revision = "main";  // a branch, a tag or a commit
  std::string gguf;               // a quantization or a file (hub/gguf_choice.h); "": none given
  bool with_host = false;         // it started with "hf.co/", so it cannot be a folder

  // kInvalidArgument if `text` is not such a name. A leading "hf.co/" or "huggingface.co/", with or
  // without "https://", is ignored: HF_ENDPOINT determines the hub.
  static Result<HubModel> parse(std::string_view text);
  std::string repository() const { return owner + "/" + name; }
  // Includes the GGUF file.
  std::string text() const { return repository() + (gguf.empty() ? "" : ":" + gguf); }

 private:
  Status read_mark(char mark, std::string_view value);
};

}  // namespace banyan
