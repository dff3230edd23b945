// Package presence keeps the nodes of a cluster informed of which of them are there, and gives up the connections of those that are not.
//
// # At every node
//
// A node registers an incarnation under a random id before it takes connections (membership.BeginNode), and tells the leader every 500 ms that it
// is there. It ends the incarnation in three cases: the leader has given it up, it has had no contact to a leader for 8 seconds, or it stops. In
// the first two it drops all of its connections at once and registers another incarnation as soon as it can: game servers and players then connect to
// the nodes that others can reach. In the third it tells the leader, after its doors have closed.
//
// # At the leader
//
// The leader keeps the latest message of each node, and gives up a node that has been silent for 3 seconds (membership.LoseNode). For nodes from which it has
// received nothing yet the silence begins with its office: a new leader cannot know what the one before has heard.
//
// # Time
//
// Silence is measured in rounds of 500 ms. A round that takes longer, because the process was stopped or the machine was suspended, counts as 1.5 s at
// most: a leader that wakes up after 10 seconds gives the others time to be heard, and a node that wakes up asks before it drops anything.
//
// # Why 3 and 8 seconds
//
// The connections of a dead node are lost for their peers at once, or when these notice silence. Until the core counts them as lost, a
// search, a game or a seat continues with a player or server that is gone. 3 seconds are six messages in a row, more than a pause of the garbage collector or a lost packet takes.
// After 8 seconds without a leader, the others have given this node up if they have a leader: 4 s bound the election and takeover of one, 3 s
// its patience, and 1 s remains. A node that dropped its connections earlier would do so in ordinary elections.
package presence
