// Result<T> and Error: how every room reports expected failure.
//
// An Error says what kind of failure it is (Errc: what the caller can do about it), what we were doing,
// and, where a client will read it, a stable code, the field at fault and the fix. Context is added on the
// way up with in(); the log line is written once, where the failure is decided.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace osb {

enum class Errc {
  invalid_argument,  // the request is wrong; the same request will fail again
  malformed,         // the request has the wrong shape (types, missing members)
  not_found,
  conflict,  // the object is in a state that does not allow this
  unauthenticated,
  permission_denied,
  too_large,
  exhausted,    // a limit or quota is reached; later may work
  unavailable,  // a part we need is not there right now
  unsupported,  // this runtime or build cannot do it
  timeout,
  internal,
};

class [[nodiscard]] Error {
 public:
  Error(Errc kind, std::string what, int sys = 0) : kind_(kind), sys_(sys), what_(std::move(what)) {}

  // errno is evidence, not a verdict: a room that knows the meaning passes its own kind
  // (ENOENT on the caller's file is not_found; ENOENT on our cgroup file is internal).
  static Error from_errno(std::string what, int sys, Errc kind = Errc::internal) {
    return Error(kind, std::move(what) + ": " + std::strerror(sys), sys);
  }

  Errc kind() const noexcept { return kind_; }
  int sys() const noexcept { return sys_; }
  const std::string& what() const noexcept { return what_; }
  const std::string& code() const noexcept { return code_; }    // stable wire code, empty = chosen by the renderer
  const std::string& field() const noexcept { return field_; }  // "resourceLimits.memory"
  const std::string& hint() const noexcept { return hint_; }    // one sentence that fixes it

  Error in(std::string_view context) && {
    what_ = std::string(context) + ": " + what_;
    return std::move(*this);
  }
  Error with_code(std::string_view code) && {
    code_ = code;
    return std::move(*this);
  }
  Error at(std::string_view field) && {
    field_ = field;
    return std::move(*this);
  }
  Error with_hint(std::string_view hint) && {
    hint_ = hint;
    return std::move(*this);
  }

 private:
  Errc kind_;
  int sys_;
  std::string what_;
  std::string code_;
  std::string field_;
  std::string hint_;
};

struct Ok {};

template <class T = Ok>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const noexcept { return v_.index() == 0; }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T&& operator*() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  Error& error() & { return std::get<1>(v_); }
  const Error& error() const& { return std::get<1>(v_); }
  Error&& error() && { return std::get<1>(std::move(v_)); }

 private:
  std::variant<T, Error> v_;
};

}  // namespace osb

#define OSB_CAT_(a, b) a##b
#define OSB_CAT(a, b) OSB_CAT_(a, b)
#define OSB_TRY_(tmp, lhs, expr, ret)   \
  auto tmp = (expr);                    \
  if (!tmp) ret std::move(tmp).error(); \
  lhs = *std::move(tmp)
// TRY(auto fd, open_dir(path));            in a function returning Result
#define TRY(lhs, expr) OSB_TRY_(OSB_CAT(try_, __COUNTER__), lhs, expr, return)
// CO_TRY(auto r, co_await call());         in a coroutine returning Task<Result>
#define CO_TRY(lhs, expr) OSB_TRY_(OSB_CAT(try_, __COUNTER__), lhs, expr, co_return)
// CHECK_OK(write_all(fd, text));           for Result<> whose value nobody needs
#define CHECK_OK(expr)                                       \
  do {                                                       \
    if (auto r_ = (expr); !r_) return std::move(r_).error(); \
  } while (0)
