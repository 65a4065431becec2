#include "server/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <future>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "server/http/connection.h"
#include "server/route/membership.h"
#include "server/route/remote_generator.h"
#include "server/service.h"

namespace banyan {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // when out of file descriptors
constexpr int kRefusedMax = 64;            // connections above the limit that get a 503
constexpr int64_t kOtherDescriptors = 64;  // the model's files, the log, the engine
constexpr double kCancelGrace_s = 2;       // for cancelled streams to end

SteadyClock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

// Lowers the connection limit to what the descriptor limit allows.
void limit_connections(ServerConfig& config) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  int64_t room = static_cast<int64_t>(limit.rlim_cur) - kOtherDescriptors - kRefusedMax;
  if (room >= config.connections_max) return;
  spdlog::warn("{} descriptors allow {} connections instead of {}; see ulimit -n", limit.rlim_cur,
               std::max<int64_t>(1, room), config.connections_max);
  config.connections_max = narrow<int>(std::max<int64_t>(1, room));
}

ServerConfig limited(ServerConfig config) {
  limit_connections(config);
  return config;
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerConfig config, std::span<const Route> routes)
      : service_(limited(std::move(config)),
                 [this](std::move_only_function<void()> f) { post(std::move(f)); }),
        hub_(io_, service_, routes) {
    hub_.request_id_key = std::random_device{}();
    service_.on_connection_use([this]() -> Service::ConnectionUse {
      return {.body_bytes = hub_.body_bytes, .buffer_bytes = hub_.buffer_bytes()};
    });
    const ServerConfig& c = service_.config();
    double shortest_s =
        std::min({c.header_timeout_s, c.body_timeout_s, c.idle_timeout_s, c.write_timeout_s,
                  c.linger_timeout_s, c.drain_timeout_s, c.grammar_timeout_s});
    tick_ = duration_of(std::clamp(shortest_s / 4, 0.01, 0.5));
  }

  Status listen();
  int port() const { return port_; }
  std::string address() const;
  void attach(Result<std::unique_ptr<Llm>> llm, const EngineConfig& config);
  Status run(bool handle_signals);
  void leave();
  Counts counts();
  void post(std::move_only_function<void()> f) { asio::post(io_, std::move(f)); }

  std::function<void()> on_ready;
  std::optional<RouteConfig> route;  // absent: the engine is in this process
  void set_puller(ModelPuller puller) { service_.set_puller(std::move(puller)); }

 private:
  Status attach_now(std::unique_ptr<Llm> llm, const EngineConfig& config);
  void accept();
  void on_accept(error_code ec, Socket socket);
  void wait_signal();
  void tick();
  void drain();
  bool drained() const;
  void end();

  asio::io_context io_{1};
  Service service_;
  ConnectionHub hub_;
  tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_timer_{io_}, tick_timer_{io_}, drain_timer_{io_};
  asio::signal_set signals_{io_};
  SteadyClock::duration tick_;
  int port_ = 0;
  bool leaving_ = false, draining_ = false, cancelled_ = false, ended_ = false;
  SteadyTime cancel_at_, end_at_;
  Status outcome_;
  std::unique_ptr<WorkerRegistration> registration_;  // null: not registered
};

Status Server::Impl::listen() {
  const ServerConfig& config = service_.config();
  TRY(config.validate());
  TRY(service_.open_publisher());
  if (!config.ssl.certificate.empty()) {
    hub_.tls = TRY(TlsContext::for_server(config.ssl, config.ssl_clients));
  }
  error_code ec;
  tcp::resolver resolver(io_);
  auto found =
      resolver.resolve(config.host, std::to_string(config.port), tcp::resolver::passive, ec);
  if (ec || found.empty()) {
    return invalid_argument("--host {}: {}", config.host, ec.message());
  }
  // "localhost" has two addresses, and most clients try IPv4 first.
  auto v4 = std::ranges::find_if(
      found, [](const auto& e) { return e.endpoint().protocol() == tcp::v4(); });
  tcp::endpoint endpoint = (v4 != found.end() ? v4 : found.begin())->endpoint();
  acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(tcp::acceptor::max_listen_connections, ec);
  if (!ec) acceptor_.non_blocking(true, ec);
  if (ec)
    return io_error("cannot listen on {} port {}: {}", config.host, config.port, ec.message());
  tcp::endpoint bound = acceptor_.local_endpoint(ec);
  port_ = bound.port();
  hub_.origins.emplace(config.host, bound.address(), config.allowed_hosts, config.allowed_origins);
  return {};
}

