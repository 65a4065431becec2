// TLS: valid and invalid certificates, and clients without TLS.
#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "api/running_server.h"
#include "api/server_fixture.h"
#include "base/file.h"
#include "client/http_client.h"
#include "support/models/tiny_model.h"
#include "support/servers/certificate.h"
#include "support/servers/etcd_server.h"

namespace banyan::tls_test {
namespace {

using test::Certificate;

class Tls : public test::ServerTest {
 protected:
  void use(const std::string& certificate_file, const std::string& key_file) {
    config.ssl.certificate = certificate_file;
    config.ssl.key = key_file;
  }
  std::string refusal() {
    Server server(config);
    Status listening = server.listen();
    return listening ? "" : listening.error().message;
  }
  // Everything that the server answers to `request`, which says Connection: close. Trusts only
  // `certificate`; empty: the handshake failed.
  std::string ask(const Certificate& certificate, const std::string& request) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_load_verify_file(context, certificate.certificate_file.c_str());
    BIO* bio = BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(port())).c_str());
    std::string answer;
    if (BIO_do_connect(bio) == 1 && BIO_do_handshake(bio) == 1) {
      BIO_write(bio, request.data(), static_cast<int>(request.size()));
      char buffer[4096];
      int bytes = 0;
      while ((bytes = BIO_read(bio, buffer, sizeof buffer)) > 0) {
        answer.append(buffer, static_cast<size_t>(bytes));
      }
    }
    BIO_free_all(bio);
    SSL_CTX_free(context);
    return answer;
  }

  // The result of our client's request to the server, with these files.
  Result<HttpClient::Answer> fetch(const TlsFiles& files, ClientRequest request,
                                   const std::string& host = "127.0.0.1") {
    boost::asio::io_context io(1);
    std::string url = fmt::format("https://{}:{}", host, port());
    HttpClient client(io, parse_server_url(url).value(), {}, TlsContext::for_client(files).value());
    return client.fetch(std::move(request));
  }
  std::string failure(const TlsFiles& files, const std::string& host = "127.0.0.1") {
    auto answer = fetch(files, {.method = "GET", .path = "/health"}, host);
    return answer ? "" : answer.error().message;
  }

  test::TemporaryFolder folder_;
  Certificate own_{folder_, "own"}, other_{folder_, "other"};
};

TEST_F(Tls, AnswersAndStreamsToThoseWhoTrustTheCertificate) {
  use(own_.certificate_file, own_.key_file);
  start();
  EXPECT_TRUE(server().address().starts_with("https://")) << server().address();
  std::string close = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  std::string health = ask(own_, "GET /health" + close + "\r\n");
  EXPECT_TRUE(health.starts_with("HTTP/1.1 200")) << health;
  std::string stream = ask(own_, "GET /stream?tokens=5" + close + "\r\n");
  EXPECT_NE(stream.find("data: length"), stream.npos) << stream;
  // More than a TLS record and more than the system's buffer, in both directions.
  std::string body(300000, 'x');
  std::string echo = ask(own_, "POST /echo" + close + "Content-Length: 300000\r\n\r\n" + body);
  EXPECT_TRUE(echo.ends_with("\r\n\r\n300000")) << echo.substr(0, 200);
  std::string poured = ask(own_, "GET /pour?bytes=500000" + close + "\r\n");
  EXPECT_GT(poured.size(), 500000u);
  EXPECT_EQ(ask(other_, "GET /health" + close + "\r\n"), "");
  EXPECT_TRUE(back_to_base());
}

TEST_F(Tls, TellsPlainHttpThatItIsAnHttpsPort) {
  use(own_.certificate_file, own_.key_file);
  start();
  test::Response plain = get("/health");
  EXPECT_EQ(plain.status, 400);
  EXPECT_NE(plain.body.find("https://"), plain.body.npos) << plain.body;
  test::Client nonsense = client();
  nonsense.send("\x16\x03\x01\x02nonsense that is no handshake, whatever it says");
  nonsense.read_all();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Tls, SaysWhichFileIsWrong) {
  use(own_.certificate_file, other_.key_file);
  EXPECT_NE(refusal().find("--ssl-keyfile " + other_.key_file), std::string::npos) << refusal();
  use(own_.key_file, own_.key_file);
  EXPECT_NE(refusal().find("--ssl-certfile " + own_.key_file), std::string::npos) << refusal();
  use("none.crt", own_.key_file);
  EXPECT_NE(refusal().find("--ssl-certfile none.crt: No such file"), std::string::npos)
      << refusal();
  use(own_.certificate_file, "");
  EXPECT_NE(refusal().find("must be given together"), std::string::npos) << refusal();
  use(own_.certificate_file, own_.key_file);
  config.ssl_clients = ClientCertificate::kRequired;
  EXPECT_NE(refusal().find("--ssl-ca-certs"), std::string::npos) << refusal();
  config.ssl = {};
  EXPECT_NE(refusal().find("--ssl-cert-reqs"), std::string::npos) << refusal();
}

