// A table of routes: method + pattern -> handler. Patterns are segments; "{name}" matches one segment,
// "{name*}" at the end matches the rest (also empty). Segments are percent-decoded once, after splitting, so an
// encoded slash or ".." is only text of a segment; a rest is given raw, as it was sent, without its leading slash.
// Literal segments win over "{name}", which wins over "{name*}"; "{name}" never matches an empty segment.
// A path with an encoded NUL matches nothing.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "http/http.h"

namespace osb::http {

class Router {
 public:
  using Params = std::map<std::string, std::string, std::less<>>;
  using RouteHandler = std::function<Task<void>(Request&, Responder&, const Params&)>;
  struct Route {
    std::string method;  // "*" = any
    std::string pattern;
    RouteHandler handler;
  };
  struct Match {
    const Route* route = nullptr;
    Params params;
    bool path_known = false;           // some route has this path, with another method
    std::vector<std::string> allowed;  // its methods, for the Allow header
  };

  void add(std::string method, std::string pattern, RouteHandler handler);
  Match find(std::string_view method, std::string_view raw_path) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  struct Node {
    std::map<std::string, std::size_t, std::less<>> literals;  // to other nodes
    std::size_t capture = 0;                                   // node behind "{name}"; 0 = none, the root is behind nothing
    std::vector<std::size_t> routes;                           // that end here
    std::vector<std::size_t> rests;                            // that end here with "{name*}"
  };
  struct Walk;
  std::size_t descend(std::size_t from, std::string_view segment);

  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> names_;  // of the captures, by route
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace osb::http
