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

  explicit StreamMarks(size_t choices)
      : counts_(choices + 1), had_(choices + 1), places_(choices) {}

  // What the client has: its Last-Event-ID, as "7" or, for two choices, "7,9"; after a semicolon,
  // the number of events that belong to no choice. After the number of a choice may stand the
  // worker that computed it: "7@5f3a". kInvalidArgument: not an id of this stream.
  Status resume(std::string_view last_event_id);
  // The worker of a choice; empty: unknown. Valid until the next mark() of the choice.
  std::string_view place(size_t choice) const { return places_[choice]; }

  // Takes events of a choice, each followed by a blank line, and the worker that it runs on, if
  // any. Keeps those that the client lacks, with their ids.
  void mark(size_t choice, std::string& events, std::string_view place = {}) {
    if (choice < places_.size()) places_[choice] = place;
    mark_each(choice, events);
  }
  // The same for events that belong to no choice, at the end of the stream.
  void mark_end(std::string& events) { mark_each(counts_.size() - 1, events); }

 private:
  void mark_each(size_t counter, std::string& events);
  void append_id(std::string& out) const;

  std::vector<int64_t> counts_, had_;  // by choice; then of no choice
  std::vector<std::string> places_;    // by choice
  std::string marked_;
};

}  // namespace banyan
