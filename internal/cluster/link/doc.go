// Package link connects the nodes of a cluster: one TLS port for all communication between them (`--cluster-listen`).
//
// The protocols share the port by ALPN. Nodes speak muster-raft/1 (the journal; Link.Transport), muster-node/1 (Options.Node) and muster-http/1
// (Options.HTTP), with certificates that package trust verifies at both ends. A joining node has no certificate yet and speaks muster-join/1: one
// request and one answer (Options.Join, Join).
//
// # What a peer without a certificate can do
//
// It has 5 seconds and 64 KiB for its handshake. At most 256 connections may be in handshake, and 128 open from one address; beyond that, package
// connlimit closes a connection from the address with the most in favour of a new one, so that nodes get through a flood of connections. A peer that
// offers muster-join/1 may send one request of 64 KiB. The connection ends 10 seconds after it was accepted. 16 requests are answered at a time, 4 of
// them from one address. A panic ends the connection on which it happened, except in Raft's library, which only nodes of the cluster reach.
//
// # What nodes can rely on
//
// Dial returns once the other node has proved its identity. That node verifies the dialer's certificate slightly later: a refusal shows at the first
// read. Connections to a machine that disappears, or accepts no data, end after about 5 seconds (on Linux; elsewhere this detects only idle
// connections). Users set their own read and write deadlines. New connections use renewed certificates and a replaced authority at once.
//
// A node that leaves the cluster loses its connections by CloseNode, and gets no new ones because Options.Removed reports it.
package link
