// Every setting and limit of an engine, with its unit. 0 means "choose automatically" where the
// comment says so; validate() names the first value that is out of range.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "banyan/status.h"

namespace banyan {

// Called from the loading thread while weights are read.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// Keeps cached prefixes outside memory, where they survive a restart. Stores exactly the bytes of
// layer states, under a key that covers everything they depend on.
struct CacheStorageConfig {
  // disk, file (a shared file system) or redis; empty: none. "disk,file" and "disk,redis": the disk
  // first, then the shared store for what the disk lacks.
  std::string backend;
  std::string directory;   // disk, or file alone: created if necessary
  int64_t size_bytes = 0;  // disk: of everything in the directory
  // With a device: host memory that holds units which the device evicts, as a size or as a multiple
  // of the device's memory for states; 0: none. The backend, if any, is the next level.
  int64_t host_size_bytes = 0;
  double host_ratio = 0;
  double snapshot_fraction = 0;  // disk: of size_bytes, for snapshots of recurrent layers; 0: half
  // redis: redis://[[user]:password@]host[:port][/database], or unix://. file below a disk:
  // file:///path.
  std::string url;
  std::string key_file;  // of a secret that all users share; empty: records are unsigned
  int64_t write_budget_bytes_per_day = 0;  // 0: none

  // write_back: pages near eviction, hot pages (used twice or held) when the engine is idle, and
  // the rest at shutdown. write_through: every page soon after it is computed.
  // write_through_selective: a page at its second use.
  std::string write_policy = "write_back";
  double flush_s = 10;  // for unwritten pages at shutdown

  // What a request does while its prefix is being loaded. best_effort: starts with what is there
  // when its turn comes. timeout: waits for a limited time. wait_complete: waits.
  std::string prefetch_policy = "timeout";
  int64_t prefetch_tokens_min = 256;  // shorter prefixes are not loaded
  // timeout: a base and an amount per 1,024 tokens. If both are 0: 0.05 s and 1.5 times the
  // expected loading time.
  double prefetch_timeout_s = 0, prefetch_timeout_per_ki_token_s = 0;

  bool on() const { return !backend.empty() || host_size_bytes > 0 || host_ratio > 0; }
  Status validate() const;
};

// Step times of some machine: a base per step, and an amount for each prompt row and for each row
// of a decoding sequence.
struct StepTimes {
  double step_s = 0.01;
  double prompt_row_s = 125e-6;
  double decode_row_s = 100e-6;

  double seconds(int64_t prompt_rows, int64_t decode_rows) const {
    return step_s + static_cast<double>(prompt_rows) * prompt_row_s +
           static_cast<double>(decode_rows) * decode_row_s;
  }
  Status validate() const;
  bool operator==(const StepTimes&) const = default;
};

// A LoRA adapter: a folder as PEFT saves it.
struct AdapterSource {
  std::string name;  // by which requests choose it
  std::string path;
  double scale = 1;  // on top of the adapter's own scaling

  Status validate() const;
  bool operator==(const AdapterSource&) const = default;
};

struct EngineConfig {
  std::string model_path;  // a folder in Hugging Face format
  std::string gguf_path;   // a GGUF file whose weights replace the folder's; empty: none
  // Jinja text, or a file with it, that replaces the model's chat template; empty: the model's.
  std::string chat_template;
  // Where sampling parameters come from that a request leaves out: model (generation_config.json)
  // or openai (temperature 1 and no filters).
  std::string sampling_defaults = "model";
  // How embeddings are pooled: auto (as the model's folder or GGUF file says, else last), last or
  // mean.
  std::string pooling = "auto";
  // The model is made for embeddings, though its folder does not say so: documents are ranked by
  // the angle between embeddings, not by asking it.
  bool embedding_model = false;

