// Which rows of a run become which picture.
#pragma once
#include <string>
#include <vector>

#include "report.h"

namespace bench {

struct NamedPicture {
  std::string file, alt, svg;
};

// Only pictures that have something to show.
std::vector<NamedPicture> draw(const Report& report);

}  // namespace bench
