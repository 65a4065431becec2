// Which GGUF file of a repository a tag selects, and how model names on a hub are parsed.
#include "hub/gguf_choice.h"

#include <gtest/gtest.h>

#include "hub/settings.h"

namespace banyan::gguf_choice_test {
namespace {

using Files = std::set<std::string>;

const Files kNano = {"README.md",         "imatrix.gguf",    "mmproj-Nano-F16.gguf",
                     "Nano-Q4_K_M.gguf",  "Nano-Q8_0.gguf",  "Nano-UD-Q4_K_XL.gguf",
                     "Nano-UD-Q8_0.gguf", "Nano-IQ2_M.gguf", "../Nano-Q6_K.gguf"};

// The files, or the error.
std::string chosen(const Files& files, std::string_view tag) {
  Result<GgufModel> model = choose_gguf(files, tag, "acme/nano");
  if (!model) return model.error().message;
  std::string all;
  for (const std::string& file : model->files) all += (all.empty() ? "" : " ") + file;
  return all;
}

TEST(GgufChoice, TakesTheQuantizationThatIsNamed) {
  EXPECT_EQ(chosen(kNano, "Q8_0"), "Nano-Q8_0.gguf");
  EXPECT_EQ(chosen(kNano, "q8_0"), "Nano-Q8_0.gguf");
  EXPECT_EQ(chosen(kNano, "ud-q8_0"), "Nano-UD-Q8_0.gguf");
  EXPECT_EQ(chosen(kNano, "Q4_K_XL"), "Nano-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen({"nano.fp16.gguf", "nano_q4_0.gguf"}, "fp16"), "nano.fp16.gguf");
  EXPECT_EQ(chosen({"nano.fp16.gguf", "nano_q4_0.gguf"}, "Q4_0"), "nano_q4_0.gguf");
  EXPECT_EQ(chosen({"oss-mxfp4.gguf", "oss-F32.gguf"}, "MXFP4"), "oss-mxfp4.gguf");
}

TEST(GgufChoice, TakesTheFileThatIsNamed) {
  EXPECT_EQ(chosen(kNano, "Nano-Q8_0.gguf"), "Nano-Q8_0.gguf");
  EXPECT_EQ(chosen(kNano, "nano-q8_0"), "Nano-Q8_0.gguf");
  Files folders = {"a/Nano-Q8_0.gguf", "b/Nano-Q8_0.gguf", "b/chat.gguf"};
  EXPECT_EQ(chosen(folders, "b/Nano-Q8_0.gguf"), "b/Nano-Q8_0.gguf");
  EXPECT_EQ(chosen(folders, "a"), "a/Nano-Q8_0.gguf");
  EXPECT_EQ(chosen(folders, "chat"), "b/chat.gguf");
}

TEST(GgufChoice, TakesAUsualOneWithoutATag) {
  EXPECT_EQ(chosen(kNano, ""), "Nano-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"n-Q2_K.gguf", "n-Q4_0.gguf", "n-Q8_0.gguf"}, ""), "n-Q4_0.gguf");
  EXPECT_EQ(chosen({"n-Q2_K.gguf", "n-Q8_0.gguf"}, ""), "n-Q8_0.gguf");
  EXPECT_EQ(chosen({"n-IQ1_S.gguf", "n-Q2_K.gguf", "n-Q6_K.gguf"}, ""), "n-Q2_K.gguf");
  EXPECT_EQ(chosen({"model.gguf"}, ""), "model.gguf");
}

TEST(GgufChoice, TakesAllPartsInOrder) {
  Files parts = {"BF16/n-00002-of-00003.gguf", "BF16/n-00001-of-00003.gguf",
                 "BF16/n-00003-of-00003.gguf", "n-Q6_K-00001-of-00002.gguf"};
  std::string all =
      "BF16/n-00001-of-00003.gguf BF16/n-00002-of-00003.gguf BF16/n-00003-of-00003.gguf";
  EXPECT_EQ(chosen(parts, "bf16"), all);
  EXPECT_EQ(chosen(parts, "n-00002-of-00003.gguf"), all);
  EXPECT_EQ(chosen(parts, "Q6_K"),
            "acme/nano has only some of the parts of n-Q6_K: n-Q6_K-00001-of-00002.gguf");
}

TEST(GgufChoice, ErrorsListWhatIsThere) {
  EXPECT_EQ(chosen(kNano, "Q5_K_M"),
            "acme/nano has no GGUF file \"Q5_K_M\"; it has: IQ2_M, Q4_K_M, Q8_0, UD-Q4_K_XL, "
            "UD-Q8_0");
  EXPECT_EQ(chosen(kNano, "K_M").find("acme/nano has no GGUF file \"K_M\""), 0U);
  EXPECT_EQ(chosen({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}, ""),
            "acme/nano matches several GGUF models: a-Q4_K_M.gguf, b-Q4_K_M.gguf; pick one as "
            "acme/nano:FILE");
  EXPECT_EQ(chosen({"mmproj-Q8_0.gguf"}, "Q8_0"), "acme/nano has no GGUF file of a model");
  EXPECT_EQ(chosen({"config.json", "model.safetensors"}, "Q8_0"),
            "acme/nano has no GGUF file of a model; acme/nano alone means its safetensors");
  EXPECT_FALSE(is_known_quantization("UD-IQ2_M"));
  EXPECT_TRUE(is_known_quantization("IQ4_XS"));
}

TEST(HubModel, MayHaveAHostAndATag) {
  for (const char* host : {"", "hf.co/", "huggingface.co/", "https://hf.co/", "HTTPS://HF.co/"}) {
    HubModel model = HubModel::parse(host + std::string("acme/nano:Q8_0@v1")).value();
    EXPECT_EQ(model.repository(), "acme/nano");
    EXPECT_EQ(model.text(), "acme/nano:Q8_0");
    EXPECT_EQ(model.revision, "v1");
    EXPECT_EQ(model.with_host, *host != '\0');
  }
  EXPECT_EQ(HubModel::parse("acme/nano@v1:a/n-Q8_0.gguf")->gguf, "a/n-Q8_0.gguf");
  EXPECT_EQ(HubModel::parse("acme/nano:latest")->gguf, "");
  for (const char* wrong : {"acme/nano:", "acme/nano:../x", "acme/nano:a:b", "acme/nano@a@b",
                            "https://a.b/acme/nano", "hf.co/nano", "acme/nano:a b", "acme:nano"}) {
    EXPECT_FALSE(HubModel::parse(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace banyan::gguf_choice_test
