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

// A model on a hub: "OWNER/NAME" or "OWNER/NAME@REVISION".
struct HubModel {
  std::string owner, name;
  std::string revision = "main";  // a branch, a tag or a commit

  // kInvalidArgument if `text` is no such name.
  static Result<HubModel> parse(std::string_view text);
  std::string repository() const { return owner + "/" + name; }
};

}  // namespace banyan
