// Marks of a stream's events, by which a client whose server is gone goes on at another: `id:`
// lines that say how many events each choice had, and what is left out for a client that has some.
//
// The events of a choice follow from its tokens, so a request with the same id, whose seed follows
// from that if it has none, makes the same ones again on any server over the same weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"

namespace banyan {

class StreamMarks {
 public:
  static constexpr size_t kChoicesMax = 64;  // of a stream that is marked
  // The Last-Event-ID of clients that have nothing yet and want ids. Others get none: many take
  // every line of a stream for data.
  static constexpr std::string_view kNothing = "0";

  explicit StreamMarks(size_t choices) : counts_(choices + 1), had_(choices + 1) {}

  // What the client has: its Last-Event-ID, as "7" or, of two choices, "7,9"; behind a semicolon
  // those that belong to no choice. kInvalidArgument: it is none of this stream.
  Status resume(std::string_view last_event_id);

  // Takes events of a choice, each followed by a blank line, and leaves those that the client
  // lacks, with their ids.
  void mark(size_t choice, std::string& events) { mark_each(choice, events); }
  // The same for those of no choice, at the end of the stream.
  void mark_end(std::string& events) { mark_each(counts_.size() - 1, events); }

 private:
  void mark_each(size_t counter, std::string& events);
  void append_id(std::string& out) const;

  std::vector<int64_t> counts_, had_;  // by choice; then of no choice
  std::string marked_;
};

}  // namespace banyan
