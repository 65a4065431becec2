// The rules of docs/ARCHITECTURE.md section 11 that can be checked line by line. Each rule is a
// function over one file, a test that the repository obeys it, and a test that it can fail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "tidy/source.h"

namespace banyan::tidy::tidy_test {
namespace {

constexpr size_t kFileLinesMax = 700;
constexpr size_t kColumnsMax = 100;

std::string at(const SourceFile& file, size_t index) {
  return fmt::format("{}:{}: ", file.path, index + 1);
}

// One finding for each line of `text` that `is_wrong`.
template <class Predicate>
Findings check_lines(const SourceFile& file, std::string_view text, std::string_view finding,
                     Predicate is_wrong) {
  Findings findings;
  std::vector<std::string_view> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (is_wrong(lines[i])) findings.push_back(at(file, i) + std::string(finding));
  }
  return findings;
}

Findings check_file_length(const SourceFile& file) {
  size_t lines = lines_of(file.text).size();
  if (lines <= kFileLinesMax) return {};
  return {fmt::format("{}: {} lines, the limit is {}", file.path, lines, kFileLinesMax)};
}

Findings check_columns(const SourceFile& file) {
  return check_lines(file, file.text, "more than 100 columns", [](std::string_view line) {
    // Bytes that continue a UTF-8 character take no column.
    auto columns = std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });
    return static_cast<size_t>(columns) > kColumnsMax;
  });
}

Findings check_pragma_once(const SourceFile& file) {
  if (!file.is_header()) return {};
  for (std::string_view line : lines_of(file.code)) {
    if (line == "#pragma once") return {};
  }
  return {file.path + ": no #pragma once"};
}

Findings check_using_namespace(const SourceFile& file) {
  if (!file.is_header()) return {};
  return check_lines(file, file.code, "`using namespace` in a header",
                     [](auto line) { return line.find("using namespace") != line.npos; });
}

// std::regex recurses once per character and takes exponential time.
Findings check_regex(const SourceFile& file) {
  return check_lines(file, file.code, "std::regex: use PCRE2 or write it by hand", [](auto line) {
    return has_word(line, "std::regex") || line.find("#include <regex>") != line.npos;
  });
}

// The words are put together here so that this file does not break its own rule.
Findings check_notes_to_self(const SourceFile& file) {
  static const std::array kWords = {std::string("TO") + "DO", std::string("FIX") + "ME"};
  return check_lines(file, file.text, "finish it or leave it out", [](auto line) {
    return has_word(line, kWords[0]) || has_word(line, kWords[1]);
  });
}

// A path that exists on one machine only.
Findings check_machine_paths(const SourceFile& file) {
  static const std::array kRoots = {std::string("/ho") + "me/", std::string("/wo") + "rk/",
                                    std::string("/ro") + "ot/", std::string("/Us") + "ers/"};
  return check_lines(file, file.text, "an absolute path of one machine", [](std::string_view line) {
    for (const std::string& root : kRoots) {
      for (size_t i = line.find(root); i != line.npos; i = line.find(root, i + 1)) {
        // A path's first component: nothing of a longer path or address stands before it.
        if (i == 0 ||
            (!is_word(line[i - 1]) && !std::string_view(".-}/>)").contains(line[i - 1]))) {
          return true;
        }
      }
    }
    return false;
  });
}

bool is_x86_file(std::string_view path) {
  return path.starts_with("src/kernels/x86/") || path == "src/base/threads/pause.h";
}

bool is_cuda_file(std::string_view path) {
  return path.starts_with("src/kernels/cuda/") || path.starts_with("tools/gpu/") ||
         path.starts_with("src/tensor/device_cuda") || path.starts_with("src/dist/comm_nccl");
}

// Whether a preprocessor line asks for a device or includes its headers.
bool names_x86(std::string_view line) {
  for (const char* part : {"__AVX", "__AMX", "__SSE", "__FMA__", "__F16C__", "__BMI", "__x86_64",
                           "__i386", "_M_X64", "intrin.h>", "cpuid.h>"}) {
    if (line.find(part) != line.npos) return true;
  }
  return false;
}

bool names_cuda(std::string_view line) {
  for (const char* part : {"USE_CUDA", "__CUDA", "BANYAN_CUDA", "__NVCC__", "__HIP", "<cuda",
                           "<cublas", "<nccl", "<cub/", "USE_NPU", "USE_ROCM"}) {
    if (line.find(part) != line.npos) return true;
  }
  return false;
}

