// Every choice and every limit of an engine, each with its unit. 0 means "choose for me" where the
// comment says so; validate() names the first value that is out of range.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "banyan/status.h"

namespace banyan {

// Called while weights are read; from the loading thread.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// Keeps cached prefixes outside of memory, where they survive a restart: exactly the bytes that
// layers remember, under a key that names all they depend on.
struct CacheStorageConfig {
  std::string backend;     // disk, file (a shared file system), redis; empty: none
  std::string directory;   // disk, file: made if need be
  int64_t size_bytes = 0;  // disk: of all that is kept in the directory
  std::string url;         // redis: redis://[[user]:password@]host[:port][/database], or unix://
  int64_t write_budget_bytes_per_day = 0;  // 0: none

  // write_back: pages that are soon evicted, when nothing else is to do those that were used twice
  // or are held, and at the end all. write_through: every page soon after it is computed.
  // write_through_selective: a page at its second use.
  std::string write_policy = "write_back";
  double flush_s = 10;  // for what is left to write at the end

  // What a request does whose prefix is being loaded. best_effort: goes on with what is there when
  // its turn comes. timeout: waits a while. wait_complete: waits.
  std::string prefetch_policy = "timeout";
  int64_t prefetch_tokens_min = 256;  // less is not loaded
  // timeout: this, and so much for each 1,024 tokens; where both are 0, 0.05 s and 1.5 times what
  // loading should take.
  double prefetch_timeout_s = 0, prefetch_timeout_per_ki_token_s = 0;

  Status validate() const;
};

struct EngineConfig {
  std::string model_path;  // a folder as Hugging Face publishes it
  std::string gguf_path;   // a GGUF file whose weights stand in for the folder's; empty: none

  std::string dtype = "auto";  // auto (as stored), bf16, f32
  // auto (the fastest on this machine for the model), portable, avx2, avx512, avx512_vnni,
  // avx512_bf16, amx; fenced: to debug.
  std::string kernels = "auto";
  std::string load_format = "auto";  // auto (safetensors), dummy (seeded random numbers)
  int threads = 0;                   // 0: the processors that this process may use
  bool pin_threads = true;  // tie them to processors, where that helps (base/os/affinity.h)

  // What weights become while they are read: none (as stored), weight-only (as stored, with
  // activations of 16 bits or more), int8, int4, fp8, mxfp4, int4:64.
  std::string quantization = "none";
  // "REGEX=FORMAT": another format, or none, weight-only, bf16, f16, f32, for the matrices whose
  // names the regex is found in; the last one that matches decides.
  std::vector<std::string> quantization_overrides;

  // The form that latent attention (MLA) takes for a prompt's positions: absorbed, as it is for
  // generated ones; or expanded, which takes fewer operations and more memory. The latter reuses no
  // generated state, as recurrent models, and is refused where no layer is MLA.
  std::string mla_prefill = "absorbed";

  // What keys and values, or latents, of tokens are kept as: auto (the weights' type), bf16, f32,
  // or quantised to half the bytes of bf16, each row by itself: fp8_e4m3 (or fp8), int8. Recurrent
  // states stay f32. Refused where no layer keeps anything for each token.
  std::string kv_cache_dtype = "auto";

  int64_t context_length_tokens = 0;  // 0: the model's own
  int page_size_tokens = 64;          // a power of two from 1 to 1024
  int64_t total_tokens_max = 0;       // in all sequences together; 0: what the memory allows
  double memory_fraction = 0.8;       // of the memory available after the weights, for the states
  int running_max = 8;                // sequences in flight
  int queued_max = 256;               // requests waiting
  int chunked_prefill_tokens =
      512;  // of prompts in one step, not counting one token of each sequence

  // fcfs: first come, first served. lpm: longest cached prefix first, with aging. priority: highest
  // priority first.
  std::string schedule_policy = "lpm";
  int aging_period = 4;     // lpm: one of so many admissions is the request that has waited longest
  bool radix_cache = true;  // keep every computed prefix for later requests
  int64_t snapshot_interval_tokens = 16384;  // between snapshots of recurrent state in long prompts
  double snapshot_fraction = 0.3;            // of the states' memory, for those snapshots
  // Recurrent models, and expanded prefill: also reuse the states of generated tokens. A chat's
  // next turn then resumes after the last answer and not after the last prompt, but no longer has
  // the bits of a run without the cache, which would have computed the answer in another form.
  bool reuse_generated_state = false;
  // Launch the next step before the results of the last one are read, where no constraint or
  // penalty needs its tokens: a device then never waits for the host. Changes no result.
  bool overlap_schedule = false;
  bool expert_counts = false;  // mixtures of experts: count how often each is chosen
  // Fill in EngineInfo::state_digest. All weights are read once and hashed; the hashes stay in the
  // user's cache folder until a file changes.
  bool state_digest = false;

  // Tokens that are proposed ahead of the model take rows of a step and are kept where the model,
  // asked for each, draws the same: they save steps and change no output.
  bool jump_forward = true;   // propose the text that a constraint leaves no choice about
  int draft_tokens_max = 32;  // of a sequence in one step; 0: none are proposed
  int draft_tokens_min = 1;   // fewer than this are not proposed, unless a constraint forces them
  // Who proposes besides: ngram (what followed the last tokens earlier in the same text), suffix
  // (that, and cached texts of the same namespace), mtp (the model's own layer that predicts a
  // further token), draft (a smaller model of the same vocabulary). Of several, the one that
  // promises most does. With none, ngram still serves requests that predict their output.
  std::vector<std::string> drafters;
  std::string draft_model_path;             // draft: a folder; it is meant where nothing is named
  std::string draft_quantization = "none";  // of that model, as `quantization`
  int ngram_tokens_min = 2;                 // ngram: so many last tokens must agree
  int ngram_tokens_max = 32;  // ngram: of longer matches the latest is taken, not the longest
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
};

}  // namespace banyan
