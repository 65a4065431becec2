#include "program/remote/transport.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "base/error.h"
#include "client/resuming_client.h"

namespace banyan {
namespace {

namespace asio = boost::asio;

class HttpThread {
 public:
  ~HttpThread() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status start(const std::string& urls, const HttpClient::Headers& headers) {
    client_ = TRY(ResumingClient::open(io_, urls, headers, {}));
    TRY(client_->resolve());
    thread_ = std::jthread([this] { io_.run(); });
    return {};
  }

  Backend::Cancel send(ClientRequest request, ClientSinks sinks) {
    auto number = std::make_shared<uint64_t>(0);  // used by the thread only
    asio::post(io_,
               [this, number, request = std::move(request), sinks = std::move(sinks)]() mutable {
                 *number = client_->send(std::move(request), std::move(sinks));
               });
    return [this, number] {
      asio::post(io_, [this, number] { client_->cancel(*number, "the call was cancelled"); });
    };
  }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<ResumingClient> client_;
  std::jthread thread_;
};

}  // namespace

Result<HttpClient::Headers> auth_headers(const std::string& api_key) {
  for (char c : api_key) {
    if (c < ' ' || c > '~') {
      return invalid_argument("the API key has a character that is not allowed in an HTTP header");
    }
  }
  HttpClient::Headers headers;
  if (!api_key.empty()) headers.emplace_back("Authorization", "Bearer " + api_key);
  return headers;
}

Result<Transport> http_transport(const std::string& url, const std::string& api_key) {
  auto http = std::make_shared<HttpThread>();
  TRY(http->start(url, TRY(auth_headers(api_key))));
  return [http](ClientRequest request, ClientSinks sinks) {
    return http->send(std::move(request), std::move(sinks));
  };
}

}  // namespace banyan
