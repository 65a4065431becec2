// Event ids by which a client that lost its server continues at another one: `id:` lines that count
// the events of each choice, and the skipping of events that the client has.
//
// The events of a choice follow from its tokens. A request with the same id and no seed of its own
// gets the same seed, so it produces the same events on any server with the same weights.
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
  // The Last-Event-ID of clients that have nothing yet and want ids. Others get none, since many
  // clients take every line of a stream for data.
  static constexpr std::string_view kNothing = "0";

  explicit StreamMarks(size_t choices) : counts_(choices + 1), had_(choices + 1) {}

  // What the client has: its Last-Event-ID, as "7" or, for two choices, "7,9"; after a semicolon,
  // the number of events that belong to no choice. kInvalidArgument: not an id of this stream.
  Status resume(std::string_view last_event_id);

  // Takes events of a choice, each followed by a blank line. Keeps those that the client lacks,
  // with their ids.
  void mark(size_t choice, std::string& events) { mark_each(choice, events); }
  // The same for events that belong to no choice, at the end of the stream.
  void mark_end(std::string& events) { mark_each(counts_.size() - 1, events); }

 private:
  void mark_each(size_t counter, std::string& events);
  void append_id(std::string& out) const;

  std::vector<int64_t> counts_, had_;  // by choice; then of no choice
  std::string marked_;
};

}  // namespace banyan
