// A few calls of etcd's v3 API, through its HTTP/JSON gateway: keys with a prefix, watches of their
// changes, and leases, which remove their keys unless they are renewed.
//
// Uses https if the endpoint does. Of several endpoints, the one that answered last is asked; if it
// fails, the next call asks the next one. Callbacks run on the io_context's thread, never from
// within the call that names them. The client must outlive the io_context's last handler.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "client/etcd_answers.h"
#include "client/etcd_login.h"
#include "client/http_client.h"

namespace banyan {

class EtcdClient {
 public:
  using Entry = EtcdEntry;
  using Listing = EtcdListing;
  using Change = EtcdChange;
  struct WatchSinks {
    std::function<void(std::span<const Change> changes)> changed;
    // The watch has ended; list the keys again to see what changed since.
    std::function<void(const std::string& why)> ended;
  };

  // Errors: an invalid URL, a file, or one without a password. `endpoints`: at least one, such as
  // http://127.0.0.1:2379.
  static Result<std::unique_ptr<EtcdClient>> open(boost::asio::io_context& io,
                                                  const std::vector<std::string>& endpoints,
                                                  const TlsFiles& files,
                                                  const EtcdLogin& login = {});
  ~EtcdClient();

  void list(const std::string& prefix, std::function<void(Result<Listing>)> done);
  // Watches keys with that prefix for changes after the revision. One watch at a time.
  void watch(const std::string& prefix, int64_t after_revision, WatchSinks sinks);

  // Takes a lease of this many seconds; the result is its number.
  void grant(int64_t ttl_s, std::function<void(Result<int64_t>)> done);
  // kNotFound: the lease has expired.
  void keep_alive(int64_t lease, std::function<void(Status)> done);
  void put(const std::string& key, const std::string& value, int64_t lease,
           std::function<void(Status)> done);
  void revoke(int64_t lease, std::function<void(Status)> done);

  // Ends all requests; no callback is called any more.
  void stop();

 private:
  struct Call;
  struct Watch;

  using Done = std::function<void(Result<Json>)>;
  struct Reply {
    Result<Json> answer;
    bool stranger = false;  // etcd does not know the user, or no longer
    bool open = false;      // it has no users
  };
  using Replied = std::function<void(Reply)>;

  EtcdClient(boost::asio::io_context& io, EtcdLogin login) : io_(io), login_(std::move(login)) {}
  HttpClient& server() { return *servers_[server_]; }
  HttpClient::Headers headers() const;
  void call(const std::string& path, const Json& body, Done done);
  void log_in(std::function<void(Status)> done);
  void send(const std::string& path, const Json& body, Replied done);
  void take_watch_line(Watch& watch, std::string_view line);
  void end_watch(const std::string& why);

  boost::asio::io_context& io_;
  const EtcdLogin login_;
  std::string token_;  // of the user, from etcd; empty: none yet
  Status refused_;     // why the last login failed; none is tried before:
  std::chrono::steady_clock::time_point log_in_after_;
  std::vector<std::unique_ptr<HttpClient>> servers_;
  size_t server_ = 0;  // the one that is asked
  std::shared_ptr<Watch> watch_;
  bool stopped_ = false;
};

}  // namespace banyan
