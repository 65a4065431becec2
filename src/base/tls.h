// TLS for a connection: OpenSSL over its non-blocking socket.
//
// A channel reads and writes like a socket. On would_block the caller waits for the readiness that
// wants() names. The handshake happens within the first reads and writes. A channel belongs to one
// thread.
//
// A context reloads its files when they change, as they do when certificates are renewed. New
// channels use the new files; open ones keep theirs. If the new files cannot be loaded, new
// channels use the last good ones, and the log says why. The machine's own authorities are read
// only once. Any thread may open channels.
#pragma once

#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace banyan {

// PEM files of one end. A certificate comes with its chain, and its key has no password.
struct TlsFiles {
  std::string certificate, key;          // this end's identity; empty: none
  std::vector<std::string> authorities;  // trusted to sign the other end's; empty: the machine's
  // The options that name them, for errors.
  std::string_view certificate_option = "--ssl-certfile", key_option = "--ssl-keyfile",
                   authorities_option = "--ssl-ca-certs";

  bool empty() const { return certificate.empty() && key.empty() && authorities.empty(); }
  // kInvalidArgument: a certificate without a key, or a key without a certificate.
  Status validate() const;
};

enum class ClientCertificate { kIgnored, kOptional, kRequired };

class TlsContext {
 public:
  // Requires a certificate. Errors name the file that cannot be read, or say that the key does not
  // match. Unless they are ignored, clients' certificates must be signed by `authorities`.
  static Result<std::unique_ptr<TlsContext>> for_server(
      const TlsFiles& files, ClientCertificate clients = ClientCertificate::kIgnored);
  // The server's certificate must be signed by `authorities`, or if there are none, by one that
  // this machine trusts (the environment variables SSL_CERT_FILE and SSL_CERT_DIR name others).
  static Result<std::unique_ptr<TlsContext>> for_client(const TlsFiles& files = {});
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsChannel;
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  using Loaded = std::unique_ptr<ssl_ctx_st, Free>;
  using Load = std::function<Result<Loaded>(const TlsFiles&)>;
  using SteadyTime = std::chrono::steady_clock::time_point;

  TlsContext(TlsFiles files, Load load) : files_(std::move(files)), load_(std::move(load)) {}
  static Result<std::unique_ptr<TlsContext>> open(const TlsFiles& files, Load load);
  static Result<Loaded> load_files(const TlsFiles& files, bool serves);
  static Result<Loaded> load_server(const TlsFiles& files, ClientCertificate clients);
  static Result<Loaded> load_client(const TlsFiles& files);
  std::string stamp() const;
  void refresh() const;
  ssl_st* new_channel() const;

  const TlsFiles files_;
  const Load load_;
  mutable std::mutex mutex_;
  mutable Loaded loaded_;
  mutable std::string stamp_;   // of the files that are loaded
  mutable std::string failed_;  // of those that could not be
  mutable SteadyTime looked_;   // at the stamp
};

class TlsChannel {
 public:
  // The server side. Does not own the socket.
  TlsChannel(const TlsContext& context, int socket);
  // The client side. The server's certificate must be for this name or address.
  TlsChannel(const TlsContext& context, int socket, const std::string& server);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  enum class Wants { kRead, kWrite };

  // Transfers at most one record. Returns 0 bytes with would_block, eof, or another error; after an
  // error the channel is unusable.
  size_t read_some(std::span<char> to, boost::system::error_code& ec);
  size_t write_some(std::span<const char> from, boost::system::error_code& ec);
  Wants wants() const { return wants_; }  // after would_block

  bool is_ready() const;                                   // the handshake is done
  bool is_plain_http() const { return plain_http_; }       // the client sent plain HTTP
  const std::string& failure() const { return failure_; }  // after an error, if TLS has a reason
  void close();  // notifies the other end that nothing more will be written

 private:
  size_t result_of(int returned, boost::system::error_code& ec);

  ssl_st* ssl_;
  Wants wants_ = Wants::kRead;
  bool plain_http_ = false, broken_ = false;
  std::string failure_;
};

}  // namespace banyan
