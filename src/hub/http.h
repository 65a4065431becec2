// HTTP requests to a hub, with libcurl. Blocking; safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct HubRequest {
  std::string url;
  std::string token;  // sent to the URL's host only, not to redirect targets
  bool head = false;
  bool follow = true;  // redirects, but never from https to http
  int64_t begin = -1;  // first byte to request...
  int64_t end = -1;    // ... and the end, exclusive; -1: the whole file
};

struct HubReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // lower-case names; of the last hop
  std::string body;                            // empty if a sink received it

  std::string header(const std::string& name) const;
};

// Called with pieces of the body once the headers are complete; false ends the transfer.
using BodySink = std::function<bool(const HubReply& reply, std::string_view piece)>;

// kIo: no response, or a truncated one; the sink may have received a part. Without a sink the body
// is limited to 64 MB.
Result<HubReply> send_to_hub(const HubRequest& request, const BodySink& sink = {});

}  // namespace banyan