std::string Server::Impl::address() const {
  const std::string& host = service_.config().host;
  bool bare_v6 = host.find(':') != host.npos;
  return fmt::format("{}://{}{}{}:{}", hub_.tls ? "https" : "http", bare_v6 ? "[" : "", host,
                     bare_v6 ? "]" : "", port_);
}

void Server::Impl::attach(Result<std::unique_ptr<Llm>> llm, const EngineConfig& config) {
  post([this, llm = std::move(llm), config]() mutable {
    if (draining_) return;
    if (!llm) {
      outcome_ = std::unexpected(llm.error());
      return end();
    }
    Status attached = attach_now(*std::move(llm), config);
    if (!attached) {
      outcome_ = attached;
      return end();
    }
    if (on_ready) on_ready();
  });
}

Status Server::Impl::attach_now(std::unique_ptr<Llm> llm, const EngineConfig& config) {
  if (!route) {
    service_.attach(std::move(llm), config);
    EtcdConfig etcd = service_.config().etcd;
    if (!etcd.used()) return {};
    if (etcd.advertise_url.empty()) etcd.advertise_url = address();
    registration_ = TRY(WorkerRegistration::start(io_, etcd));
    return {};
  }
  auto generator = TRY(RemoteGenerator::open(
      io_, *route, [this](const StepReport& report) { service_.on_step(report); }));
  service_.attach(std::move(llm), config, std::move(generator));
  return {};
}

Status Server::Impl::run(bool handle_signals) {
  if (handle_signals) {
    error_code ignored;
    signals_.add(SIGTERM, ignored);
    signals_.add(SIGINT, ignored);
    wait_signal();
  }
  accept();
  tick();
  while (true) {
    try {
      io_.run();
      break;
    } catch (const std::exception& e) {  // a handler ran out of memory; other requests continue
      spdlog::error("unhandled exception in the I/O thread (continuing): {}", e.what());
    }
  }
  return outcome_;
}

void Server::Impl::wait_signal() {
  signals_.async_wait([this](error_code ec, int signal) {
    if (ec) return;
    bool loading = service_.state() == Service::State::kLoading;
    if (leaving_ || loading) std::_Exit(128 + signal);
    spdlog::warn(
        "received signal {}: draining {} running requests; a second signal exits immediately",
        signal, hub_.exchanges_open);
    wait_signal();  // must come first: an idle server ends within leave(), and then nothing may be
                    // waiting
    leave();
  });
}

// --- accepting ---

void Server::Impl::accept() {
  acceptor_.async_accept(io_, [this](error_code ec, Socket socket) {
    if (ended_) return;
    try {
      on_accept(ec, std::move(socket));
    } catch (const std::exception& e) {  // no memory for this client; the next may succeed
      spdlog::error("cannot accept a client: {}", e.what());
      accept();
    }
  });
}

void Server::Impl::on_accept(error_code ec, Socket socket) {
  // Usually out of file descriptors; in any case do not spin.
  if (ec && ec != asio::error::connection_aborted) {
    spdlog::warn("cannot accept a connection: {}; retrying in 100 ms", ec.message());
    accept_timer_.expires_after(kAcceptPause);
    return accept_timer_.async_wait([this](error_code) {
      if (!ended_) accept();
    });
  }
  if (!ec) {
    int64_t beyond = std::ssize(hub_.open) - service_.config().connections_max;
    if (beyond < kRefusedMax) {
      auto connection = std::make_shared<Connection>(hub_, std::move(socket), beyond >= 0);
      hub_.open.insert(connection);
      connection->start();
    }
  }
  accept();
}

