// A handler's view of HTTP: the request as values, and a responder for the answer.
//
// Everything here belongs to the I/O thread, and nothing blocks. Output goes to a buffer per
// connection and from there to the socket as fast as the client reads.
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
  std::string id;             // X-Request-Id if the client sent a usable one, else generated
  std::string path_argument;  // value of {name} at the end of the route
  std::string client;         // for fair queueing: the API key, else the address

  // The first header (ignoring case) or query parameter of that name, if any.
  std::optional<std::string_view> header(std::string_view name) const;
  std::optional<std::string_view> parameter(std::string_view name) const;
};

// The answer to one request: either respond(), or begin_stream(), any number of send() and
// finish(). A responder destroyed without an answer sends 500. After the client has disconnected,
// calls have no effect.
class Responder {
 public:
  Responder(std::shared_ptr<Connection> connection, uint64_t exchange);
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  void respond(int status, std::string body, std::string_view content_type = "application/json",
               const HttpHeaders& more = {});
  void respond(int status, const Json& body, const HttpHeaders& more = {});
  // Sends an error in the formats of server/error.h.
  //
  // `details`: further members of the error object, or null.
  void respond_error(int status, std::string_view message, std::string_view param = {},
                     std::string_view code = {}, const Json& details = {});

  // Sends status 200 and the headers together with the first event.
  void begin_stream(std::string_view content_type = "text/event-stream");
  // Sends `data` unchanged; a server-sent event is "data: {...}\n\n". False when the client has
  // disconnected or was dropped for being too slow; on_disconnect has been called by then.
  bool send(std::string_view data);
  void finish();

  bool started() const;  // respond or begin_stream was called
  bool alive() const;    // the client is connected and the answer unfinished
  // Bytes of this answer not yet passed to the socket.
  size_t unsent_bytes() const;
  // `callback` runs once, if the client disconnects or is cut off before the answer is complete. It
  // runs soon if that has happened already, but never from within a call to this object.
  void on_disconnect(std::function<void()> callback);

  // Adds name=value to the request's access log line.
  void note(std::string_view name, std::string_view value);

 private:
  std::shared_ptr<Connection> connection_;
  uint64_t exchange_;  // of the connection, which serves one at a time
};

using ResponderPtr = std::shared_ptr<Responder>;

}  // namespace banyan
