// Multipart: multipart/form-data in pieces, as they come. Sans-I/O; holds no content, only heads of parts (at most 8 KiB).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace osb::http {

class Multipart {
 public:
  static constexpr std::size_t kMaxBoundary = 70;  // RFC 2046
  static constexpr std::size_t kMaxHead = 8 * 1024;

  // From a Content-Type of multipart/form-data; nullopt when it is another or its boundary is not one.
  static std::optional<std::string> boundary_of(std::string_view content_type);
  explicit Multipart(std::string_view boundary);

  enum class Kind { more, part, data, part_end, end, failed };
  struct Event {
    Kind kind = Kind::more;
    std::string_view data = {};  // valid until the next call
  };
  // Takes bytes off the front of `input` up to the next event; `more` when all is taken. How a body is cut into inputs
  // changes nothing but where data is cut.
  Event next(std::string_view& input);

  const std::string& name() const { return name_; }  // of the part that began last; empty when it has none
  std::string_view problem() const { return problem_; }

 private:
  enum class State { preamble, body, delimiter_end, head, done, failed };
  Event content(std::string_view& input);
  Event found();
  Event delimiter_end(std::string_view& input);
  Event head(std::string_view& input);
  Event fail(std::string_view problem);

  std::string delimiter_;    // CR LF "--" boundary: a CR is nowhere in it but at its front
  std::size_t matched_ = 2;  // of the delimiter, at the end of earlier input; the body begins as if after a line
  State state_ = State::preamble;
  std::string line_;
  std::string name_;
  std::string_view problem_;
};

// A parameter of "form-data; name=\"x\"", quotes and backslashes taken off; nullopt when it is not there.
std::optional<std::string> header_parameter(std::string_view value, std::string_view name);

}  // namespace osb::http
