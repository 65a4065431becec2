// TLS for a connection: OpenSSL over its non-blocking socket.
//
// A channel reads and writes like a socket. On would_block the caller waits for the readiness that
// wants() names. The handshake happens within the first reads. A context is immutable and must
// outlive its channels; a channel belongs to one thread.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "banyan/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace banyan {

class TlsContext {
 public:
  // Loads PEM files: a certificate with its chain, and its key without a password. Errors name the
  // file that cannot be read, or say that the key does not match.
  static Result<std::unique_ptr<TlsContext>> load(const std::string& certificate_file,
                                                  const std::string& key_file);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsChannel;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}

  ssl_ctx_st* context_;
};

class TlsChannel {
 public:
  // Does not own the socket.
  TlsChannel(const TlsContext& context, int socket);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  enum class Wants { kRead, kWrite };

  // Transfers at most one record. Returns 0 bytes with would_block, eof, or another error; after an
  // error the channel is unusable.
  size_t read_some(std::span<char> to, boost::system::error_code& ec);
  size_t write_some(std::span<const char> from, boost::system::error_code& ec);
  Wants wants() const { return wants_; }  // after would_block

  bool is_ready() const;                              // the handshake is done
  bool is_plain_http() const { return plain_http_; }  // the client sent plain HTTP
  void close();  // tells the client that nothing more will be written

 private:
  size_t result_of(int returned, boost::system::error_code& ec);

  ssl_st* ssl_;
  Wants wants_ = Wants::kRead;
  bool plain_http_ = false, broken_ = false;
};

}  // namespace banyan
