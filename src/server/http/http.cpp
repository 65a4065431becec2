#include "server/http/http.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>

#include "base/json_text.h"
#include "server/error.h"
#include "server/http/connection.h"

namespace banyan {
namespace {

std::optional<std::string_view> find(const HttpHeaders& fields, std::string_view name,
                                     bool ignore_case) {
  for (const auto& [key, value] : fields) {
    if (ignore_case ? boost::beast::iequals(key, name) : key == name) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  return find(headers, name, true);
}

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
  return find(query, name, false);
}

Responder::Responder(std::shared_ptr<Connection> connection, uint64_t exchange)
    : connection_(std::move(connection)), exchange_(exchange) {}

Responder::~Responder() {
  connection_->let_go(exchange_);
}

void Responder::respond(int status, std::string body, std::string_view content_type,
                        const HttpHeaders& more) {
  connection_->respond(exchange_, status, body, content_type, more);
}

void Responder::respond(int status, const Json& body, const HttpHeaders& more) {
  respond(status, dump_json(body), "application/json", more);
}

void Responder::respond_error(int status, std::string_view message, std::string_view param,
                              std::string_view code, const Json& details) {
  HttpHeaders more;
  if (status == 503 || status == 429) more.emplace_back("Retry-After", "1");
  Json body = error_json(status, message, param, code, connection_->path(exchange_));
  if (details.is_object() && body["error"].is_object()) body["error"].update(details);
  respond(status, body, more);
}

void Responder::begin_stream(std::string_view content_type) {
  connection_->begin_stream(exchange_, content_type);
}

bool Responder::send(std::string_view data) {
  return connection_->send(exchange_, data);
}

void Responder::finish() {
  connection_->finish(exchange_);
}

bool Responder::started() const {
  return connection_->is_started(exchange_);
}

bool Responder::alive() const {
  return connection_->is_open(exchange_);
}

size_t Responder::unsent_bytes() const {
  return connection_->unsent_bytes(exchange_);
}

void Responder::on_disconnect(std::function<void()> callback) {
  connection_->on_disconnect(exchange_, std::move(callback));
}

void Responder::note(std::string_view name, std::string_view value) {
  connection_->note(exchange_, name, value);
}

}  // namespace banyan
