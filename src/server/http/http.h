// What a handler sees of HTTP: a request as values and a responder that takes the answer.
//
// All of it belongs to the one I/O thread. Nothing here blocks: bytes go to a buffer per connection
// and from there to the socket as its reader takes them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace banyan {

class Connection;

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;                                      // "GET", "POST", ...
  std::string path;                                        // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  HttpHeaders headers;
  std::string body;
  std::string id;             // X-Request-Id if the client sent a usable one, else made here
  std::string path_argument;  // what {name} at the end of a route stands for
  std::string client;         // who asks, for queues that are fair: the API key, else the address

  // The first of that name, whatever its case; nothing if there is none.
  std::optional<std::string_view> header(std::string_view name) const;
  std::optional<std::string_view> parameter(std::string_view name) const;
};

// The answer to one request: either respond(), or begin_stream(), send() as often as needed and
// finish(). A responder that goes without an answer gives 500. After the client has gone every call
// does nothing.
class Responder {
 public:
  Responder(std::shared_ptr<Connection> connection, uint64_t exchange);
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  void respond(int status, std::string body, std::string_view content_type = "application/json",
               const HttpHeaders& more = {});
  void respond(int status, const Json& body, const HttpHeaders& more = {});
  // An error in the shapes of server/error.h.
  // `details`: an object of more members for the error, or null.
  void respond_error(int status, std::string_view message, std::string_view param = {},
                     std::string_view code = {}, const Json& details = {});

  // Sends status 200 and the headers, with the first event.
  void begin_stream(std::string_view content_type = "text/event-stream");
  // Writes `data` as it is, that is "data: {...}\n\n" for server-sent events. False when the client
  // has gone or is too slow to be kept; on_disconnect has been called by then.
  bool send(std::string_view data);
  void finish();

  bool started() const;  // respond or begin_stream was called
  bool alive() const;    // the client is there and the answer is not finished
  // How much of this answer its reader has yet to take, beyond what the system holds for it.
  size_t unsent_bytes() const;
  // Called once, when the client goes or is cut off before the answer is complete; soon, if it has
  // gone already. Never called from within a call to this object.
  void on_disconnect(std::function<void()> callback);

  // Adds name=value to the request's line in the access log.
  void note(std::string_view name, std::string_view value);

 private:
  std::shared_ptr<Connection> connection_;
  uint64_t exchange_;  // a connection serves many, one at a time
};

using ResponderPtr = std::shared_ptr<Responder>;

}  // namespace banyan
