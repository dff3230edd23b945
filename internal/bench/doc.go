// Package bench measures the capacity of an installation: it starts the service in its own process, loads it like clients and game
// servers, and writes a table of throughput, latency, processor time and memory.
//
// It also measures a bare service, with the same port, protocols, signature check and WebSockets but without the core. The ratio of the
// throughputs shows the cost of durability and of the rules.
package bench
