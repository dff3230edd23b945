// Package bench measures the capacity of an installation: it starts the service as a process of its own, loads it like clients and game
// servers, and writes a table of throughput, latency, processor time and memory.
//
// It also measures a bare service: the same port, protocols, signature check and WebSockets, without the core. The ratio of the
// throughputs shows the cost of durability and the rules.
package bench
