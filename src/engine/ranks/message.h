// Values as bytes, for ranks, which run the same program on the same kind of machine: the layout is
// that of memory, and the members of a struct follow each other.
#pragma once

#include <array>
#include <boost/pfr.hpp>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "ops/batch.h"

namespace banyan {

template <class T>
constexpr bool kPlain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

// Calls f with each member of a struct, whatever they are: a new one is sent without a change here.
template <class T, class F>
void for_each_member(T& value, F f) {
  boost::pfr::for_each_field(value, f);
}

// g++ 12 fails to count these members; a new one does not compile until it is added.
template <class B, class F>
  requires std::is_same_v<std::remove_const_t<B>, Batch>
void for_each_member(B& batch, F f) {
  auto& [tokens, positions, axes, embeddings, spans, prompts, drafts, adapters, shared, tables,
         copies, logits, hidden] = batch;
  f(tokens), f(positions), f(axes), f(embeddings), f(spans), f(prompts), f(drafts), f(adapters);
  f(shared), f(tables), f(copies), f(logits), f(hidden);
}

class MessageWriter {
 public:
  explicit MessageWriter(std::vector<std::byte>& to) : to_(to) {}

  template <class T>
  void put(const T& value) {
    if constexpr (kPlain<T>) {
      append(&value, sizeof(value));
    } else {
      for_each_member(value, [this](const auto& member) { this->put(member); });
    }
  }
  void put(const std::string& text) { put_all(std::span(text)); }
  template <class T>
  void put(const std::vector<T>& values) {
    put_all(std::span(values));
  }
  template <class T>
  void put(std::span<const T> values) {
    put_all(values);
  }
  template <class T, size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& value : values) put(value);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }

 private:
  template <class T, size_t N>
  void put_all(std::span<T, N> values) {
    put(values.size());
    if constexpr (kPlain<std::remove_const_t<T>>) {
      append(values.data(), values.size_bytes());
    } else {
      for (const auto& value : values) put(value);
    }
  }
  void append(const void* from, size_t bytes) {
    size_t end = to_.size();
    to_.resize(end + bytes);
    if (bytes > 0) std::memcpy(to_.data() + end, from, bytes);
  }

  std::vector<std::byte>& to_;
};

class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> from) : from_(from) {}

  template <class T>
  void get(T& value) {
    if constexpr (kPlain<T>) {
      take(&value, sizeof(value));
    } else {
      for_each_member(value, [this](auto& member) { this->get(member); });
    }
  }
  void get(std::string& text) { get_all(text); }
  template <class T>
  void get(std::vector<T>& values) {
    get_all(values);
  }
  template <class T, size_t N>
  void get(std::array<T, N>& values) {
    for (T& value : values) get(value);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    get(has_value);
    if (has_value) {
      get(value.emplace());
    } else {
      value.reset();
    }
  }
  template <class T>
  T get() {
    T value{};
    get(value);
    return value;
  }
  bool done() const { return from_.empty(); }

 private:
  template <class Container>
  void get_all(Container& values) {
    auto count = get<size_t>();
    CHECK(count <= from_.size());
    values.resize(count);
    if constexpr (kPlain<typename Container::value_type>) {
      take(values.data(), count * sizeof(typename Container::value_type));
    } else {
      for (auto& value : values) get(value);
    }
  }
  void take(void* to, size_t bytes) {
    CHECK(bytes <= from_.size());
    if (bytes > 0) std::memcpy(to, from_.data(), bytes);
    from_ = from_.subspan(bytes);
  }

  std::span<const std::byte> from_;
};

}  // namespace banyan
