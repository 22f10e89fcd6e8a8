#include "http/router.h"

#include <algorithm>

#include "base/text.h"

namespace osb::http {
namespace {

// The segments of an absolute path; "/" has none, "/a/" has "a" and "".
std::vector<std::string_view> segments_of(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.empty()) return {};
  return split(path, '/');
}

bool is_capture(std::string_view segment) { return segment.size() > 2 && segment.front() == '{' && segment.back() == '}'; }
bool is_rest(std::string_view segment) { return is_capture(segment) && segment[segment.size() - 2] == '*'; }

std::string capture_name(std::string_view segment) {
  auto name = segment.substr(1, segment.size() - 2);
  if (name.ends_with('*')) name.remove_suffix(1);
  return std::string(name);
}

bool has_encoded_nul(std::string_view path) { return path.find("%00") != std::string_view::npos; }

}  // namespace

// One walk through the tree: literal segments win over captures, captures over rests, and a branch without the
// method is left for the next one, remembering what it would have allowed.
struct Router::Walk {
  const Router& router;
  std::string_view method;
  std::string_view path;              // without the leading slash
  std::vector<std::string_view> raw;  // segments
  std::vector<std::string> decoded;
  std::vector<std::string_view> captured;  // values on the way to the current node
  Match match;

  bool visit(std::size_t node_index, std::size_t depth);
  bool choose(const std::vector<std::size_t>& candidates);
  void fill(std::size_t route_index);
};

void Router::add(std::string method, std::string pattern, RouteHandler handler) {
  std::size_t node = 0;
  std::vector<std::string> names;
  bool rest = false;
  for (auto segment : segments_of(pattern)) {
    if (is_capture(segment)) names.push_back(capture_name(segment));
    if ((rest = is_rest(segment))) break;
    node = descend(node, segment);
  }
  auto& ends = rest ? nodes_[node].rests : nodes_[node].routes;
  ends.push_back(routes_.size());
  names_.push_back(std::move(names));
  routes_.push_back({std::move(method), std::move(pattern), std::move(handler)});
}

std::size_t Router::descend(std::size_t from, std::string_view segment) {
  auto next = nodes_.size();
  if (is_capture(segment)) {
    if (nodes_[from].capture != 0) return nodes_[from].capture;
    nodes_[from].capture = next;
  } else {
    auto [found, added] = nodes_[from].literals.try_emplace(std::string(segment), next);
    if (!added) return found->second;
  }
  nodes_.emplace_back();
  return next;
}

Router::Match Router::find(std::string_view method, std::string_view raw_path) const {
  if (!raw_path.starts_with('/') || has_encoded_nul(raw_path)) return {};
  Walk walk{*this, method, raw_path.substr(1), segments_of(raw_path), {}, {}, {}};
  walk.decoded.reserve(walk.raw.size());
  walk.visit(0, 0);
  return std::move(walk.match);
}

bool Router::Walk::visit(std::size_t node_index, std::size_t depth) {
  const auto& node = router.nodes_[node_index];
  if (depth == raw.size() && choose(node.routes)) return true;
  if (depth < raw.size()) {
    if (decoded.size() == depth) {
      auto text =
          raw[depth].find('%') == std::string_view::npos ? std::optional(std::string(raw[depth])) : percent_decode(raw[depth], false);
      // A bad escape is no segment of any pattern, though a rest may still take it as it stands.
      if (text) decoded.push_back(std::move(*text));
    }
    if (decoded.size() > depth) {
      auto literal = node.literals.find(decoded[depth]);
      if (literal != node.literals.end() && visit(literal->second, depth + 1)) return true;
      if (node.capture != 0 && !decoded[depth].empty()) {
        captured.push_back(decoded[depth]);
        if (visit(node.capture, depth + 1)) return true;
        captured.pop_back();
      }
    }
  }
  if (node.rests.empty()) return false;
  auto tail = depth < raw.size() ? path.substr(static_cast<std::size_t>(raw[depth].data() - path.data())) : std::string_view{};
  captured.push_back(tail);
  if (choose(node.rests)) return true;
  captured.pop_back();
  return false;
}

bool Router::Walk::choose(const std::vector<std::size_t>& candidates) {
  for (auto index : candidates) {
    const auto& route = router.routes_[index];
    if (route.method == "*" || route.method == method) {
      fill(index);
      return true;
    }
    match.path_known = true;
    if (std::find(match.allowed.begin(), match.allowed.end(), route.method) == match.allowed.end()) match.allowed.push_back(route.method);
  }
  return false;
}

void Router::Walk::fill(std::size_t route_index) {
  match.route = &router.routes_[route_index];
  match.path_known = true;
  const auto& names = router.names_[route_index];
  for (std::size_t i = 0; i < names.size(); ++i) match.params.insert_or_assign(names[i], std::string(captured[i]));
}

}  // namespace osb::http
