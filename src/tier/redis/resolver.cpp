#include "tier/redis/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <utility>

namespace banyan {
namespace {

Resolver::Found look_up(const std::string& host, int flags) {
  addrinfo hints{}, *first = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  if (int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &first); error != 0) {
    return {.trouble = ::gai_strerror(error)};
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, ::freeaddrinfo);
  Resolver::Found found;
  for (addrinfo* info = first; info != nullptr; info = info->ai_next) {
    std::array<char, 64> text;
    int error = ::getnameinfo(info->ai_addr, info->ai_addrlen, text.data(), text.size(), nullptr, 0,
                              NI_NUMERICHOST);
    if (error == 0) found.addresses.emplace_back(text.data());
  }
  if (found.addresses.empty()) found.trouble = "no address";
  return found;
}

}  // namespace

Resolver::Found Resolver::find(std::chrono::steady_clock::time_point deadline) {
  if (Found number = look_up(host_, AI_NUMERICHOST); !number.addresses.empty()) return number;
  if (!attempt_.valid()) {
    std::packaged_task<Found()> task([host = host_] { return look_up(host, 0); });
    attempt_ = task.get_future();
    std::thread([task = std::move(task)]() mutable { task(); }).detach();
  }
  if (attempt_.wait_until(deadline) != std::future_status::ready) {
    return {.trouble = "its name was not resolved in time", .timed_out = true};
  }
  return std::exchange(attempt_, {}).get();
}

}  // namespace banyan
