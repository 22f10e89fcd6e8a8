// Precompiled for the rooms that speak Asio or JSON.
#pragma once
#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "base/text.h"
