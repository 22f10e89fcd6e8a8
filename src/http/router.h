// A table of routes: method + pattern -> handler. Patterns are segments; "{name}" matches one segment,
// "{name*}" at the end matches the rest (also empty). Segments are percent-decoded once, after splitting.
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
    bool path_known = false;            // some route has this path, with another method
    std::vector<std::string> allowed;   // its methods, for the Allow header
  };

  void add(std::string method, std::string pattern, RouteHandler handler);
  Match find(std::string_view method, std::string_view raw_path) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace osb::http
