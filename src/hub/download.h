// Downloads a model from a hub into the cache, limited to what the engine needs: config, tokenizer
// and safetensors, or one GGUF file. Blocks the calling thread.
#pragma once

#include <functional>
#include <string>

#include "banyan/config.h"
#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan {

// Called with a summary once the files are known: "8 files, 1.52 GB".
using HubNotice = std::function<void(const std::string& text)>;

// Progress of one file, by hash. Returning false stops the download with kCancelled.
using HubFileProgress =
    std::function<bool(const std::string& etag, int64_t bytes_done, int64_t bytes_total)>;

// Returns the complete folder of the revision. Returns a GGUF file in it (the first of several
// parts) if the model names one or the repository has nothing else. Cached files are not downloaded
// again, partial downloads are resumed, and concurrent programs take turns.
//
// Errors: unknown name or revision, missing access token, neither safetensors nor the GGUF file,
// disk full, data that does not match the hub's hashes.
Result<std::string> download_model(const HubSettings& settings, const HubModel& model,
                                   const HubNotice& notice = {}, const LoadProgress& progress = {},
                                   const HubFileProgress& of_file = {});

}  // namespace banyan
