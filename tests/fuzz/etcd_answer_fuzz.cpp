// Any answer of etcd to a router or a worker: keys, a lease, changes, or an error. Base64 of the
// input is read as it was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/base64.h"
#include "base/check.h"
#include "client/etcd_answers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)banyan::read_etcd_changes(text);
  banyan::Json key = {{"kvs", {{{"key", banyan::to_base64(text)}}}}, {"header", {{"revision", 1}}}};
  CHECK(banyan::read_etcd_listing(key)->entries.at(0).key == text);
  banyan::Result<banyan::Json> answer = banyan::parse_json(text, "answer");
  if (!answer) return 0;
  (void)banyan::read_etcd_listing(*answer);
  (void)banyan::read_etcd_lease(*answer);
  (void)banyan::read_etcd_renewal(*answer);
  return 0;
}
