// One file of a model, from a hub into its cache: several ranges at once, resumed where an earlier
// run was cut off, and checked against what the hub promised.
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
  std::string etag;  // the blob's name: SHA-256 of an LFS file, git's SHA-1 of others
  int64_t bytes = 0;
};

// Called with how many bytes have come since the last call, by one thread at a time. Negative where
// they have to be fetched again. False ends it with kCancelled; what came is kept.
using BytesSink = std::function<bool(int64_t bytes)>;

// Leaves the file at FOLDER/ETAG, whole and checked; does nothing if it is there. kIo: the hub does
// not answer or cuts off again and again; what came is kept for the next time. kCorrupt: it sends
// something else than it promised.
Status fetch_blob(const HubFile& file, const std::string& folder, const BytesSink& progress);

}  // namespace banyan
