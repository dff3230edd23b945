// Package node is a node of a cluster without its doors: the data directory, the port for other nodes, its part of the shared journal, and what
// happens when it starts or stops leading. The doors use the engine, and see the cluster only through engine.Peers.
//
// # From a directory to a node
//
// Open turns a directory into that of a node, once: an empty directory begins a cluster, or joins one with a token; that of a single machine becomes
// a cluster of one node. Run gives the node its engine. From then on the node follows the journal, and decides whenever it leads.
//
// # Joining
//
// The new node sends the token's secret and its own id to a member, over TLS that the token's fingerprint authenticates. The member uses up the token
// with a command, adds the node without a vote, and answers with the authority and the cell's secret. The new node then follows the journal. It asks
// for its vote once it has applied everything that the leader had when it checked, so that a majority never waits for an empty node. The same node
// may use the token again, because it may have lost the answer, until it has caught up for the first time or is removed.
package node
