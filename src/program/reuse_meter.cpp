#include "program/reuse_meter.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

// A trie of token sequences.
class Trie {
 public:
  // Adds `ids` and returns the length of the prefix that was there before.
  size_t add(const std::vector<TokenId>& ids) {
    size_t node = 0, known = 0;
    for (TokenId id : ids) {
      auto [next, fresh] = next_.try_emplace({node, id}, next_.size() + 1);
      node = next->second;
      known += fresh ? 0 : 1;
    }
    return known;
  }

 private:
  std::map<std::pair<size_t, TokenId>, size_t> next_;
};

}  // namespace

void ReuseMeter::note(Note note) {
  std::lock_guard lock(mutex_);
  notes_.push_back(std::move(note));
}

Backend::Cancel ReuseMeter::generate(GenCall call, PieceSink piece, Done<GenResult> done) {
  Note answered{.text = call.prompt.text, .special_tokens = !call.prompt.from_template};
  Note asked = answered;
  asked.asked = true;
  note(std::move(asked));
  auto end = [this, answered = std::move(answered),
              done = std::move(done)](Result<GenResult> result) mutable {
    if (result) {
      answered.text += result->text;
      note(std::move(answered));
    }
    done(std::move(result));
  };
  return inner_->generate(std::move(call), std::move(piece), std::move(end));
}

Backend::Cancel ReuseMeter::score(ScoreCall call, Done<ScoreResult> done) {
  for (const std::string& text : call.texts) {
    note({.text = call.prompt.text + text,
          .special_tokens = !call.prompt.from_template,
          .asked = true,
          .computed_bytes = text.size()});
  }
  return inner_->score(std::move(call), std::move(done));
}

Result<Reuse> ReuseMeter::reuse(const Tokenizer& tokenizer) const {
  std::lock_guard lock(mutex_);
  Reuse reuse;
  Trie seen;
  for (const Note& note : notes_) {
    EncodeOptions options{.add_special_tokens = note.special_tokens};
    std::vector<TokenId> ids = TRY(tokenizer.encode(note.text, options));
    size_t known = seen.add(ids);
    if (!note.asked) continue;
    std::string_view before =
        std::string_view(note.text).substr(0, note.text.size() - note.computed_bytes);
    size_t most =
        note.computed_bytes == 0 ? ids.size() : TRY(tokenizer.encode(before, options)).size();
    if (most > 0) --most;  // the last token is always computed
    reuse.prompt_tokens += std::ssize(ids);
    reuse.reusable_tokens += std::min(known, most);
  }
  return reuse;
}

}  // namespace banyan
