#include "models/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/config/language_part.h"
#include "models/eagle3.h"

namespace banyan {
namespace {

constexpr std::string_view kTextAlone = "text only";
constexpr std::string_view kPredicts = "MTP layers load with --speculative-algorithm NEXTN";
constexpr std::string_view kSkipsPrediction = "MTP layers are skipped";

constexpr std::array kFamilies = {
    Family{"BailingHybridForCausalLM",
           load_ling3_saved,
           {"KDA + MLA", "dense, experts", "Ling 3.0 Flash",
            "as saved by transformers; MTP layers load with --speculative-algorithm NEXTN"}},
    Family{"BailingMoeV2ForCausalLM",
           load_ling2,
           {"GQA", "dense, experts", "Ling-mini-2.0, Ring 2.0", kSkipsPrediction}},
    Family{"BailingMoeV2_5ForCausalLM",
           load_ling2_5,
           {"lightning + MLA", "dense, experts", "Ling 2.5", kPredicts}},
    Family{"BailingMoeV3ForCausalLM",
           load_ling3,
           {"KDA + MLA", "dense, experts", "Ling-3.0-tiny", kPredicts}},
    Family{"DeepseekV2ForCausalLM",
           load_deepseek_v2,
           {"MLA", "dense, experts", "DeepSeek-V2, V2-Lite, V2.5, Coder-V2", ""}},
    Family{
        "DeepseekV32ForCausalLM",
        load_deepseek_v32,
        {"MLA, an index of tokens (DSA)", "dense, experts", "DeepSeek-V3.2, V3.2-Exp", kPredicts}},
    Family{"DeepseekV3ForCausalLM",
           load_deepseek_v3,
           {"MLA", "dense, experts", "DeepSeek-V3, R1, V3.1; Kimi K2; Moonlight", kPredicts}},
    Family{"Ernie4_5ForCausalLM", load_ernie4_5, {"GQA", "dense", "ERNIE-4.5-0.3B", ""}},
    Family{"Ernie4_5_MoeForCausalLM",
           load_ernie4_5_moe,
           {"GQA", "dense, experts", "ERNIE-4.5-21B-A3B, 300B-A47B (text)", kSkipsPrediction}},
    Family{
        "Exaone4ForCausalLM", load_exaone4, {"GQA, windows", "dense", "EXAONE-4.0-1.2B, 32B", ""}},
    Family{"Gemma2ForCausalLM",
           load_gemma2,
           {"GQA, windows, capped", "dense", "gemma-2-2b, 9b, 27b", ""}},
    Family{"Gemma3ForCausalLM", load_gemma3, {"GQA, windows", "dense", "gemma-3-1b", ""}},
    Family{"Gemma3ForConditionalGeneration",
           load_language_part<load_gemma3>,
           {"GQA, windows", "dense", "gemma-3-4b, 12b, 27b", kTextAlone}},
    Family{"Gemma4ForCausalLM",
           load_gemma4,
           {"GQA, windows, shared keys", "dense, experts", "the text model of Gemma 4", ""}},
    Family{"Gemma4ForConditionalGeneration",
           load_language_part<load_gemma4>,
           {"GQA, windows, shared keys", "dense, experts", "gemma-4-E2B, E4B, 26B-A4B, 31B",
            kTextAlone}},
    Family{"Glm4ForCausalLM", load_glm4, {"GQA", "dense", "GLM-4-9B-0414, 32B", ""}},
    Family{"Glm4MoeForCausalLM",
           load_glm4_moe,
           {"GQA", "dense, experts", "GLM-4.5, 4.5-Air, 4.6, 4.7", kPredicts}},
    Family{"Glm4MoeLiteForCausalLM",
           load_glm4_moe_lite,
           {"MLA", "dense, experts", "GLM-4.7-Flash", kPredicts}},
    Family{"GlmMoeDsaForCausalLM",
           load_glm_moe_dsa,
           {"MLA, an index of tokens (DSA)", "dense, experts", "GLM-5, 5.1, 5.2", kPredicts}},
    Family{"GptOssForCausalLM",
           load_gpt_oss,
           {"GQA, windows, sinks", "experts", "gpt-oss-20b, 120b", "experts MXFP4 or plain"}},
    Family{"GraniteForCausalLM", load_granite, {"GQA", "dense", "granite-3.3-2b, 8b", ""}},
    Family{"GraniteMoeForCausalLM",
           load_granite_moe,
           {"GQA", "experts", "granite-3.1-1b-a400m, 3b-a800m", ""}},
    Family{"GraniteMoeHybridForCausalLM",
           load_granite_hybrid,
           {"Mamba 2 + GQA", "dense, experts", "granite-4.0-h-micro, tiny, small", ""}},
    Family{"GraniteMoeSharedForCausalLM",
           load_granite_moe,
           {"GQA", "experts", "moe-7b-1b-active-shared-experts", ""}},
    Family{"HYV3ForCausalLM", load_hunyuan_v3, {"GQA", "dense, experts", "Hy3", kSkipsPrediction}},
    Family{"HunYuanDenseV1ForCausalLM",
           load_hunyuan_dense,
           {"GQA", "dense", "Hunyuan-0.5B to 7B", ""}},
    Family{"HunYuanMoEV1ForCausalLM", load_hunyuan_moe, {"GQA", "experts", "Hunyuan-A13B", ""}},
    Family{"KimiK25ForConditionalGeneration",
           load_language_part<load_deepseek_v3>,
           {"MLA", "dense, experts", "Kimi K2.5, K2.6",
            "text only; MTP layers load with --speculative-algorithm NEXTN"}},
    Family{"KimiLinearForCausalLM",
           load_kimi_linear,
           {"KDA + MLA", "dense, experts", "Kimi-Linear-48B-A3B", ""}},
    Family{"Lfm2ForCausalLM",
           load_lfm2,
           {"gated convolution + GQA", "dense", "LFM2-350M to 2.6B", ""}},
    Family{"Lfm2MoeForCausalLM",
           load_lfm2_moe,
           {"gated convolution + GQA", "dense, experts", "LFM2-8B-A1B", ""}},
    Family{"Llama4ForCausalLM",
           load_llama4,
           {"GQA, chunks", "dense, experts", "the text model of Llama 4", ""}},
    Family{"Llama4ForConditionalGeneration",
           load_language_part<load_llama4>,
           {"GQA, chunks", "dense, experts", "Llama-4-Scout, Maverick", kTextAlone}},
    Family{"LlamaForCausalLM",
           load_llama,
           {"GQA", "dense", "Llama 2 and 3, and models with the same layers", ""}},
    Family{"LongcatFlashForCausalLM",
           load_longcat_flash,
           {"MLA, two a layer", "dense, experts", "LongCat-Flash", kPredicts}},
    Family{"MiniMaxM2ForCausalLM",
           load_minimax_m2,
           {"GQA", "experts", "MiniMax-M2, M2.1, M2.5, M2.7", ""}},
    Family{"MiniMaxM3SparseForCausalLM",
           load_minimax_m3,
           {"GQA, an index of blocks", "dense, experts", "the text model of MiniMax-M3", ""}},
    Family{"MiniMaxM3SparseForConditionalGeneration",
           load_language_part<load_minimax_m3>,
           {"GQA, an index of blocks", "dense, experts", "MiniMax-M3", kTextAlone}},
    Family{"Ministral3ForCausalLM", load_ministral3, {"GQA", "dense", "Ministral 3 (text)", ""}},
    Family{"Mistral3ForConditionalGeneration",
           load_language_part<load_mistral3>,
           {"GQA, windows; MLA", "dense, experts",
            "Mistral Small 3.1, 3.2 and 4; Ministral 3, Devstral Small 2", kTextAlone}},
    Family{"Mistral4ForCausalLM",
           load_mistral4,
           {"MLA", "dense, experts", "Mistral Small 4 (text)", ""}},
    Family{"MistralForCausalLM",
           load_mistral,
           {"GQA, windows", "dense", "Mistral 7B, NeMo, Small", ""}},
    Family{
        "MixtralForCausalLM", load_mixtral, {"GQA, windows", "experts", "Mixtral-8x7B, 8x22B", ""}},
    Family{"NemotronHForCausalLM",
           load_nemotron_h,
           {"Mamba 2 + GQA", "dense, experts", "Nemotron-H, Nemotron 3 Nano",
            "without moe_latent_size (Nemotron 3 Super); MTP layers are skipped"}},
    Family{"Olmo2ForCausalLM", load_olmo2, {"GQA", "dense", "OLMo-2-7B, 13B, 32B", ""}},
    Family{"Olmo3ForCausalLM", load_olmo3, {"GQA, windows", "dense", "Olmo-3-7B, 32B", ""}},
    Family{"Phi3ForCausalLM",
           load_phi3,
           {"GQA, windows", "dense", "Phi-3-4k, phi-4", "longrope is not supported"}},
    Family{"Qwen2ForCausalLM", load_qwen2, {"GQA, windows", "dense", "Qwen2, Qwen2.5, QwQ", ""}},
    Family{"Qwen3ForCausalLM", load_qwen3, {"GQA, windows", "dense", "Qwen3-0.6B to 32B", ""}},
    Family{"Qwen3MoeForCausalLM",
           load_qwen3_moe,
           {"GQA, windows", "dense, experts", "Qwen3-30B-A3B, 235B-A22B", ""}},
    Family{"Qwen3NextForCausalLM",
           load_qwen3_next,
           {"GDN + gated GQA", "dense, experts", "Qwen3-Next-80B-A3B", kPredicts}},
    Family{"Qwen3_5ForCausalLM",
           load_qwen3_5,
           {"GDN + gated GQA", "dense", "Qwen3.5, Qwen3.6", kPredicts}},
    Family{"Qwen3_5ForConditionalGeneration",
           load_language_part<load_qwen3_5>,
           {"GDN + gated GQA", "dense", "Qwen3.5, Qwen3.6",
            "text only; MTP layers load with --speculative-algorithm NEXTN"}},
    Family{"Qwen3_5MoeForCausalLM",
           load_qwen3_5_moe,
           {"GDN + gated GQA", "experts", "Qwen3.5, Qwen3.6 with experts", kPredicts}},
    Family{"Qwen3_5MoeForConditionalGeneration",
           load_language_part<load_qwen3_5_moe>,
           {"GDN + gated GQA", "experts", "Qwen3.6-35B-A3B",
            "text only; MTP layers load with --speculative-algorithm NEXTN"}},
    Family{"SeedOssForCausalLM", load_seed_oss, {"GQA", "dense", "Seed-OSS-36B", ""}},
    Family{"SmolLM3ForCausalLM", load_smollm3, {"GQA, windows", "dense", "SmolLM3-3B", ""}},
    Family{"SolarOpenForCausalLM", load_solar_open, {"GQA", "experts", "Solar-Open-100B", ""}},
};

// Reasons of several.
constexpr std::string_view kImages = "image input; its language model cannot be loaded alone";
constexpr std::string_view kNarrowValues =
    "values narrower than keys, and layers with windows that have other numbers of KV heads";
constexpr std::string_view kGatedWindows =
    "layers with windows that have other numbers of heads, and a gate for each head";
constexpr std::string_view kLayerEmbeddings =
    "an embedding for each layer, and keys that layers share";
constexpr std::string_view kStreams = "several residual streams and an index of keys";
constexpr std::string_view kResidualAttention =
    "residuals that attend to those of earlier layers, and experts between latents";
constexpr std::string_view kGatedConvolution =
    "norms after blocks, windows and a gate for each head, next to convolutions";

// Known but unsupported, with the reason.
constexpr std::array kRefused = {
    RefusedFamily{"DeepseekOCR2ForCausalLM", kImages},
    RefusedFamily{"DeepseekOCRForCausalLM", kImages},
    RefusedFamily{"DeepseekOcr2ForConditionalGeneration", kImages},
    RefusedFamily{"DeepseekV4ForCausalLM", "compressed keys and several residual streams"},
    RefusedFamily{"Gemma3nForCausalLM", kLayerEmbeddings},
    RefusedFamily{"Gemma3nForConditionalGeneration", kLayerEmbeddings},
    RefusedFamily{"Glm5NextForConditionalGeneration",
                  "several residual streams and an index of keys in pools"},
    RefusedFamily{"KimiK3ForConditionalGeneration", kResidualAttention},
    RefusedFamily{"KimiK3LinearForCausalLM", kResidualAttention},
    RefusedFamily{"LagunaForCausalLM",
                  "layers with other numbers of heads, and a softplus gate on attention's output"},
    RefusedFamily{"Lfm3ForCausalLM", kGatedConvolution},
    RefusedFamily{"Lfm3VlForConditionalGeneration", kGatedConvolution},
    RefusedFamily{"LlavaForConditionalGeneration", kImages},
    RefusedFamily{"LlavaNextForConditionalGeneration", kImages},
    RefusedFamily{"LlavaOnevisionForConditionalGeneration", kImages},
    RefusedFamily{"MiMoV2FlashForCausalLM", kNarrowValues},
    RefusedFamily{"MiMoV2ForCausalLM", kNarrowValues},
    RefusedFamily{"MistralLarge4ForConditionalGeneration",
                  "an index chooses which keys a query sees, and layers share them"},
    RefusedFamily{"Qwen2VLForConditionalGeneration", kImages},
    RefusedFamily{"Qwen2_5_VLForConditionalGeneration", kImages},
    RefusedFamily{"Qwen3VLForConditionalGeneration", kImages},
    RefusedFamily{"Qwen3VLMoeForConditionalGeneration", kImages},
    RefusedFamily{"Qwen4ExpForCausalLM", kStreams},
    RefusedFamily{"Qwen4ExpForConditionalGeneration", kStreams},
    RefusedFamily{"Step3p5ForCausalLM", kGatedWindows},
    RefusedFamily{"Step3p7ForConditionalGeneration", kGatedWindows},
};

}  // namespace

std::span<const Family> registered_families() {
  return kFamilies;
}

std::span<const RefusedFamily> refused_families() {
  return kRefused;
}

Result<const Family*> find_family(std::string_view architecture, std::span<const Family> families) {
  auto it = std::ranges::find(families, architecture, &Family::architecture);
  if (it != families.end()) return &*it;
  constexpr std::string_view kBare = "Model";
  if (architecture.ends_with(kBare)) {
    auto name = std::string(architecture.substr(0, architecture.size() - kBare.size()));
    auto whole = std::ranges::find(families, name + "ForCausalLM", &Family::architecture);
    if (whole != families.end()) return &*whole;
  }
  auto refused = std::ranges::find(kRefused, architecture, &RefusedFamily::architecture);
  if (refused != kRefused.end()) {
    return unsupported("config.json: architecture \"{}\" is not supported yet: {}", architecture,
                       refused->why);
  }
  if (is_eagle3(architecture)) {
    return invalid_argument(
        "config.json: \"{}\" is an EAGLE-3 head, which drafts for a model; load the model, with "
        "--speculative-algorithm EAGLE3 and this folder as --speculative-draft-model-path",
        architecture);
  }
  std::vector<std::string_view> names;
  for (const Family& family : families) names.push_back(family.architecture);
  return unsupported("config.json: architecture \"{}\" is not supported; supported: {}",
                     architecture, fmt::join(names, ", "));
}

}  // namespace banyan
