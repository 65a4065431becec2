// Downloads one model file from a hub into the cache: several ranges in parallel, resumed after an
// interrupted run, and verified against the hub's hash. Blocks the calling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "banyan/status.h"

namespace banyan {

struct HubFile {
  std::string name;  // for messages
  std::string url;
  std::string token;
  std::string etag;  // the blob's name: SHA-256 for LFS files, git's SHA-1 for others
  int64_t bytes = 0;
};

// Called with the number of bytes received since the last call, by one thread at a time. Negative
// if bytes must be downloaded again. Returning false stops with kCancelled; received data is kept.
using BytesSink = std::function<bool(int64_t bytes)>;

// Downloads and verifies FOLDER/ETAG; does nothing if it exists. kIo: the hub does not answer or
// keeps dropping the connection; received data is kept for the next run. kCorrupt: the data does
// not match the announced size or hash.
Status fetch_blob(const HubFile& file, const std::string& folder, const BytesSink& progress);

}  // namespace banyan