  std::string dtype = "auto";  // auto (as stored), bf16, f16, f32; also bfloat16, half and the like
  // auto (the fastest on this machine for the model), portable, avx2, avx512, avx512_vnni,
  // avx512_bf16, amx; fenced: to debug.
  std::string kernels = "auto";
  std::string load_format = "auto";  // auto (safetensors), dummy (seeded random numbers)
  int threads = 0;  // of all ranks on this machine; 0: all processors that this process may use, or
                    // fewer, with one rank, while others use them too and fewer are faster
  // Tensor parallelism: ranks that divide the weights, heads and experts of a layer. They are
  // threads of this process, with an equal part of its processors each, or as many processes as
  // mpirun has started. Sums over ranks round differently: results are the same for the same number
  // of ranks.
  int tp_size = 1;
  bool pin_threads = true;  // pin them to processors where that helps (base/os/affinity.h)

  // Quantisation of weights at load time: none (as stored), weight-only (as stored, with
  // activations of 16 bits or more), int8, int4, fp8, mxfp4, int4:64.
  std::string quantization = "none";
  // "REGEX=FORMAT": overrides the format of matrices whose names match the regex; the last match
  // wins. FORMAT may also be none, weight-only, bf16, f16 or f32.
  std::vector<std::string> quantization_overrides;

  // How latent attention (MLA) runs over prompts: "absorbed", as in decode, or "expanded", which
  // takes fewer operations and more memory. With "expanded", states of generated tokens are not
  // reused, as in recurrent models. It is refused for models without MLA.
  std::string mla_prefill = "absorbed";

  // Mixture of block attention (MoBA): tokens per block, and the number of blocks that a token
  // attends to, including its own. They replace the model's own sizes. For a model without MoBA,
  // both together make its full grouped-query attention select blocks, as an experiment. 0: as the
  // model says.
  int64_t moba_block_tokens = 0;
  int64_t moba_top_k = 0;
  // Whether generated tokens select blocks as prompts do, or attend to all keys. Absent: as the
  // model says (use_moba_decode), and true for a model without MoBA.
  std::optional<bool> moba_decode;

  // The format of cached keys and values, or latents: auto (the weights' type), bf16, f16, f32, or
  // fp8_e4m3 (or fp8) and int8, which are quantised row by row and take half the bytes of bf16.
  // Recurrent states stay f32. Refused for models without a KV cache.
  std::string kv_cache_dtype = "auto";

  // The format of an index's keys, for models in which an index chooses the attended tokens
  // (DeepSeek V3.2, GLM-5): auto (as kv_cache_dtype unless that is quantised; else the weights'
  // type), bf16, or fp8. fp8 rounds after a Hadamard transform, takes half the memory and may
  // change the choice. Refused for other models.
  std::string index_dtype = "auto";

  // LoRA adapters that are loaded with the model. Others can be loaded while the engine runs, as
  // far as adapters_max says.
  std::vector<AdapterSource> adapters;
  // How many adapters may be loaded at once, and the largest rank of their matrices: memory for so
  // much is taken at load. 0: as many as `adapters` has; the largest rank among those, or 16.
  int adapters_max = 0;
  int adapter_rank_max = 0;

  int64_t context_length_tokens = 0;  // 0: the model's own
  int page_size_tokens = 64;          // a power of two from 1 to 1024
  int64_t total_tokens_max = 0;       // of all sequences together; 0: as many as memory allows
  // Fraction of the memory left after the weights that holds layer states.
  double memory_fraction = 0.8;
  int running_max = 8;  // running sequences
  // Waiting requests. Beyond it, each client may have its share: GenerationOptions::client.
  int queued_max = 256;
  // Prompt tokens per step, beyond one token per sequence. 0: 512 on CPUs and 4096 on a GPU, where
  // a mixture of experts would otherwise read all of them for few rows each.
  int chunked_prefill_tokens = 0;
  // While other sequences decode, a step reads as many prompt tokens as take about this long, at
  // least 64, and at most the above. 0: always as many as the above.
  double prefill_step_ms = 0;

