#include "http/router.h"

#include <algorithm>
#include <forward_list>

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

constexpr std::size_t kUsualCaptures = 4;

bool has_encoded_nul(std::string_view path) { return path.find("%00") != std::string_view::npos; }

}  // namespace

// One walk through the tree: literal segments win over captures, captures over rests, and a branch without the
// method is left for the next one, remembering what it would have allowed. No node is visited twice.
struct Router::Walk {
  const Router& router;
  std::string_view method;
  Match match;
  std::vector<std::string_view> captured;  // values on the way to the current node
  std::forward_list<std::string> decoded;  // what captured values point to when they were escaped

  // `rest` starts with the slash in front of the next segment, or is empty.
  bool visit(const Node& node, std::string_view rest);
  bool visit_next(const Node& node, std::string_view segment, std::string_view rest);
  bool take_rest(const Node& node, std::string_view rest);
  std::optional<std::string_view> decode(std::string_view segment);
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
  Walk walk{*this, method, {}, {}, {}};
  walk.captured.reserve(kUsualCaptures);
  walk.visit(nodes_[0], raw_path == "/" ? std::string_view{} : raw_path);
  return std::move(walk.match);
}

bool Router::Walk::visit(const Node& node, std::string_view rest) {
  if (rest.empty()) return choose(node.routes) || take_rest(node, rest);
  auto end = rest.find('/', 1);
  auto segment = rest.substr(1, end == std::string_view::npos ? end : end - 1);
  auto behind = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
  return visit_next(node, segment, behind) || take_rest(node, rest.substr(1));
}

bool Router::Walk::visit_next(const Node& node, std::string_view segment, std::string_view rest) {
  auto text = decode(segment);
  // A bad escape is no segment of any pattern, though a rest may still take it as it stands.
  if (!text) return false;
  auto literal = node.literals.find(*text);
  if (literal != node.literals.end() && visit(router.nodes_[literal->second], rest)) return true;
  if (node.capture == 0 || text->empty()) return false;
  captured.push_back(*text);
  if (visit(router.nodes_[node.capture], rest)) return true;
  captured.pop_back();
  return false;
}

bool Router::Walk::take_rest(const Node& node, std::string_view rest) {
  if (node.rests.empty()) return false;
  captured.push_back(rest);
  if (choose(node.rests)) return true;
  captured.pop_back();
  return false;
}

std::optional<std::string_view> Router::Walk::decode(std::string_view segment) {
  if (segment.find('%') == std::string_view::npos) return segment;
  auto text = percent_decode(segment, false);
  if (!text) return std::nullopt;
  return decoded.emplace_front(std::move(*text));
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
