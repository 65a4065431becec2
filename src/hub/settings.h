// Where models come from and where they are kept, by the environment variables of huggingface_hub,
// and the names of models.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct HubSettings {
  std::string endpoint;  // HF_ENDPOINT, without a slash at its end
  std::string token;     // HF_TOKEN, or the file that `hf auth login` writes; empty: none
  std::string cache;     // HF_HUB_CACHE, else hub in HF_HOME; empty: there is no home
  bool offline = false;  // HF_HUB_OFFLINE
};

HubSettings hub_settings();

// A model on a hub: "OWNER/NAME", "OWNER/NAME@REVISION", "OWNER/NAME:GGUF" or with both.
struct HubModel {
  std::string owner, name;
  std::string revision = "main";  // a branch, a tag or a commit
  std::string gguf;               // a quantization or a file (hub/gguf_choice.h); "": unless needed
  bool with_host = false;         // "hf.co/" came first, so no folder can be meant

  // kInvalidArgument if `text` is no such name. "hf.co/" and "huggingface.co/", also with
  // "https://", may come first and mean nothing more: HF_ENDPOINT says which hub is asked.
  static Result<HubModel> parse(std::string_view text);
  std::string repository() const { return owner + "/" + name; }
  // With the GGUF file.
  std::string text() const { return repository() + (gguf.empty() ? "" : ":" + gguf); }

 private:
  Status read_mark(char mark, std::string_view value);
};

}  // namespace banyan
