#include "server/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <limits>
#include <new>

#include "base/error.h"

namespace banyan {
namespace {

// Describes and clears OpenSSL's error queue.
std::string last_failure() {
  std::array<char, 256> text = {};
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown reason";
  const char* reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

int length_of(size_t bytes) {
  return static_cast<int>(std::min<size_t>(bytes, std::numeric_limits<int>::max()));
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::load(const std::string& certificate_file,
                                                     const std::string& key_file) {
  ERR_clear_error();
  SSL_CTX* made = SSL_CTX_new(TLS_server_method());
  if (made == nullptr) return exhausted("cannot start TLS: {}", last_failure());
  std::unique_ptr<TlsContext> context(new TlsContext(made));
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                             SSL_MODE_RELEASE_BUFFERS);
  // HTTP messages carry their length, so a truncated one is detected without a close_notify.
  SSL_CTX_set_options(made, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION |
                                SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (SSL_CTX_use_certificate_chain_file(made, certificate_file.c_str()) != 1) {
    return invalid_argument("--ssl-certfile {}: {}; give a file of certificates in PEM",
                            certificate_file, last_failure());
  }
  if (SSL_CTX_use_PrivateKey_file(made, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return invalid_argument("--ssl-keyfile {}: {}; give the key of --ssl-certfile {} in PEM",
                            key_file, last_failure(), certificate_file);
  }
  if (SSL_CTX_check_private_key(made) != 1) {
    return invalid_argument("--ssl-keyfile {} is not the key of --ssl-certfile {}", key_file,
                            certificate_file);
  }
  return context;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

TlsChannel::TlsChannel(const TlsContext& context, int socket) : ssl_(SSL_new(context.context_)) {
  if (ssl_ == nullptr) throw std::bad_alloc();
  SSL_set_fd(ssl_, socket);
  SSL_set_accept_state(ssl_);
}

TlsChannel::~TlsChannel() {
  SSL_free(ssl_);
}

bool TlsChannel::is_ready() const {
  return SSL_is_init_finished(ssl_) == 1;
}

size_t TlsChannel::result_of(int returned, boost::system::error_code& ec) {
  namespace errors = boost::asio::error;
  ec = {};
  if (returned > 0) return static_cast<size_t>(returned);
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      wants_ = Wants::kRead;
      ec = errors::would_block;
      return 0;
    case SSL_ERROR_WANT_WRITE:
      wants_ = Wants::kWrite;
      ec = errors::would_block;
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      ec = errors::eof;
      return 0;
    default:
      plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
      broken_ = true;
      ec = errors::connection_aborted;
      return 0;
  }
}

size_t TlsChannel::read_some(std::span<char> to, boost::system::error_code& ec) {
  ERR_clear_error();
  return result_of(SSL_read(ssl_, to.data(), length_of(to.size())), ec);
}

size_t TlsChannel::write_some(std::span<const char> from, boost::system::error_code& ec) {
  ERR_clear_error();
  return result_of(SSL_write(ssl_, from.data(), length_of(from.size())), ec);
}

void TlsChannel::close() {
  ERR_clear_error();
  if (is_ready() && !broken_) SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace banyan
