// HTTP requests to a hub, over libcurl. Blocking; any thread.
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
  std::string token;  // sent to the url's host alone, not to where that redirects
  bool head = false;
  bool follow = true;  // redirects; never from https to http
  int64_t begin = -1;  // ask for the bytes from here...
  int64_t end = -1;    // ... up to before here; -1: the whole
};

struct HubReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; of the last hop
  std::string body;                            // empty where a sink took it

  std::string header(const std::string& name) const;
};

// Gets pieces of a body once the headers are complete; false ends the transfer.
using BodySink = std::function<bool(const HubReply& reply, std::string_view piece)>;

// kIo: no reply, or one that was cut off; the sink may have got a part of it. Without a sink the
// body may have 64 MB.
Result<HubReply> send_to_hub(const HubRequest& request, const BodySink& sink = {});

}  // namespace banyan
