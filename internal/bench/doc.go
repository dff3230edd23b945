// Package bench is for knowing what an installation can carry: it starts the service as a process of its own, loads it
// the way clients and game servers do, and writes a table of throughput, latency, processor time and memory.
//
// Beside the service it measures a bare one: the same port, protocols, signature check and WebSockets, without the
// core. The share of the bare throughput that is left is what durability and the rules cost.
package bench
