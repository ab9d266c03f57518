#include <cstdio>

#include "perfring/perfring.h"

int main() {
  std::puts("perfring " PERFRING_VERSION);
  const auto array = perfring::PerfEventArray::from_fd(-1);
  std::puts(array ? "there is a map" : array.error().explain().c_str());
}
