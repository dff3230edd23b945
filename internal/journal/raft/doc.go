// Package raft is the engine of a journal that several nodes share, so that the loss of a machine with its disk loses nothing that was
// acknowledged. The protocol is that of github.com/hashicorp/raft; this package gives it a log, a snapshot store and a state machine that
// keep the promises of package journal, and turns its leadership into journals.
//
// # How it works
//
// A Node is one machine's part: Raft's log in a Pebble database, snapshots in files beside it, and the connection to the other nodes. One
// entry of the journal is one entry of Raft's log, which carries the entry's number, the term of the run that appended it, and the batch. Raft's
// own entries (a leader's first one, barriers, changes of members) take no number. The machine that Raft replicates for keeps only the map from
// numbers to indexes. What the entries mean is kept by the engine above, at every node.
//
// At the leader, Lead returns a Journal, once everything of earlier terms is applied. Its Append returns nil when a majority has the entry on the disk.
// One append is in flight at a time: groups grow meanwhile, which is faster than several in flight. At every other node, Follow yields
// what is committed and goes on, so that a node that is elected has nothing to replay. VerifyRead gives a linearizable read the number
// of the entry that it must have applied.
//
// Each node saves snapshots of its own state and trims its own log. A follower that needs entries that the leader has trimmed receives the
// leader's latest snapshot, streamed, and every block of it is checked before it counts; Follow then ends with ErrTrimmed and the engine loads the snapshot.
//
// # Why an acknowledged entry is never lost
//
// Raft's argument needs three things of this package. What a node has acknowledged, to a leader or a candidate, is on its disk: log, term and
// vote are written in one database, each write is synced before it returns, and checksums, the record of how far the log was synced and the refusal to
// open with less are those of package embeddb. A log never mixes two histories: StoreLogs removes what the new entries replace in the
// same commit that writes them. And entries that a node has acknowledged are not removed because of a snapshot that contains
// less: install.go says how, since Raft's library would.
//
// A run of a leader is fenced by its term. A command counts only if it entered the log in the term that it carries, and has the next number; every
// node decides that alike, from the log alone. So an append that was still on its way when its run ended, and that the same node carries into its
// next term, is not an entry. Lead applies everything before it returns, so a run knows every entry that any earlier run may have acknowledged.
//
// An append whose leader loses its office has an unknown outcome: ErrFailed, ErrFenced and ErrUnknown. The next leader has it or not, and once that leader
// has begun, this is final. An append that failed with ErrFenced and without ErrUnknown is not in the journal.
//
// # Failure
//
// The first write that fails, or that Raft must have and cannot read, fails the node for good: Failed is closed, Raft answers what it was asked, and
// stops. The others elect a leader after the election time-out. Raft's library panics where it cannot write its term or read a committed entry; the
// log store ends these goroutines instead, after it has failed the node. A leader that waits for disk space or descriptors hands over, and stops when it cannot.
//
// A node that has lost what it acknowledged, because its disk lost it, does not open (*journal.Damaged). It must not take part again
// under its id, since a majority may have relied on it: remove it, and add an empty node.
//
// # Bounds
//
// A commit costs two syncs, one after the other: the leader's and the faster half of the followers'. An entry that commits is seen at a follower with the next entry, or after
// CommitTimeout to twice that; what says nothing new is sent less often (patient.go). A leader that dies is replaced after one to two election time-outs of silence and an election. Memory: one batch of appends to each
// follower, at most 64 entries, the latest entries (recent.go), and a run of the number map for each change of leader since the last trim. One snapshot is sent at a time to each follower, at the speed of
// the connection, while appends to others go on.
//
// # From one machine to a cluster, and back
//
// Adopt turns the journal of journal/pebble into that of a cluster of one, Leave turns a cluster of one back. Both write the new journal beside its place and
// rename it there when it is whole, so at every moment one of the two counts, with all entries; a second call finishes what a crash has interrupted.
//
// # What differs from one machine
//
// Trim makes entries unreadable at once, and leaves the last Options.Trailing entries of Raft's log on the disk for followers that are a moment behind. LatestSnapshot is that
// of this node: nodes save theirs at different entries. Last at a follower is what it knows to be committed. TestOneNode and TestThreeNodes hold journals to the same suite as journal/pebble.
package raft
