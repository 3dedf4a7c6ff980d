//! The dataplane: modules, gates, tasks, queues, scheduler trees, workers, ports, counters.
