// State: what the body of a program sees of its stream (program/stream.h).
#include <mutex>

#include "program/stream.h"

namespace banyan {

State& State::operator+=(const Part& part) {
  stream_->add(part.primitives_);
  return *this;
}

void State::set(std::string name, std::string value) {
  stream_->set(std::move(name), std::move(value));
}

Result<std::string> State::get(std::string_view name) const {
  return stream_->get(name);
}

std::string State::operator[](std::string_view name) const {
  Result<std::string> text = stream_->get(name);
  if (!text) throw ProgramStopped(std::move(text).error());
  return *std::move(text);
}

Result<CallInfo> State::info(std::string_view name) const {
  return stream_->info(name);
}

Result<std::string> State::read_more(std::string_view name, size_t* offset) const {
  return stream_->read_more(name, offset);
}

bool State::has(std::string_view name) const {
  std::lock_guard lock(stream_->instance()->mutex);
  return stream_->variables().contains(name);
}

std::vector<std::string> State::names() const {
  std::lock_guard lock(stream_->instance()->mutex);
  std::vector<std::string> names;
  for (const auto& [name, variable] : stream_->variables()) names.push_back(name);
  return names;
}

Result<std::string> State::text() const {
  return stream_->text();
}

Result<std::vector<ChatMessage>> State::messages() const {
  return stream_->messages();
}

std::vector<State> State::fork(int count) {
  std::vector<State> branches;
  for (auto& stream : stream_->fork(count)) branches.push_back(State(std::move(stream)));
  return branches;
}

void State::join(std::span<const State> branches) {
  std::vector<std::shared_ptr<Stream>> streams;
  for (const State& branch : branches) streams.push_back(branch.stream_);
  stream_->join(streams);
}

Status State::wait() const {
  return stream_->wait();
}

std::optional<Error> State::error() const {
  std::lock_guard lock(stream_->instance()->mutex);
  return stream_->error();
}

void State::release() const {
  stream_->release();
}

void State::cancel() const {
  stream_->instance()->cancel();
}

CallUsage State::usage() const {
  std::lock_guard lock(stream_->instance()->mutex);
  return stream_->instance()->usage;
}

std::string join_text(std::span<const State> branches, std::string_view name,
                      std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < branches.size(); ++i) {
    if (i > 0) joined += separator;
    joined += branches[i][name];
  }
  return joined;
}

}  // namespace banyan
