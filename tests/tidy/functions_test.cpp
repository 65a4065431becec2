// Functions have at most 70 lines; and the scanner that counts them finds all functions.
#include "tidy/functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace banyan::tidy::functions_test {
namespace {

constexpr size_t kFunctionLinesMax = 70;

Findings check_function_lengths(const SourceFile& file) {
  Findings findings;
  for (const Function& function : find_functions(file)) {
    if (function.lines <= kFunctionLinesMax) continue;
    findings.push_back(fmt::format("{}:{}: {} has {} lines, the limit is {}", file.path,
                                   function.first_line, function.name, function.lines,
                                   kFunctionLinesMax));
  }
  return findings;
}

// "name@line+lines" of every function found, joined by spaces.
std::string functions_in(const std::string& text) {
  std::string found;
  for (const Function& function : find_functions(make_source("x.cpp", text))) {
    found += fmt::format("{}{}@{}+{}", found.empty() ? "" : " ", function.name, function.first_line,
                         function.lines);
  }
  return found;
}

TEST(FunctionLength, NoFunctionIsLongerThanSeventyLines) {
  EXPECT_EQ(findings_in_repository(check_function_lengths), "");
}

TEST(FunctionLength, TheRuleSeesALongFunction) {
  auto check = [](size_t lines) {
    std::string body(lines - 2, '\n');
    return check_function_lengths(make_source("x.cpp", "int f() {\n" + body + "}\n")).size();
  };
  EXPECT_EQ(check(70), 0u);
  EXPECT_EQ(check(71), 1u);
}

TEST(FunctionScanner, FindsFreeFunctionsMembersAndTests) {
  EXPECT_EQ(functions_in("int f() { return 1; }\n\nvoid\ng(int a,\n  int b) {\n}\n"),
            "f@1+1 g@3+4");
  EXPECT_EQ(functions_in("namespace a::b {\nclass X final : public Y {\n public:\n  int f() const "
                         "{ return x_; }\n private:\n  void g() {\n  }\n int x_ = 0;\n};\n}\n"),
            "f@4+1 g@6+2");
  EXPECT_EQ(functions_in("TEST(Suite, Name) {\n}\n"), "TEST(Suite, Name)@1+2");
  EXPECT_EQ(functions_in("extern \"C\" int run(int x) {\n}\nextern \"C\" {\nint f() {}\n}\n"),
            "run@1+2 f@4+1");
}

TEST(FunctionScanner, FindsConstructorsOperatorsAndTemplates) {
  EXPECT_EQ(functions_in("X::X(int a)\n    : a_{a}, b_(2), c_{} {\n  f();\n}\n"), "X::X@1+4");
  EXPECT_EQ(functions_in("X::~X() {\n}\n"), "X::~X@1+2");
  EXPECT_EQ(functions_in("bool operator()(int a) const {\n}\nX& X::operator=(X&& x) {\n}\n"),
            "operator@1+2 operator=@3+2");
  EXPECT_EQ(
      functions_in("template <class T = int>\nstruct X {};\ntemplate <class T>\nT f(T x = {}) "
                   "{\n}\n"),
      "f@3+3");
}

TEST(FunctionScanner, FindsSpecializations) {
  EXPECT_EQ(functions_in("template <>\nfloat from<float>(float x) {\n}\n"), "from@1+3");
}

TEST(FunctionScanner, CountsLambdasAndLocalTypesAsPartsOfTheirFunction) {
  EXPECT_EQ(
      functions_in("int f() {\n  struct S { int g() { return 1; } };\n  auto l = [](int x) {\n"
                   "    return x;\n  };\n  if (l(1)) { return 2; }\n}\nint h() {\n}\n"),
      "f@1+7 h@8+2");
  EXPECT_EQ(functions_in("const auto kF = [](int x) {\n  return x;\n};\n"), "lambda@1+3");
}

TEST(FunctionScanner, SkipsTablesTypesAndInitializers) {
  EXPECT_EQ(functions_in("int kTable[] = {\n 1,\n};\nX x{1};\nenum class E : int {\n kA,\n};\n"
                         "const std::map<int, std::function<void(int)>> kM = {\n {1, g},\n};\n"
                         "auto kB = make({\n 1,\n});\n"),
            "");
}

TEST(FunctionScanner, IgnoresBracesInCommentsLiteralsAndMacros) {
  EXPECT_EQ(functions_in("// int a() {\n/* { */\nint f() {\n  char c = '{', d = '\\'';\n  int n = "
                         "1'000;  // }\n  auto s = \"}\\\"}\";\n  auto r = R\"x(} )\" })x\";\n}\n"
                         "#define M(a) \\\n  if (a) {\nint g() {\n}\n"),
            "f@3+6 g@11+2");
}

}  // namespace
}  // namespace banyan::tidy::functions_test