// The build chooses which file is linked; no other file knows that the device exists.
Findings check_device_code(const SourceFile& file) {
  bool x86 = is_x86_file(file.path), cuda = is_cuda_file(file.path);
  return check_lines(
      file, file.code, "code of a device outside its folder", [&](std::string_view line) {
        size_t first = line.find_first_not_of(" \t");
        bool directive = first != line.npos && line[first] == '#';
        bool intrinsic = line.find("_mm_") != line.npos || line.find("_mm256_") != line.npos ||
                         line.find("_mm512_") != line.npos;
        return (!x86 && (intrinsic || (directive && names_x86(line)))) ||
               (!cuda && directive && names_cuda(line));
      });
}

// Whether a loop's bound is a number, a template's parameter or a constant.
bool is_constant(std::string_view bound) {
  if (bound.starts_with("2 * ")) bound.remove_prefix(4);
  bound.remove_prefix(bound.rfind(':') + 1);
  auto is_upper = [&](size_t i) { return i < bound.size() && bound[i] >= 'A' && bound[i] <= 'Z'; };
  bool digit = !bound.empty() && bound[0] >= '0' && bound[0] <= '9';
  return digit || is_upper(0) || (bound.starts_with('k') && is_upper(1));
}

// The bound of a loop over an `int` from 0, which is empty on any other line.
std::string_view bound_of_int_loop(std::string_view line) {
  size_t loop = line.find("for (int "), less = line.find(" < "), end = line.rfind(';');
  if (loop == line.npos || less == line.npos || end == line.npos || end < less) return {};
  return line.substr(less + 3, end - less - 3);
}

// g++ -O2 keeps an array of registers in memory if the loop over it stays a loop, which costs two
// thirds of a kernel's speed. In kernels an `int` counts registers, an `int64_t` elements.
Findings check_unrolled_loops(const SourceFile& file) {
  if (!file.path.starts_with("src/kernels/vector/") && !is_x86_file(file.path)) return {};
  std::string_view before;
  return check_lines(
      file, file.text, "no `#pragma GCC unroll` at this loop", [&](std::string_view line) {
        bool loop = is_constant(bound_of_int_loop(line));
        bool unrolled =
            before.starts_with("#pragma GCC unroll") || line.find("_Pragma(") != line.npos;
        before = line;
        return loop && !unrolled;
      });
}

// Several tests are compiled as one file, where only a namespace keeps their helpers apart.
Findings check_test_namespace(const SourceFile& file) {
  std::filesystem::path path(file.path);
  std::string name = path.stem().string();
  if (!file.path.starts_with("tests/") || path.extension() != ".cpp" || !name.ends_with("_test")) {
    return {};
  }
  bool found = std::ranges::any_of(lines_of(file.code), [&](std::string_view line) {
    return line.starts_with("namespace banyan") && line.ends_with("::" + name + " {");
  });
  if (found) return {};
  return {fmt::format("{}: its tests should be in the namespace banyan::{}", file.path, name)};
}

// How many findings `rule` has in a file of this path and text.
template <class Rule>
size_t count(Rule rule, const std::string& path, const std::string& text) {
  return rule(make_source(path, text)).size();
}

TEST(Tidy, TheRepositoryIsFound) {
  bool found = false;
  for (const SourceFile& file : repository()) found = found || file.path == "src/base/file.h";
  EXPECT_TRUE(found);
}

TEST(Tidy, FilesHaveAtMostSevenHundredLines) {
  EXPECT_EQ(findings_in_repository(check_file_length), "");
  EXPECT_EQ(count(check_file_length, "x.py", std::string(700, '\n')), 0u);
  EXPECT_EQ(count(check_file_length, "x.py", std::string(701, '\n')), 1u);
}

TEST(Tidy, LinesHaveAtMostOneHundredColumns) {
  EXPECT_EQ(findings_in_repository(check_columns), "");
  EXPECT_EQ(count(check_columns, "x.py", std::string(100, 'x') + "\n"), 0u);
  EXPECT_EQ(count(check_columns, "x.py", "\n" + std::string(101, 'x')), 1u);
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "é";
  EXPECT_EQ(count(check_columns, "x.py", accents), 0u);
}

TEST(Tidy, HeadersSayPragmaOnce) {
  EXPECT_EQ(findings_in_repository(check_pragma_once), "");
  EXPECT_EQ(count(check_pragma_once, "x.h", "// #pragma once\n"), 1u);
  EXPECT_EQ(count(check_pragma_once, "x.h", "// What it is.\n#pragma once\n"), 0u);
  EXPECT_EQ(count(check_pragma_once, "x.cpp", ""), 0u);
}

TEST(Tidy, HeadersDoNotUseNamespaces) {
  EXPECT_EQ(findings_in_repository(check_using_namespace), "");
  EXPECT_EQ(count(check_using_namespace, "x.h", "  using namespace std;\n"), 1u);
  EXPECT_EQ(count(check_using_namespace, "x.h", "// using namespace std;\n"), 0u);
}

