// The list of workers in etcd: one key per worker, with a lease that the worker renews. Workers
// write, routers read.
//
// A router lists the keys and watches them for changes. It lists them again every few seconds, and
// whenever it missed a change. While etcd is unavailable, the last list holds: a worker's own
// connection shows sooner whether it lives. Both classes belong to the I/O thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/etcd_client.h"
#include "server/etcd_config.h"

namespace banyan {

// Registers this worker for routers until it leaves.
class WorkerRegistration {
 public:
  // Errors: an invalid endpoint.
  static Result<std::unique_ptr<WorkerRegistration>> start(boost::asio::io_context& io,
                                                           const EtcdConfig& config);
  ~WorkerRegistration();
  // The worker takes no more requests: routers are notified at once. The io_context has nothing
  // left to do once etcd has answered, or after two seconds without an answer.
  void leave();

 private:
  WorkerRegistration(boost::asio::io_context& io, const EtcdConfig& config);
  void step();
  void renewed(const Status& outcome);
  void wait(double seconds);

  const EtcdConfig config_;
  std::unique_ptr<EtcdClient> etcd_;
  boost::asio::steady_timer timer_;
  int64_t lease_ = 0;  // 0: none
  bool told_ = false;  // the log says that etcd is unavailable
  bool left_ = false;
};

// Follows the list of workers.
class WorkerMembership {
 public:
  struct Sinks {
    std::function<void(const std::string& url)> joined, left;
  };
  static Result<std::unique_ptr<WorkerMembership>> start(boost::asio::io_context& io,
                                                         const EtcdConfig& config, Sinks sinks);
  ~WorkerMembership();
  void stop();

 private:
  WorkerMembership(boost::asio::io_context& io, const EtcdConfig& config, Sinks sinks);
  void list();
  void take(const Result<EtcdClient::Listing>& listing);
  void change(const EtcdClient::Change& change);
  void set(const std::string& key, const std::string& url);
  void remove(const std::string& key);

  const EtcdConfig config_;
  Sinks sinks_;
  std::unique_ptr<EtcdClient> etcd_;
  boost::asio::steady_timer timer_;
  std::map<std::string, std::string> members_;  // URL by key
  bool watching_ = false;
  bool told_ = false;  // the log says that etcd is unavailable
};

}  // namespace banyan
