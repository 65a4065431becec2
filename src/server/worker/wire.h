// What a router and a worker say to each other about one request: a GenerateRequest one way,
// TokenEvents as lines the other. Both ends are of one version; another is refused.
//
// A request is a line of JSON, then two lists of token ids (server/worker/id_list.h): the prompt
// and `resume_tokens`.
//
// A line of an answer is one of
//   [position, flags, token, logprob, finish, matched_stop, cached_tokens, restored_tokens,
//    queued_ns, drafts, draft_tokens, [top], [chosen], [embedding], error code, "error message"]
//   {"rejected": [error code, "message"]}   nothing runs; the last line
//   {"resumable": true}                     the worker leaves; another may go on; the last line
// where flags are 1: has a token, 2: of the prompt, 4: drafted. Log-probabilities are the bits of
// their f32, so that they arrive as they were, and so are the values of an embedding; [top] is
// token, logprob, token, logprob...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/constraint_source.h"
#include "banyan/request.h"
#include "base/digest.h"
#include "base/json.h"

namespace banyan {

inline constexpr int kWorkerProtocol = 5;

// A request and the source of its constraint; `request.constraint` is null.
struct WireRequest {
  int version = kWorkerProtocol;
  GenerateRequest request;
  ConstraintSource constraint;
  std::string name;  // of the run, for a router that takes over (run_logs.h); empty: none will
};

// The body of POST /worker/generate, and its type.
std::string write_request(const WireRequest& request);
inline constexpr const char* kWireRequestType = "application/octet-stream";
// kInvalidArgument names the first member that is missing, unknown or of the wrong type.
Result<WireRequest> read_request(std::string_view body);
// Of what a run's output depends on: not of its name, of time that has passed, or of output that
// was drawn elsewhere.
Digest request_digest(const WireRequest& request);

void append_event(const TokenEvent& event, std::string& out);
void append_rejection(const Error& error, std::string& out);
inline constexpr std::string_view kResumableLine = "{\"resumable\":true}\n";

// One parsed line.
struct WireLine {
  enum class Kind : uint8_t { kEvent, kRejected, kResumable };
  Kind kind = Kind::kEvent;
  TokenEvent event;  // its spans point into this object; kRejected: `event.error` is the reason
  std::vector<TokenLogprob> top, chosen;
  std::vector<float> embedding;
};

// Parses a line, without its line break, into `line`, reusing its memory. kCorrupt: it is none of
// the above.
Status read_line(std::string_view text, WireLine& line);

}  // namespace banyan
