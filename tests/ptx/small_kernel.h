// Small kernels written by hand, for tests of the interpreter.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ptx/machine.h"

namespace banyan::ptx {

// A module with one entry, `test`, that has a pointer as its parameter (in %rd0; %r0 is the
// thread).
inline std::string small_kernel(std::string_view body, std::string_view shared = "") {
  return fmt::format(R"(.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry test(.param .u64 out)
{{
  .reg .pred %p<16>;
  .reg .b16 %rs<16>;
  .reg .b32 %r<64>;
  .reg .f32 %f<64>;
  .reg .b64 %rd<32>;
  .reg .f64 %fd<16>;
  {}
  ld.param.u64 %rd0, [out];
  cvta.to.global.u64 %rd0, %rd0;
  mov.u32 %r0, %tid.x;
  {}
  ret;
}}
)",
                     shared, body);
}

// Stores a register of 32 bits as the thread's output.
inline std::string output(std::string_view name) {
  return fmt::format(
      "mul.wide.u32 %rd31, %r0, 4; add.s64 %rd31, %rd0, %rd31; "
      "st.global.b32 [%rd31], {};",
      name);
}

// The text with the first `what` replaced; there must be one.
inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
  size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return text.replace(at, what.size(), by);
}

// The kernel's outputs: one of 32 bits for each thread of a block. As many follow them, which
// kernels may read.
inline std::vector<uint32_t> run_small(const std::string& text, Launch launch = {.threads = 32}) {
  Module module(text);
  std::vector<uint32_t> out(size_t{2} * launch.threads, 0xdeadbeef);
  launch.parameters = parameter_block(out.data());
  ptx::launch(module, "test", launch);
  out.resize(launch.threads);
  return out;
}

// What is wrong with a kernel for at least one seed of some; "" if nothing is.
inline std::string error_of(const std::string& text, Launch launch = {.threads = 32}) {
  for (launch.seed = 1; launch.seed <= 30; ++launch.seed) {
    try {
      run_small(text, launch);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return "";
}

inline void expect_error(const std::string& text, const char* expected,
                         Launch launch = {.threads = 32}) {
  std::string error = error_of(text, launch);
  EXPECT_NE(error.find(expected), error.npos) << "got: " << error;
}

}  // namespace banyan::ptx
