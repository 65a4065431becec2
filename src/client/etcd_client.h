// A few calls of etcd's v3 API, through its HTTP/JSON gateway: keys below a prefix, changes of
// them, and leases, whose keys go when nobody renews them.
//
// By https where the endpoint says so. Of several endpoints the one
// that answered last is asked; where it fails, the next call asks the next. Callbacks run on the
// io_context's thread, never from within the call that names them. The client must outlive the
// io_context's last handler.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "client/http_client.h"

namespace banyan {

class EtcdClient {
 public:
  struct Entry {
    std::string key, value;
  };
  struct Listing {
    int64_t revision = 0;  // of the store, when this was so
    std::vector<Entry> entries;
  };
  struct Change {
    bool removed = false;
    Entry entry;  // without a value if it was removed
  };
  struct WatchSinks {
    std::function<void(std::span<const Change> changes)> changed;
    // The watch is over; what happened since must be listed again.
    std::function<void(const std::string& why)> ended;
  };

  // Errors: a URL, a file. `endpoints`: at least one, as http://127.0.0.1:2379.
  static Result<std::unique_ptr<EtcdClient>> open(boost::asio::io_context& io,
                                                  const std::vector<std::string>& endpoints,
                                                  const TlsFiles& files);
  ~EtcdClient();

  void list(const std::string& prefix, std::function<void(Result<Listing>)> done);
  // Changes of keys with that prefix after the revision. One at a time.
  void watch(const std::string& prefix, int64_t after_revision, WatchSinks sinks);

  // A lease of so many seconds; its number.
  void grant(int64_t ttl_s, std::function<void(Result<int64_t>)> done);
  // kNotFound: the lease has run out.
  void keep_alive(int64_t lease, std::function<void(Status)> done);
  void put(const std::string& key, const std::string& value, int64_t lease,
           std::function<void(Status)> done);
  void revoke(int64_t lease, std::function<void(Status)> done);

  // Ends what is running; nothing is called any more.
  void stop();

 private:
  struct Call;
  struct Watch;

  explicit EtcdClient(boost::asio::io_context& io) : io_(io) {}
  HttpClient& server() { return *servers_[server_]; }
  void call(std::string path, const Json& body, std::function<void(Result<Json>)> done);
  void take_watch_line(Watch& watch, std::string_view line);
  void end_watch(const std::string& why);

  boost::asio::io_context& io_;
  std::vector<std::unique_ptr<HttpClient>> servers_;
  size_t server_ = 0;  // that is asked
  std::shared_ptr<Watch> watch_;
  bool stopped_ = false;
};

}  // namespace banyan
