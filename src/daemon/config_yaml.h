// YAML text as a plain tree. Configuration needs a small part of YAML, and only that part is read: one document,
// maps, lists and scalars, no aliases or anchors or tags, no member twice, at most 8 levels and 1 MiB.
#pragma once
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace osb::daemon {

inline constexpr std::size_t kMaxYamlBytes = 1024 * 1024;
inline constexpr std::size_t kMaxYamlDepth = 8;

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Member {
    std::string name;
    std::size_t line;
    std::size_t node;  // index in YamlDocument::nodes
  };
  Kind kind = Kind::null;
  std::size_t line = 0;  // counted from 1
  std::string text;
  std::vector<Member> members;
  std::vector<std::size_t> items;
};

struct YamlDocument {
  std::vector<YamlNode> nodes;  // the root is the first; empty = an empty document
};

// Errc::invalid_argument; what() begins with "line N: " where a line is known.
Result<YamlDocument> parse_yaml(std::string_view text);
std::string_view name_of(YamlNode::Kind kind);
// The node as JSON: every scalar is a text, members without a value are left out.
boost::json::value as_json(const YamlDocument& document, const YamlNode& node);

}  // namespace osb::daemon