void Server::Impl::tick() {
  if (ended_) return;
  SteadyTime now = SteadyClock::now();
  std::vector<std::shared_ptr<Connection>> all(hub_.open.begin(), hub_.open.end());
  for (const auto& connection : all) connection->check_deadline(now);
  service_.tick(now);
  if (draining_) {
    if (drained() || (cancelled_ && now >= end_at_)) return end();
    if (!cancelled_ && now >= cancel_at_) {
      spdlog::warn("{} requests did not finish in time and are cancelled", hub_.exchanges_awaited);
      service_.abort_all();
      cancelled_ = true;
      end_at_ = now + duration_of(std::min(kCancelGrace_s, service_.config().drain_timeout_s));
    }
  }
  tick_timer_.expires_after(
      draining_ ? std::min<SteadyClock::duration>(tick_, std::chrono::milliseconds(20)) : tick_);
  tick_timer_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
}

// --- shutdown ---

// Probes and routers are notified first, so that no more requests come when drain() refuses them.
void Server::Impl::leave() {
  if (leaving_ || ended_) return;
  leaving_ = true;
  service_.leave();
  if (registration_) registration_->leave();
  if (service_.config().drain_delay_s == 0) return drain();
  drain_timer_.expires_after(duration_of(service_.config().drain_delay_s));
  drain_timer_.async_wait([this](error_code ec) {
    if (!ec) drain();
  });
}

void Server::Impl::drain() {
  if (ended_) return;
  draining_ = true;
  service_.drain();
  // Clients may still connect: requests in progress delay shutdown, and probes need to see 503
  // meanwhile.
  hub_.begin_drain();
  if (drained()) return end();
  cancel_at_ = SteadyClock::now() + duration_of(service_.config().drain_timeout_s);
}

bool Server::Impl::drained() const {
  return hub_.exchanges_awaited == 0;
}

void Server::Impl::end() {
  if (std::exchange(ended_, true)) return;
  error_code ignored;
  acceptor_.close(ignored);
  signals_.cancel(ignored);
  accept_timer_.cancel();
  tick_timer_.cancel();
  drain_timer_.cancel();
  if (registration_) registration_->leave();
  service_.stop();
  std::vector<std::shared_ptr<Connection>> all(hub_.open.begin(), hub_.open.end());
  for (const auto& connection : all) connection->cut("the server ends");
  // run() returns after the queued handlers, since nothing is waiting any more.
}

Server::Counts Server::Impl::counts() {
  std::promise<Counts> promise;
  post([&] {
    promise.set_value({std::ssize(hub_.open), hub_.exchanges_open, hub_.body_bytes,
                       static_cast<int64_t>(service_.grammars_waiting()), service_.engine_stats()});
  });
  return promise.get_future().get();
}

Server::Server(ServerConfig config, std::span<const Route> routes)
    : impl_(std::make_unique<Impl>(std::move(config), routes)) {}
Server::~Server() = default;

Status Server::listen() {
  return impl_->listen();
}
int Server::port() const {
  return impl_->port();
}
std::string Server::address() const {
  return impl_->address();
}
void Server::attach(Result<std::unique_ptr<Llm>> llm, const EngineConfig& config) {
  impl_->attach(std::move(llm), config);
}
Status Server::run(bool handle_signals) {
  return impl_->run(handle_signals);
}
void Server::use_workers(RouteConfig route) {
  impl_->route = std::move(route);
}
void Server::on_ready(std::function<void()> callback) {
  impl_->on_ready = std::move(callback);
}
void Server::on_pull(ModelPuller puller) {
  impl_->set_puller(std::move(puller));
}
void Server::drain() {
  impl_->post([this] { impl_->leave(); });
}
Server::Counts Server::counts() {
  return impl_->counts();
}

}  // namespace banyan
