// The four Unicode normalization forms, in linear time.
#include "unicode/normalization_form.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace banyan::normalization_form_test {
namespace {

std::string normalized(NormalizationForm form, std::string text) {
  EXPECT_TRUE(normalize(form, text));
  return text;
}

TEST(NormalizationForm, GivesTheFourForms) {
  const std::string text = "\u00e9 a\u0301\u0316 \uac00\u11a8 \ufb01 \u1e9b\u0323";
  EXPECT_EQ(normalized(NormalizationForm::kNfc, text),
            "\u00e9 \u00e1\u0316 \uac01 \ufb01 \u1e9b\u0323");
  EXPECT_EQ(normalized(NormalizationForm::kNfd, text),
            "e\u0301 a\u0316\u0301 \u1100\u1161\u11a8 \ufb01 \u017f\u0323\u0307");
  EXPECT_EQ(normalized(NormalizationForm::kNfkc, text), "\u00e9 \u00e1\u0316 \uac01 fi \u1e69");
  EXPECT_EQ(normalized(NormalizationForm::kNfkd, text),
            "e\u0301 a\u0316\u0301 \u1100\u1161\u11a8 fi s\u0323\u0307");
}

TEST(NormalizationForm, OrdersLongRunsOfMarksInLinearTime) {
  constexpr int kPairs = 200'000;
  std::string text = "e", above, below;
  for (int i = 0; i < kPairs; ++i) {
    text += "\u0301\u0316";
    above += "\u0301";
    below += "\u0316";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(normalized(NormalizationForm::kNfd, text), "e" + below + above);
  EXPECT_EQ(normalized(NormalizationForm::kNfc, text), "\u00e9" + below + above.substr(2));
  // Some 20 ms each when quiet; by exchanges, half an hour.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace banyan::normalization_form_test