// A renewal: the file is replaced, as a link to another folder does it, then its key.
TEST_F(Tls, UsesRenewedCertificates) {
  Certificate used(folder_, "used");
  use(used.certificate_file, used.key_file);
  start();
  std::string health = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_NE(ask(used, health), "");
  Certificate old(folder_, "old");
  std::filesystem::copy_file(used.certificate_file, old.certificate_file,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(own_.certificate_file, used.certificate_file);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // is looked at once a second
  EXPECT_NE(ask(old, health), "") << "the key is not there yet";
  std::filesystem::rename(own_.key_file, used.key_file);
  auto renewed = [&](const auto&) { return !ask(used, health).empty(); };
  EXPECT_TRUE(eventually(renewed));
  EXPECT_EQ(ask(old, health), "");
  EXPECT_TRUE(back_to_base());
}

TEST_F(Tls, OurClientTrustsWhomItIsToldTo) {
  use(own_.certificate_file, own_.key_file);
  start();
  TlsFiles trusts{.authorities = {other_.certificate_file, own_.certificate_file}};
  std::string body(3 << 20, 'x');
  EXPECT_EQ(fetch(trusts, {.path = "/echo", .body = body}).value().body, "3145728");
  EXPECT_GE(fetch(trusts, {.method = "GET", .path = "/pour?bytes=500000"}).value().body.size(),
            500'000U);
  EXPECT_EQ(failure(trusts, "localhost"), "");
  EXPECT_EQ(failure({.authorities = {other_.certificate_file}}), "TLS: self-signed certificate");
  EXPECT_EQ(failure({}), "TLS: self-signed certificate");
  EXPECT_TRUE(back_to_base());
}

TEST_F(Tls, OurClientLooksForTheNameThatItAskedFor) {
  Certificate foreign(folder_, "foreign", "DNS:a.example,IP:10.0.0.1");
  use(foreign.certificate_file, foreign.key_file);
  start();
  EXPECT_EQ(failure({.authorities = {foreign.certificate_file}}), "TLS: IP address mismatch");
  EXPECT_EQ(failure({.authorities = {foreign.certificate_file}}, "localhost"),
            "TLS: hostname mismatch");
}

TEST_F(Tls, OurClientUsesAConnectionAgain) {
  use(own_.certificate_file, own_.key_file);
  config.idle_timeout_s = 0.2;
  start();
  boost::asio::io_context io(1);
  std::string url = fmt::format("https://127.0.0.1:{}", port());
  HttpClient client(io, parse_server_url(url).value(), {},
                    TlsContext::for_client({.authorities = {own_.certificate_file}}).value());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.fetch({.method = "GET", .path = "/count?tokens=3"}).value().status, 200);
    EXPECT_EQ(client.connections(), 1U);
  }
  EXPECT_TRUE(back_to_base()) << "the server has closed it";
  EXPECT_EQ(client.fetch({.method = "GET", .path = "/health"}).value().status, 200);
}

TEST_F(Tls, ClientsProveThemselvesWhereTheyMust) {
  config.ssl = own_.towards(other_);
  config.ssl_clients = ClientCertificate::kRequired;
  start();
  EXPECT_EQ(failure(other_.towards(own_)), "");
  // The server's alert may be lost when it resets the connection.
  EXPECT_NE(failure({.authorities = {own_.certificate_file}}), "");
  Certificate third(folder_, "third");
  EXPECT_NE(failure(third.towards(own_)), "");
  auto answer = fetch(other_.towards(own_), {.method = "GET", .path = "/health"});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(back_to_base());
}

// A router, workers and etcd that all authenticate to each other.
TEST_F(Tls, ARouterAndItsWorkers) {
  REQUIRE_ETCD();
  TlsFiles etcd_files = own_.towards(other_);  // its HTTP gateway is a client of its own
  etcd_files.authorities = {folder_.path() + "/both.crt"};
  std::ofstream(etcd_files.authorities[0])
      << read_file(own_.certificate_file).value() << read_file(other_.certificate_file).value();
  test::EtcdServer etcd(etcd_files);
  EngineConfig engine = test::tiny_model(folder_);
  engine.state_digest = true;
  EtcdConfig membership{.endpoints = {etcd.url()}, .cluster = "tls"};
  membership.tls = other_.towards(own_);
  ServerConfig worker{.port = 0, .etcd = membership};
  worker.ssl = own_.towards(other_);
  worker.ssl_clients = ClientCertificate::kRequired;
  RouteConfig route{.etcd = membership, .tls = other_.towards(own_), .health_interval_s = 0.02};
  test::RunningServer first(engine, worker), second(engine, worker);
  EXPECT_TRUE(first.url().starts_with("https://"));
  test::RunningServer router(engine, ServerConfig{.port = 0}, route);
  ASSERT_TRUE(router.reaches("banyan:router_announcing_workers", 2));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(router.get("/count?tokens=20&prompt=300").status, 200);
  EXPECT_GT(router.figure("banyan:router_cached_tokens_total"), 0);
}

}  // namespace
}  // namespace banyan::tls_test
