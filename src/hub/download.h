// A model from a hub into the cache: what an engine needs of it and nothing else.
#pragma once

#include <functional>
#include <string>

#include "banyan/config.h"
#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan {

// What will be fetched, once it is known: "8 files, 1.52 GB".
using HubNotice = std::function<void(const std::string& text)>;

// The folder of the revision, complete. Files that are in the cache already are not fetched again;
// what an earlier run left unfinished is continued. Two programs take turns. Errors: the name or
// the revision is unknown, the model asks for a token, it has no safetensors, the disk is full, the
// hub does not keep its promises.
Result<std::string> download_model(const HubSettings& settings, const HubModel& model,
                                   const HubNotice& notice = {}, const LoadProgress& progress = {});

}  // namespace banyan
