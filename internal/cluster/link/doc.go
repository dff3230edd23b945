// Package link connects the nodes of a cluster: one port with TLS for everything between them (`--cluster-listen`).
//
// The protocols share the port by ALPN. Nodes speak muster-raft/1 (the journal; Link.Transport), muster-node/1 (Options.Node) and
// muster-http/1 (Options.HTTP) with certificates that package trust checks at both ends. A node that joins has no certificate yet and speaks muster-join/1: one request, one answer (Options.Join, Join).
//
// # What a peer without a certificate can do
//
// It has 5 seconds and 64 KiB for its handshake. At most 256 connections are in handshake, at most 128 are open from one address; beyond that,
// package connlimit closes one of the largest crowd in favour of a new one, so that nodes get through while others connect in masses.
// With a handshake that offers muster-join/1 it may send one request of 64 KiB. The connection ends 10 seconds after it was accepted; 16 requests
// are answered at a time, 4 of one address. A panic ends the connection on which it happened, except in Raft's library, which only nodes of the cluster reach.
//
// # What nodes can rely on
//
// Dial returns once the other node has proved which one it is. That node checks the dialer's certificate a moment later: a refusal shows at the
// first read. A machine that vanishes without a word, or takes no data, ends its connections after about 5 seconds (on Linux; elsewhere only
// silence is noticed so). Deadlines for reads and writes are the users' matter. New connections use renewed certificates and a replaced authority at once.
//
// A node that leaves the cluster loses its connections by CloseNode, and gets no new ones as Options.Removed reports it.
package link
