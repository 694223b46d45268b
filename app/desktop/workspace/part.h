// A part of the workspace that one feature writes. Only who uses the part includes its header, so that a change of it
// doesn't compile every panel again.
#pragma once

#include <memory>

namespace stepladder {

template <class Value>
class Part {
 public:
  Part() : value_(std::make_shared<Value>()) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  Value& operator*() { return *value_; }
  const Value& operator*() const { return *value_; }
  Value* operator->() { return value_.get(); }
  const Value* operator->() const { return value_.get(); }

 private:
  const std::shared_ptr<Value> value_;  // shared, since that needs no complete type; never null
};

}  // namespace stepladder
