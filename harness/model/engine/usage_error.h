#ifndef HARNESS_MODEL_ENGINE_USAGE_ERROR_H_
#define HARNESS_MODEL_ENGINE_USAGE_ERROR_H_

#include <stdexcept>

namespace perfring::model {

// Thrown if a program does something that the checker does not support, or that its bounds forbid.
class UsageError : public std::runtime_error {
  using runtime_error::runtime_error;
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_USAGE_ERROR_H_