TEST(Tidy, NobodyUsesTheStandardRegex) {
  EXPECT_EQ(findings_in_repository(check_regex), "");
  EXPECT_EQ(count(check_regex, "x.cpp", "#include <regex>\nstd::regex r;\n"), 2u);
  EXPECT_EQ(count(check_regex, "x.cpp", "// std::regex\nauto s = \"std::regex\";\n"), 0u);
}

TEST(Tidy, NoNotesToSelf) {
  EXPECT_EQ(findings_in_repository(check_notes_to_self), "");
  EXPECT_EQ(count(check_notes_to_self, "x.cpp", std::string("// TO") + "DO(me): x\n"), 1u);
  EXPECT_EQ(count(check_notes_to_self, "x.py", std::string("# FIX") + "ME\n"), 1u);
  EXPECT_EQ(count(check_notes_to_self, "x.py", "AUTODOC\n"), 0u);
}

TEST(Tidy, NoPathsOfOneMachine) {
  EXPECT_EQ(findings_in_repository(check_machine_paths), "");
  EXPECT_EQ(count(check_machine_paths, "x.py", std::string("open(\"/wo") + "rk/x\")\n"), 1u);
  EXPECT_EQ(count(check_machine_paths, "x.sh", std::string("cd /ho") + "me/me\n"), 1u);
  EXPECT_EQ(count(check_machine_paths, "x.sh", std::string("cd ../wo") + "rk/x\n"), 0u);
}

TEST(Tidy, TestsHaveNamespacesOfTheirOwn) {
  EXPECT_EQ(findings_in_repository(check_test_namespace), "");
  EXPECT_EQ(count(check_test_namespace, "tests/unit/x_test.cpp", "namespace banyan {\n"), 1u);
  EXPECT_EQ(count(check_test_namespace, "tests/unit/x_test.cpp", "namespace banyan::y_test {\n"),
            1u);
  EXPECT_EQ(count(check_test_namespace, "tests/unit/x_test.cpp", "namespace banyan::x_test {\n"),
            0u);
  EXPECT_EQ(count(check_test_namespace, "tests/unit/x_test.py", ""), 0u);
}

TEST(Tidy, DeviceCodeStaysInItsFolder) {
  EXPECT_EQ(findings_in_repository(check_device_code), "");
  EXPECT_EQ(count(check_device_code, "src/ops/x.cpp", "#ifdef USE_CUDA\n#endif\n"), 1u);
  EXPECT_EQ(count(check_device_code, "src/ops/x.h", "# if defined(__AVX512F__)\n#endif\n"), 1u);
  EXPECT_EQ(count(check_device_code, "src/ops/x.cpp", "#include <immintrin.h>\n"), 1u);
  EXPECT_EQ(count(check_device_code, "src/ops/x.cpp", "#include <cuda_runtime.h>\n"), 1u);
  EXPECT_EQ(count(check_device_code, "src/ops/x.cpp", "auto v = _mm512_setzero_ps();\n"), 1u);
  EXPECT_EQ(count(check_device_code, "src/kernels/x86/x.cpp", "#include <immintrin.h>\n"), 0u);
  EXPECT_EQ(count(check_device_code, "src/kernels/x86/x.cpp", "#ifdef __CUDACC__\n"), 1u);
  EXPECT_EQ(count(check_device_code, "src/dist/comm_nccl.cpp", "#include <nccl.h>\n"), 0u);
  EXPECT_EQ(count(check_device_code, "src/ops/x.cpp", "// #ifdef __AVX2__\n#if 0\n"), 0u);
}

TEST(Tidy, LoopsOverRegistersAreUnrolled) {
  EXPECT_EQ(findings_in_repository(check_unrolled_loops), "");
  const std::string kPath = "src/kernels/vector/x.h", kPragma = "#pragma GCC unroll 8\n";
  for (std::string bound : {"R", "2 * N", "8", "kKeys", "F::kVectors"}) {
    std::string loop = "  for (int r = 0; r < " + bound + "; ++r) sum(r);\n";
    EXPECT_EQ(count(check_unrolled_loops, kPath, loop), 1u) << bound;
    EXPECT_EQ(count(check_unrolled_loops, kPath, kPragma + loop), 0u) << bound;
    EXPECT_EQ(count(check_unrolled_loops, "src/kernels/x.h", loop), 0u) << bound;
  }
  EXPECT_EQ(count(check_unrolled_loops, kPath, "for (int r = 0; r < rows; ++r) {\n"), 0u);
  EXPECT_EQ(count(check_unrolled_loops, kPath, "for (int64_t r = 0; r < R; ++r) {\n"), 0u);
}

}  // namespace
}  // namespace banyan::tidy::tidy_test
