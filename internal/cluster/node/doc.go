// Package node is a node of a cluster, without its doors: the data directory, the port to other nodes, its part of the shared journal, and what happens
// when it begins or ceases to lead. The doors use the engine, and see the cluster only through engine.Peers.
//
// # From a directory to a node
//
// Open makes a directory that of a node, once: an empty one begins a cluster, or joins one with a token; that of a single machine becomes a cluster of one.
// Run gives the node its engine. From then on the node follows the journal, and decides whenever it leads.
//
// # Joining
//
// The new node sends the token's secret and its own id to a member, over TLS that the token's fingerprint authenticates. The member has the token used up
// by a command, adds the node without a vote, and answers with the authority and the cell's secret. The new node then follows, and asks for its vote once
// it has applied what the leader had when it looked: a majority never waits for an empty node. The token admits the same node again until the node has caught up for the
// first time, since it may have lost the answer, or until the node is removed.
package node
