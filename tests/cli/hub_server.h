// A Hugging Face hub with one model, acme/nano, that can drop connections and send wrong data.
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "support/servers/loopback_server.h"

namespace banyan::test {

struct HubBehaviour {
  size_t cut_after = 0;                 // bytes of a body after which a connection ends; 0: never
  std::atomic<int64_t> cuts = 1 << 30;  // how many connections are cut
  bool ranges = true;                   // else every body is whole
  bool wrong_bytes = false;             // the last byte of weights is another one
  std::string etag;                     // in place of the right one
  std::string range;                    // Content-Range in place of the right one
  int status = 200;                     // of the listing
  std::string error_code;               // X-Error-Code
  std::string commit = std::string(40, 'c');
};

class HubServer {
 public:
  ~HubServer() { server_.stop(); }

  std::string url() const { return server_.url(); }
  std::map<std::string, std::string> files;
  HubBehaviour behaviour;
  std::atomic<int64_t> body_bytes = 0;

  // "GET /path bytes=0-9 Bearer x", one for each request.
  std::vector<std::string> requests() {
    std::scoped_lock lock(mutex_);
    return requests_;
  }

  static std::string sha256(const std::string& bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
  }

 private:
  std::string listing() const {
    std::string names;
    for (const auto& [name, body] : files) {
      names += fmt::format(R"({}{{"rfilename": "{}"}})", names.empty() ? "" : ", ", name);
    }
    return fmt::format(R"({{"sha": "{}", "siblings": [{}]}})", behaviour.commit, names);
  }

  void answer(int client, const std::string& head) {
    std::string method = head.substr(0, head.find(' '));
    size_t begin = method.size() + 1;
    std::string path = head.substr(begin, head.find(' ', begin) - begin);
    std::string range = header_field(head, "Range");
    {
      std::scoped_lock lock(mutex_);
      requests_.push_back(method + " " + path + " " + range + " " +
                          header_field(head, "Authorization"));
    }
    const HubBehaviour& b = behaviour;
    if (path.starts_with("/api/models/")) {
      std::string error = b.error_code.empty() ? "" : "X-Error-Code: " + b.error_code + "\r\n";
      std::string body = b.status == 200 ? listing() : "{}";
      send_all(client, fmt::format("HTTP/1.1 {} X\r\n{}Content-Length: {}\r\n"
                                   "Connection: close\r\n\r\n{}",
                                   b.status, error, body.size(), body));
      return;
    }
    send_file(client, method, name_in(path), range);
  }

  // What follows /resolve/COMMIT/.
  static std::string name_in(const std::string& path) {
    size_t at = path.find("/resolve/");
    return at == path.npos ? "" : path.substr(path.find('/', at + 9) + 1);
  }

  void send_file(int client, const std::string& method, const std::string& name,
                 const std::string& range) {
    auto found = files.find(name);
    if (found == files.end()) {
      send_all(client, "HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    std::string body = found->second;
    std::string etag = behaviour.etag.empty() ? sha256(body) : behaviour.etag;
    size_t all = body.size();
    if (behaviour.wrong_bytes && name.ends_with(".safetensors")) body.back() ^= 1;
    std::string status = "200 OK", more;
    if (behaviour.ranges && range.starts_with("bytes=")) {
      size_t dash = range.find('-');
      size_t first = std::stoull(range.substr(6)), last = std::stoull(range.substr(dash + 1));
      body = body.substr(first, last - first + 1);
      status = "206 Partial";
      std::string right = fmt::format("bytes {}-{}/{}", first, last, all);
      more =
          fmt::format("Content-Range: {}\r\n", behaviour.range.empty() ? right : behaviour.range);
    }
    std::string head = fmt::format(
        "HTTP/1.1 {}\r\nX-Linked-Etag: \"{}\"\r\nX-Linked-Size: {}\r\nContent-Length: {}\r\n{}"
        "Connection: close\r\n\r\n",
        status, etag, all, body.size(), more);
    bool cut = behaviour.cut_after > 0 && body.size() > behaviour.cut_after && behaviour.cuts > 0;
    if (method == "HEAD") return send_all(client, head);
    if (cut) --behaviour.cuts;
    if (cut) body.resize(behaviour.cut_after);
    body_bytes += static_cast<int64_t>(body.size());
    send_all(client, head + body);
  }

  std::mutex mutex_;
  std::vector<std::string> requests_;
  LoopbackServer server_{[this](int client, const std::string& head, const std::string&) {
    answer(client, head);
    return false;
  }};
};

}  // namespace banyan::test
