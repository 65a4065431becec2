// A model from a hub into the cache: what an engine needs of it and nothing else, which is config,
// tokenizer and safetensors, or one GGUF file.
#pragma once

#include <functional>
#include <string>

#include "banyan/config.h"
#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan {

// What will be fetched, once it is known: "8 files, 1.52 GB".
using HubNotice = std::function<void(const std::string& text)>;

// Of one file: its hash, and how much of it is here. False ends the download with kCancelled.
using HubFileProgress =
    std::function<bool(const std::string& etag, int64_t bytes_done, int64_t bytes_total)>;

// The folder of the revision, complete, or the GGUF file in it (of several parts: the first), where
// the model names one or the repository has nothing else. Files that are in the cache already are
// not fetched again; what an earlier run left unfinished is continued. Two programs take turns.
// Errors: the name or the revision is unknown, the model asks for a token, it has neither
// safetensors nor the GGUF file, the disk is full, the hub does not keep its promises.
Result<std::string> download_model(const HubSettings& settings, const HubModel& model,
                                   const HubNotice& notice = {}, const LoadProgress& progress = {},
                                   const HubFileProgress& of_file = {});

}  // namespace banyan
