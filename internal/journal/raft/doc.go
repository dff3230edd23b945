// Package raft is the engine of a journal that several nodes share, so that the loss of a machine with its disk loses no acknowledged
// change. The protocol is that of github.com/hashicorp/raft; this package gives it a log, a snapshot store and a state machine that keep
// the promises of package journal, and turns its leadership into journals.
//
// # How it works
//
// A Node is one machine's part: Raft's log in a Pebble database, snapshots in files beside it, and the connection to the other nodes. Each
// entry of the journal is one entry of Raft's log, which contains the entry's number, the term of the run that appended it, and the batch.
// Raft's own entries (a leader's first one, barriers, changes of members) have no number. The replicated state machine keeps only the map
// from numbers to indexes. The engine above keeps the state that the entries describe, at every node.
//
// On the leader, Lead returns a Journal once everything of earlier terms is applied. Its Append returns nil when a majority has the entry
// on disk. One append is in flight at a time: groups grow meanwhile, which is faster than several appends in flight. On every other node,
// Follow yields the committed entries as they come, so that a newly elected node has nothing to replay. VerifyRead gives a linearizable
// read the number of the entry that it must have applied.
//
// Each node saves snapshots of its own state and trims its own log. A follower that needs entries that the leader has trimmed receives the
// leader's latest snapshot as a stream, and checks every block before the snapshot counts. Follow then ends with ErrTrimmed, and the engine
// loads the snapshot.
//
// # Why an acknowledged entry is never lost
//
// Raft's proof requires three properties of this package. First, what a node has acknowledged to a leader or a candidate is on its disk:
// log, term and vote are in one database, and each write is synced before it returns. Package embeddb provides the checksums, the record of
// how far the log was synced, and the refusal to open with less. Second, a log never mixes two histories: StoreLogs removes the entries
// that the new ones replace in the commit that writes them. Third, a snapshot that contains less than a node has acknowledged never removes
// acknowledged entries; Raft's library would do that, and install.go explains how this package prevents it.
//
// A leader's run is fenced by its term. A command counts only if it entered the log in the term that it carries, and has the next number;
// every node decides this from the log alone, and therefore alike. An append that was in transit when its run ended, and that the same node
// carries into its next term, is therefore not an entry. Lead applies everything before it returns, so a run knows every entry that any
// earlier run may have acknowledged.
//
// If the leader loses its leadership during an append, the outcome of the append is unknown: ErrFailed, ErrFenced and ErrUnknown. The next
// leader either has it or not, and once that leader has begun, this is final. An append that failed with ErrFenced but without ErrUnknown
// is not in the journal.
//
// # Failure
//
// The first failed write, or the first failed read of data that Raft requires, fails the node permanently: Failed is closed, Raft answers
// pending requests and stops. The others elect a leader after the election timeout. Raft's library panics if it cannot write its term or
// read a committed entry; instead, the log store fails the node and then ends these goroutines. A leader that waits for disk space or
// descriptors hands over its leadership, and stops if it cannot.
//
// A node whose disk has lost what the node acknowledged does not open (*journal.Damaged). It must not take part again under its id, since a
// majority may have relied on it: remove it, and add an empty node.
//
// # Bounds
//
// A commit costs two consecutive syncs: the leader's and that of the faster half of the followers. A follower sees a committed entry with
// the next entry, or after CommitTimeout to twice that; messages without news are sent less often (patient.go). A dead leader is replaced
// after one to two election timeouts of silence and an election. Memory: one batch of appends to each follower, at most 64 entries; the
// latest entries (recent.go); and one run of the number map for each change of leader since the last trim. A follower that is behind
// receives its entries in requests of about 1 MiB, because each must be answered within the transport's timeout. Each follower receives
// one snapshot at a time, at the speed of its connection, while appends to others continue.
//
// # From one machine to a cluster, and back
//
// Adopt converts the journal of journal/pebble to that of a cluster of one, and Leave converts it back. Both write the new journal beside
// its final place and rename it once it is complete. At every moment exactly one of the two counts, with all entries; a second call
// finishes what a crash has interrupted.
//
// # What differs from one machine
//
// Trim makes entries unreadable at once, but keeps the last Options.Trailing entries of Raft's log on disk for followers that are slightly
// behind. LatestSnapshot is that of this node: nodes save theirs at different entries. On a follower, Last is the last entry that it knows
// to be committed. TestOneNode and TestThreeNodes run the same suite as journal/pebble.
package raft
