// Package presence tracks which nodes of a cluster are up, and gives up the connections of those that are not.
//
// # At every node
//
// A node registers an incarnation under a random id before it accepts connections (membership.BeginNode), and reports to the leader every 500 ms. It
// ends the incarnation in three cases: the leader has given it up, it has had no contact with a leader for 8 seconds, or it stops. In the first two
// cases it drops all of its connections at once and registers a new incarnation as soon as it can; game servers and players then connect to nodes
// that the others can reach. In the third case it tells the leader after its doors have closed.
//
// # At the leader
//
// The leader keeps the latest report of each node, and gives up a node that has been silent for 3 seconds (membership.LoseNode). For nodes from which
// it has received nothing yet, the silence counts from the start of its leadership, because a new leader cannot know what the previous one has
// received.
//
// Its answers contain the addresses from which nodes have connected to it, so that two nodes that have moved find each other while a resolver has
// their old addresses. After a rolling restart in Kubernetes the next leader otherwise reaches no majority for up to half a minute.
//
// # Time
//
// Silence is measured in rounds of 500 ms. A round that takes longer, because the process was paused or the machine suspended, counts as at most 1.5
// s. So a leader that wakes up after 10 seconds gives the others time to report, and a node that wakes up asks before it drops anything.
//
// # Why 3 and 8 seconds
//
// The peers of a failed node's connections notice the loss at once, or by the silence. Until the core counts the connections as lost, a search, a
// game or a seat continues with a player or server that is gone. 3 seconds are six consecutive reports, more than a garbage collection pause or a
// lost packet can cost. After 8 seconds without contact to a leader, the others, if they have one, have given this node up: 4 s bound the election
// and takeover of a leader, 3 s its patience, and 1 s is a margin. A node that dropped its connections earlier would do so in ordinary elections.
package presence