  // fcfs: first come, first served. lpm: longest cached prefix first, with aging. priority: highest
  // priority first.
  std::string schedule_policy = "lpm";
  int aging_period = 4;  // lpm: one in this many admissions is the request that has waited longest
  bool radix_cache = true;                   // keep computed prefixes for later requests
  int64_t snapshot_interval_tokens = 16384;  // of recurrent state in a long prompt
  double snapshot_fraction = 0.3;            // fraction of the state memory for those snapshots
  // For recurrent models and expanded prefill: also reuse the states of generated tokens. The next
  // turn of a chat then resumes after the last answer instead of the last prompt. Its output is no
  // longer bit-identical to a run without the cache, which would prefill that answer.
  bool reuse_generated_state = false;
  // Launch the next step before the previous step's results are read, unless a constraint or
  // penalty needs its tokens, so that a device never waits for the host. Changes no result. Not
  // set: on devices, not on CPUs.
  std::optional<bool> overlap_schedule;
  bool expert_counts = false;  // mixture of experts: count how often each expert is chosen
  // Compute EngineInfo::state_digest: reads and hashes all weights once. The hashes are kept in the
  // user's cache folder until a file changes.
  bool state_digest = false;
  // Instead of computing, wait as long as steps take on another machine; every token is equally
  // likely (engine/emulator.h). For tests of systems with many engines. Requires total_tokens_max,
  // since this machine's memory says nothing about the other's. Weights and states take no memory.
  std::optional<StepTimes> emulated_steps;

  // Speculative decoding: draft tokens are verified in the same step and kept while they equal what
  // the model draws. They save steps and change no output.
  bool jump_forward = true;   // draft the text that a constraint forces
  int draft_tokens_max = 32;  // per sequence and step; 0: no drafts
  int draft_tokens_min = 1;   // shorter drafts are dropped, unless a constraint forces them
  // Tokens drafted for one position, as branches of a tree; 1: chains. Models with recurrent state
  // or per-block state have chains.
  int draft_topk = 1;
  // Drafters; of several, the one with the best expected gain drafts:
  //   ngram   what followed the last tokens earlier in the same text
  //   suffix  the same, and cached texts of the same namespace
  //   mtp     the model's own multi-token prediction layer; eagle3: a head trained for the model
  //   draft   a smaller model with the same vocabulary
  // A trained estimate of which of their tokens are accepted, in place of counts; empty: none.
  std::string draft_filter_path;
  // Even without a drafter, ngram serves requests that carry a prediction.
  std::vector<std::string> drafters;
  std::string draft_model_path;             // draft, eagle3: its folder; alone it implies draft
  std::string draft_quantization = "none";  // of the draft model or head, as `quantization`
  // mtp: it drafts the first so many tokens of the vocabulary, the frequent ones, since the rows of
  // the output head are most of what a proposal reads; 0: all
  int64_t draft_vocabulary = 65536;
  // mtp, eagle3: steps in flight, each launched before the drafts of the one before it are
  // verified, so that a device never waits for the host. 1: a step waits until the one before it is
  // read.
  int scheduler_steps = 1;
  int ngram_tokens_min = 2;   // ngram: shortest match, in tokens
  int ngram_tokens_max = 32;  // ngram: longest match compared; of those this long the latest wins
  // Draft only while measured step times show a gain. The number of steps then depends on the
  // clock; the tokens do not.
  bool measure_drafts = true;

  int64_t prompt_tokens_max = int64_t{1} << 20;
  int top_logprobs_max = 128;
  int stop_token_ids_max = 128;
  int logit_bias_max = 1024;
  int stop_strings_max = 64;
  int stop_string_bytes_max = 4096;

  CacheStorageConfig cache_storage;

  Status validate() const;
  int64_t prefill_tokens() const;  // chunked_prefill_tokens, or what 0 stands for
};

}  // namespace banyan
