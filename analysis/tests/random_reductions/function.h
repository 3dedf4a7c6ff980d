// Random network functions in C, with random configurations for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::random {

/// A function that is started with CONFIGURATION IN.pcap OUT.pcap LOG.
struct NetworkFunction {
    std::string source;
    std::vector<std::string> configurations;
};

/// Return the function of a seed.
NetworkFunction networkFunction(uint64_t seed, unsigned configurations);

/// Return packets that such functions tell apart, some of them cut short.
std::vector<std::string> randomTraffic(uint64_t seed, unsigned count);

} // namespace catena::random
