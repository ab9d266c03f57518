#ifndef HARNESS_SIMULATOR_INTRUDER_H_
#define HARNESS_SIMULATOR_INTRUDER_H_

#include "harness/simulator/site.h"

namespace perfring::simulator {

// In a kernel's place: writes headers and positions of all kinds, at any moment, the drain's midst
// included. All that it writes is fields of the format, so that it means the same on every machine.
class Intruder {
 public:
  explicit Intruder(Site& site) : site_{site} {}
  void run();

 private:
  void write_header();
  void write_head();
  void step();

  Site& site_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_INTRUDER_H_
