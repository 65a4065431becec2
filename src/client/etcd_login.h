#pragma once

#include <string>

namespace banyan {

// For an etcd that has users. The password is the file's first line, which is read whenever it is
// needed.
struct EtcdLogin {
  std::string user, password_file;  // empty: none
};

}  // namespace banyan
