package raft

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/snapshot"
	"github.com/musterhq/muster/internal/waittest"
)

// inCluster plays a story on nodes in virtual time, each with a disk in memory.
func inCluster(t *testing.T, ids []string, story func(t *testing.T, c *cluster, disks map[string]*embeddbtest.Disk)) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*embeddbtest.Disk{}
		c := newCluster(t, func(id string) Options {
			if disks[id] == nil {
				disks[id] = embeddbtest.NewDisk()
			}
			return Options{Dir: "data", FS: disks[id], Trailing: -1}
		})
		if err := c.grow(ids...); err != nil {
			t.Fatal(err)
		}
		defer c.stopAll()
		story(t, c, disks)
	})
}

var three = []string{"a", "b", "c"}

func leading(t *testing.T, c *cluster) (*Journal, string) {
	t.Helper()
	j, err := c.lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return j, j.node.options.ID
}

func others(id string) (ids []string) {
	for _, other := range three {
		if other != id {
			ids = append(ids, other)
		}
	}
	return ids
}

func wantAll(t *testing.T, err error, kinds ...error) {
	t.Helper()
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Fatalf("got %v, want %v", err, kind)
		}
	}
}

func TestADeposedLeaderIsFenced(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		old, a := leading(t, c)
		mustAppend(t, old, 1, 5)
		c.isolate(a)
		wantAll(t, old.Append(t.Context(), 6, []byte("of the old leader")), journal.ErrFailed, journal.ErrFenced, ErrUnknown)
		<-old.Ended()
		wantAll(t, old.Append(t.Context(), 6, nil), journal.ErrFailed, journal.ErrFenced)
		var next *Journal
		for next == nil {
			for _, id := range others(a) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if j, err := c.nodes[id].Lead(ctx); err == nil {
					next = j
				}
				cancel()
			}
		}
		mustAppend(t, next, 6, 9)
		if _, err := c.nodes[a].VerifyRead(t.Context()); err == nil {
			t.Error("the old leader answers reads")
		} else if _, ok := errors.AsType[*NotLeader](err); !ok {
			t.Errorf("the old leader refuses a read with %v", err)
		}
		c.heal()
		for _, n := range c.nodes {
			wantEntries(t, n, 1, 1, 9)
		}
	})
}

// An append that failed before it reached Raft's log is not in the journal, and its error says so.
func TestAnAppendAfterLeadershipIsLostWritesNothing(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		old, a := leading(t, c)
		mustAppend(t, old, 1, 2)
		if err := c.nodes[a].HandOver(t.Context(), others(a)[0]); err != nil {
			t.Fatal(err)
		}
		err := old.Append(t.Context(), 3, []byte("too late"))
		wantAll(t, err, journal.ErrFailed, journal.ErrFenced)
		if errors.Is(err, ErrUnknown) {
			t.Errorf("got %v, want an error that says that nothing was written", err)
		}
		next, b := leading(t, c)
		if b != others(a)[0] {
			t.Fatalf("%s leads", b)
		}
		mustAppend(t, next, 3, 4)
	})
}

// An append of an earlier run that enters the log in a later term of the same node gets no entry number.
func TestAStaleAppendAfterTheTakeoverIsRejected(t *testing.T) {
	inCluster(t, []string{"a"}, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		j, _ := leading(t, c)
		mustAppend(t, j, 1, 3)
		n := c.nodes["a"]
		for _, stale := range [][]byte{encodeCommand(4, j.Term()-1, []byte("of an earlier run")), encodeCommand(9, j.Term(), []byte("too far")), []byte("short")} {
			future := n.raft.Apply(stale, 0)
			if err := future.Error(); err != nil {
				t.Fatal(err)
			}
			if _, rejected := future.Response().(error); !rejected {
				t.Fatalf("%q was accepted", stale)
			}
		}
		mustAppend(t, j, 4, 6)
		wantEntries(t, n, 1, 1, 6)
		if err := n.SaveSnapshot(t.Context(), 5, func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := c.stop("a"); err != nil {
			t.Fatal(err)
		}
		n, err := c.start("a", false) // it decides alike when it reads its log
		if err != nil {
			t.Fatal(err)
		}
		j, _ = leading(t, c)
		mustAppend(t, j, 7, 7)
		wantEntries(t, n, 1, 1, 7)
	})
}

func TestAnEntryWhoseAnswerWasLostIsThere(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		j, a := leading(t, c)
		mustAppend(t, j, 1, 3)
		ctx, cancel := context.WithCancel(t.Context())
		for _, id := range others(a) { // the followers hear of it, and their answers are lost
			c.links[id].Disconnect(c.links[a].LocalAddr())
		}
		cancelled := make(chan error)
		go func() { cancelled <- j.Append(ctx, 4, batch(4)) }()
		synctest.Wait()
		cancel()
		switch err := <-cancelled; {
		case err == nil: // it was faster
		default:
			wantAll(t, err, journal.ErrFailed, ErrUnknown, context.Canceled)
		}
		c.heal()
		next, err := c.nodes[a].Lead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if last, err := next.Last(t.Context()); err != nil || last != 4 {
			t.Fatalf("the next run begins after entry %d (%v), want 4", last, err)
		}
	})
}

func TestFollowersSeeTheSameOrder(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		const entries = 60
		var followers sync.WaitGroup
		for id, n := range c.nodes {
			followers.Go(func() {
				next := uint64(1)
				for entry, err := range n.Follow(t.Context(), 1) {
					if err != nil || entry.Number != next || !bytes.Equal(entry.Batch, batch(next)) {
						t.Errorf("%s follows: got entry %d with %q and error %v, want entry %d", id, entry.Number, entry.Batch, err, next)
						return
					}
					if next++; next > entries {
						return
					}
				}
			})
		}
		for from := uint64(1); from <= entries; from += 20 {
			j, a := leading(t, c)
			mustAppend(t, j, from, from+19)
			if err := c.nodes[a].HandOver(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		}
		followers.Wait()
	})
}

// Appends wait for a hand-over. If it fails, the run continues and has lost no append.
func TestHandingOverLosesNoAppend(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		next := uint64(1)
		for range 5 {
			j, a := leading(t, c)
			if last, _ := j.Last(t.Context()); last+1 != next {
				t.Fatalf("the run begins after entry %d, want %d", last, next-1)
			}
			handed := make(chan error)
			go func() {
				time.Sleep(10 * time.Millisecond)
				handed <- c.nodes[a].HandOver(t.Context(), "")
			}()
			for {
				err := j.Append(t.Context(), next, batch(next))
				if err == nil {
					next++
					time.Sleep(time.Millisecond)
					continue
				}
				wantAll(t, err, journal.ErrFenced)
				if errors.Is(err, ErrUnknown) {
					t.Errorf("an append beside a hand-over: %v", err)
				}
				break
			}
			if err := <-handed; err != nil {
				t.Fatal(err)
			}
		}
	})
}

func state(at uint64) []byte { return bytes.Repeat(fmt.Appendf(nil, "state after %d;", at), 40_000) }

func saveAndTrim(t *testing.T, n *Node, at uint64) {
	t.Helper()
	waittest.Until(t, "the node has the entry", func() bool { return n.Last() >= at })
	err := n.SaveSnapshot(t.Context(), at, func(w io.Writer) error { _, err := w.Write(state(at)); return err })
	if err == nil {
		err = n.Trim(t.Context(), at+1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantSnapshot(t *testing.T, n *Node, want uint64) {
	t.Helper()
	at, r, err := n.LatestSnapshot(t.Context())
	if err != nil || at != want {
		t.Fatalf("latest snapshot of %s: after entry %d, error %v, want %d", n.options.ID, at, err, want)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, state(want)) {
		t.Fatalf("latest snapshot of %s: %d bytes, %v", n.options.ID, len(got), err)
	}
}

func TestALaggingFollowerGetsTheSnapshot(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		j, a := leading(t, c)
		installation := uuid.New()
		for _, n := range c.nodes {
			if err := n.SetInstallation(installation); err != nil {
				t.Fatal(err)
			}
		}
		b := others(a)[0]
		mustAppend(t, j, 1, 10)
		wantEntries(t, c.nodes[b], 1, 1, 10)
		c.isolate(b)
		mustAppend(t, j, 11, 40)
		saveAndTrim(t, c.nodes[a], 35)
		followed := make(chan error)
		go func() {
			for _, err := range c.nodes[b].Follow(t.Context(), 11) {
				followed <- err
			}
			close(followed)
		}()
		c.heal()
		if err := <-followed; !errors.Is(err, journal.ErrTrimmed) {
			t.Fatalf("follow: got %v, want ErrTrimmed", err)
		}
		wantSnapshot(t, c.nodes[b], 35)
		wantEntries(t, c.nodes[b], 36, 36, 40)
		mustAppend(t, j, 41, 45)
		saveAndTrim(t, c.nodes[b], 43)
		for range 2 {
			wantSnapshot(t, c.nodes[b], 43)
			wantEntries(t, c.nodes[b], 44, 44, 45)
			if err := c.stop(b); err != nil {
				t.Fatal(err)
			}
			if _, err := c.start(b, false); err != nil {
				t.Fatal(err)
			}
			c.heal()
		}
		wantEntries(t, c.nodes[b], 44, 44, 45)
	})
}

// A node whose disk was lost returns with a new id, and gets all data.
func TestAnEmptyNodeJoins(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, disks map[string]*embeddbtest.Disk) {
		j, a := leading(t, c)
		mustAppend(t, j, 1, 30)
		saveAndTrim(t, c.nodes[a], 20)
		lost := others(a)[0]
		if err := c.stop(lost); err != nil {
			t.Fatal(err)
		}
		leader := c.nodes[a]
		if err := leader.Remove(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		d, err := c.start("d", false)
		if err != nil {
			t.Fatal(err)
		}
		c.heal()
		if err := leader.AddObserver(t.Context(), "d", "at-d"); err != nil {
			t.Fatal(err)
		}
		wantEntries(t, d, 21, 21, 30)
		wantSnapshot(t, d, 20)
		if s := d.Status(); s.Role != Observer || s.Leader != a || len(s.Members) != 3 || s.Last != 30 {
			t.Errorf("status of the new node: %+v", s)
		}
		if err := leader.Promote(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		if err := leader.HandOver(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		next, err := d.Lead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, next, 31, 33)
	})
}

func TestChangesOfMembersThatDoNotFit(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		_, a := leading(t, c)
		n, b := c.nodes[a], others(a)[0]
		for doing, err := range map[string]error{
			"promote a stranger": n.Promote(t.Context(), "x"), "demote a stranger": n.Demote(t.Context(), "x"), "remove a stranger": n.Remove(t.Context(), "x"),
			"add a voter": n.AddObserver(t.Context(), b, "at-"+b), "hand over to a stranger": n.HandOver(t.Context(), "x"), "hand over to itself": n.HandOver(t.Context(), a),
			"demote itself": n.Demote(t.Context(), a), "remove itself": n.Remove(t.Context(), a),
		} {
			if !errors.Is(err, ErrMember) {
				t.Errorf("%s: got %v, want ErrMember", doing, err)
			}
		}
		for doing, err := range map[string]error{
			"promote": c.nodes[b].Promote(t.Context(), a), "remove": c.nodes[b].Remove(t.Context(), a), "hand over": c.nodes[b].HandOver(t.Context(), ""),
		} {
			if no, ok := errors.AsType[*NotLeader](err); !ok || no.Leader != a {
				t.Errorf("%s at a follower: got %v, want NotLeader with the leader", doing, err)
			}
		}
		for _, id := range others(a) {
			if err := n.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.Remove(t.Context(), a); !errors.Is(err, ErrMember) {
			t.Errorf("remove the only voter: %v", err)
		}
		if err := n.HandOver(t.Context(), ""); !errors.Is(err, ErrMember) {
			t.Errorf("hand over to no other node: %v", err)
		}
		j, err := n.Lead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, j, 1, 2)
	})
}

func TestManyReadsShareARound(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		j, a := leading(t, c)
		mustAppend(t, j, 1, 4)
		var readers sync.WaitGroup
		began := time.Now()
		for range 500 {
			readers.Go(func() {
				if number, err := c.nodes[a].VerifyRead(t.Context()); err != nil || number != 4 {
					t.Errorf("got entry %d and error %v, want 4", number, err)
				}
			})
		}
		readers.Wait()
		if took := time.Since(began); took > time.Second { // virtual: each round waits for answers at most
			t.Errorf("500 reads took %v", took)
		}
	})
}

// An answer that a follower gave before a read began does not confirm the leader for that read, however late it arrives: another leader may have
// been elected after the answer, and before the read.
func TestALateAnswerConfirmsNoRead(t *testing.T) {
	for range 50 { // until the election is over before the leader has missed answers for so long that it steps down
		played := false
		inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) { played = readDuringLateAnswers(t, c) })
		if played || t.Failed() {
			return
		}
	}
	t.Error("no election was in time")
}

// readDuringLateAnswers makes b win an election while the answers to a's heartbeats are under way, and then reads at a. It returns false if the read was too late.
func readDuringLateAnswers(t *testing.T, c *cluster) bool {
	var late atomic.Bool
	var held atomic.Int32
	arrive := make(chan struct{})
	answer := sync.OnceFunc(func() { late.Store(false); close(arrive) })
	defer answer() // whatever fails, so that the nodes can be closed
	c.slow = func(leader string) {
		if leader == "a" && late.Load() {
			held.Add(1)
			<-arrive
		}
	}
	for _, id := range []string{"b", "c", "a"} { // opened again, with the slow transport
		if err := c.stop(id); err != nil {
			t.Fatal(err)
		}
		if _, err := c.start(id, false); err != nil {
			t.Fatal(err)
		}
	}
	old, first := leading(t, c)
	if first != "a" {
		return false
	}
	mustAppend(t, old, 1, 3)
	late.Store(true)
	for range 20 { // the time in which a sends two heartbeats to each
		time.Sleep(10 * time.Millisecond)
		if held.Load() == 2 {
			break
		}
	}
	c.isolate("a")
	var told raft.TimeoutNowResponse
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	if err := c.links["c"].TimeoutNow("b", c.links["b"].LocalAddr(), &request, &told); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	next, err := c.nodes["b"].Lead(soon)
	if err != nil {
		return false
	}
	mustAppend(t, next, 4, 4)
	type read struct {
		number uint64
		err    error
	}
	reads := make(chan read, 1)
	go func() {
		number, err := c.nodes["a"].VerifyRead(t.Context())
		reads <- read{number, err}
	}()
	synctest.Wait() // the read waits for answers
	waited := len(reads) == 0
	answer()
	r := <-reads
	if r.err == nil {
		t.Errorf("a read after entry 4 was acknowledged may have seen no more than entry %d", r.number)
	} else if _, ok := errors.AsType[*NotLeader](r.err); !ok {
		t.Errorf("the former leader refuses a read with %v", r.err)
	}
	return waited && held.Load() >= 2
}

func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		told := map[string][]string{}
		c := newCluster(t, nil)
		c.open = func(id string) Options {
			return Options{Dir: "data", FS: embeddbtest.NewDisk(), OnChange: func(change Change) {
				mu.Lock()
				defer mu.Unlock()
				if change.Reason != "" {
					told[id] = append(told[id], fmt.Sprintf("%s: %s", change.Role, change.Reason))
				}
			}}
		}
		if err := c.grow(three...); err != nil {
			t.Fatal(err)
		}
		if err := c.nodes["a"].HandOver(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.nodes["b"].Lead(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.isolate("b")
		waittest.Until(t, "another node leads", func() bool {
			return c.nodes["a"].Status().Role == Leader || c.nodes["c"].Status().Role == Leader
		})
		if err := c.stopAll(); err != nil {
			t.Fatal(err)
		}
		a, b := strings.Join(told["a"], "; "), strings.Join(told["b"], "; ")
		if !strings.Contains(a, "leader: elected; follower: handed over") || !strings.Contains(b, "leader: elected; follower: no contact with a majority") || !strings.HasSuffix(b, "stopped: closed") {
			t.Errorf("a was told %q, b %q", a, b)
		}
	})
}

// If the leader's disk fails at any moment, the append returns an error and the node fails. No acknowledged entry is lost.
func TestAFailingDiskAtTheLeader(t *testing.T) {
	for _, at := range []int{1, 2, 3, 5, 8, 13, 21, 34, 55, 89} {
		inCluster(t, three, func(t *testing.T, c *cluster, disks map[string]*embeddbtest.Disk) {
			j, a := leading(t, c)
			mustAppend(t, j, 1, 5)
			disks[a].FailAt(at, syscall.EIO, false)
			acked := uint64(5)
			var failure error
			for failure == nil && acked < 200 {
				if failure = j.Append(t.Context(), acked+1, batch(acked+1)); failure == nil {
					acked++
				}
			}
			if failure == nil {
				t.Fatalf("%d appends took fewer than %d operations of the disk", acked, at)
			}
			wantAll(t, failure, journal.ErrFailed)
			<-c.nodes[a].Failed()
			if err := c.nodes[a].Err(); !errors.Is(err, syscall.EIO) {
				t.Errorf("operation %d fails: the node failed with %v", at, err)
			}
			if _, err := c.nodes[a].Lead(t.Context()); !errors.Is(err, journal.ErrFailed) {
				t.Errorf("lead after a failure: %v", err)
			}
			if err := c.stop(a); err != nil {
				t.Errorf("close after a failure: %v", err)
			}
			next, _ := leading(t, c)
			if last, err := next.Last(t.Context()); err != nil || last < acked || last > acked+1 {
				t.Errorf("operation %d fails: the next leader has %d entries (%v), %d were acknowledged", at, last, err, acked)
			}
			disks[a] = disks[a].Crash()
			if _, err := c.start(a, false); err != nil {
				t.Fatal(err)
			}
			c.heal()
			wantEntries(t, c.nodes[a], 1, 1, acked)
		})
	}
}

// A follower that cannot store its term must not answer in it. Raft's library panics in that case. The node fails instead.
func TestAFailingDiskAtAFollower(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, disks map[string]*embeddbtest.Disk) {
		j, a := leading(t, c)
		mustAppend(t, j, 1, 5)
		b, other := others(a)[0], others(a)[1]
		wantEntries(t, c.nodes[b], 1, 1, 5)
		time.Sleep(time.Second) // nothing is under way
		disks[b].FailAt(1, syscall.EIO, false)
		if err := c.nodes[a].HandOver(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		<-c.nodes[b].Failed()
		if err := c.nodes[b].Err(); !errors.Is(err, syscall.EIO) {
			t.Errorf("the node failed with %v", err)
		}
		next, err := c.nodes[other].Lead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, next, 6, 8)
		if err := c.stop(b); err != nil {
			t.Errorf("close after a failure: %v", err)
		}
	})
}

// A committed entry that cannot be read when it is to be applied fails the node. Raft's library panics in that case.
func TestACommittedEntryThatCannotBeRead(t *testing.T) {
	inCluster(t, three, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		j, a := leading(t, c)
		mustAppend(t, j, 1, 5)
		b := others(a)[0]
		wantEntries(t, c.nodes[b], 1, 1, 5)
		s := c.nodes[b].store
		stop := make(chan struct{})
		index := s.last.Load() + 1
		go func() { // damages the next entry as soon as it is stored, before it is known to be committed
			defer close(stop)
			for s.last.Load() < index {
				time.Sleep(time.Millisecond)
			}
			s.writing.Lock()
			defer s.writing.Unlock()
			s.recent.remove(index, index) // as if it had been stored long ago
			if err := s.db.Set(logKey(index), []byte("not an entry of the log, by far"), nil); err != nil {
				t.Error(err)
			}
		}()
		c.links[a].Disconnect(c.links[others(a)[1]].LocalAddr()) // so that it waits for this follower
		go func() { _ = j.Append(t.Context(), 6, batch(6)) }()
		<-stop
		<-c.nodes[b].Failed()
		if _, ok := errors.AsType[*journal.Damaged](c.nodes[b].Err()); !ok {
			t.Errorf("the node failed with %v, want *journal.Damaged", c.nodes[b].Err())
		}
		if err := c.stop(b); err != nil {
			t.Errorf("close after a failure: %v", err)
		}
	})
}

// Damage on the disk is an error at the start that names the damaged part. It never silently shortens the journal.
func TestDamageIsRefused(t *testing.T) {
	whole := embeddbtest.NewDisk()
	open := func(t *testing.T, disk *embeddbtest.Disk, use func(t *testing.T, c *cluster)) error {
		var err error
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, func(string) Options { return Options{Dir: "data", FS: disk, Trailing: -1} })
			if _, err = c.start("a", true); err != nil {
				return
			}
			use(t, c)
			err = errors.Join(err, c.stopAll())
		})
		return err
	}
	err := open(t, whole, func(t *testing.T, c *cluster) {
		j, _ := leading(t, c)
		mustAppend(t, j, 1, 8)
		saveAndTrim(t, c.nodes["a"], 4)
	})
	if err != nil {
		t.Fatal(err)
	}
	path := func(suffix string) (found string) {
		for _, dir := range []string{"data", "data/snapshots"} {
			names, _ := whole.List(dir)
			for _, name := range names {
				if strings.HasSuffix(name, suffix) {
					found = dir + "/" + name
				}
			}
		}
		return found
	}
	for name, c := range map[string]struct {
		file string
		harm func([]byte) []byte
		late bool // noticed when it is read
	}{
		"log cut":          {path(".log"), func(b []byte) []byte { b = bytes.TrimRight(b, "\x00"); return b[:len(b)/2] }, false},
		"log flipped":      {path(".log"), func(b []byte) []byte { b[300] ^= 4; return b }, false},
		"snapshot's head":  {path(snapshotSuffix), func(b []byte) []byte { b[10] ^= 4; return b }, false},
		"snapshot cut":     {path(snapshotSuffix), func(b []byte) []byte { return b[:len(b)-3] }, true},
		"snapshot flipped": {path(snapshotSuffix), func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, true},
	} {
		disk := whole.Crash()
		embeddbtest.WriteFile(t, disk.Mem(), c.file, c.harm(embeddbtest.ReadFile(t, disk.Mem(), c.file)))
		var read error
		err := open(t, disk, func(t *testing.T, cluster *cluster) {
			_, r, err := cluster.nodes["a"].LatestSnapshot(context.Background())
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				r.Close()
			}
			read = err
		})
		if c.late {
			err = errors.Join(err, read)
		}
		if _, ok := errors.AsType[*journal.Damaged](err); !ok {
			t.Errorf("%s: got %v, want *journal.Damaged", name, err)
		}
	}
	t.Run("snapshot removed", func(t *testing.T) {
		disk := whole.Crash()
		if err := disk.Remove(path(snapshotSuffix)); err != nil {
			t.Fatal(err)
		}
		if _, ok := errors.AsType[*journal.Damaged](open(t, disk, func(*testing.T, *cluster) {})); !ok {
			t.Error("it opened without its snapshot")
		}
	})
}

// A snapshot whose content the node already has changes nothing. One that contradicts the log replaces it. One that was damaged in
// transit is refused.
func TestSnapshotsThatArrive(t *testing.T) {
	inCluster(t, []string{"a"}, func(t *testing.T, c *cluster, _ map[string]*embeddbtest.Disk) {
		j, _ := leading(t, c)
		mustAppend(t, j, 1, 20)
		n := c.nodes["a"]
		index, _ := n.machine.locate(10)
		stream := func(at uint64) []byte {
			var b bytes.Buffer
			w := snapshot.NewWriter(&b, at, uuid.Nil)
			_, _ = w.Write(state(at))
			if err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		receive := func(index, term uint64, stream []byte) (string, error) {
			conf := n.raft.GetConfiguration().Configuration()
			sink, err := n.snaps.Create(1, index, term, conf, 1, nil)
			if err != nil {
				return "", err
			}
			if _, err := sink.Write(stream); err != nil {
				return "", errors.Join(err, sink.Cancel())
			}
			if err := sink.Close(); err != nil {
				return "", err
			}
			_, r, err := n.snaps.Open(sink.ID())
			if err != nil {
				return "", err
			}
			defer r.Close()
			return sink.ID(), n.machine.Restore(r)
		}
		// As Raft does: everything goes after an installation.
		id, err := receive(index, j.Term(), stream(10))
		if err != nil || id != redundantID {
			t.Fatalf("a redundant snapshot: %s, %v", id, err)
		}
		if err := n.store.DeleteRange(n.store.first.Load(), n.store.last.Load()); err != nil {
			t.Fatal(err)
		}
		wantEntries(t, n, 1, 1, 20)
		mustAppend(t, j, 21, 22)

		damaged := stream(100)
		damaged[len(damaged)/2] ^= 1
		if _, err := receive(1000, 9, damaged); err == nil {
			t.Error("a damaged snapshot was accepted")
		}
		if _, err := receive(1000, 9, stream(100)[:300_000]); err == nil {
			t.Error("half a snapshot was accepted")
		}
		if at, _, err := n.LatestSnapshot(t.Context()); at != 0 || err != nil {
			t.Errorf("latest snapshot: %d, %v", at, err)
		}
		saveAndTrim(t, n, 22)
		if _, err := receive(index, j.Term(), stream(10)); err == nil {
			t.Error("a snapshot older than the node's was accepted")
		}
		mustAppend(t, j, 23, 24)
		last := n.store.last.Load()
		if _, err := receive(last, j.Term()+5, stream(30)); err != nil {
			t.Fatalf("a snapshot in place of entries that were never committed: %v", err)
		}
		<-n.Failed()
		if err := n.Err(); !errors.Is(err, ErrReopen) {
			t.Errorf("the node failed with %v, want ErrReopen", err)
		}
		if err := c.stop("a"); err != nil {
			t.Fatal(err)
		}
		if n, err = c.start("a", false); err != nil {
			t.Fatal(err)
		}
		wantSnapshot(t, n, 30)
		if got := n.Last(); got != 30 {
			t.Errorf("last entry %d, want 30", got)
		}
	})
}

// The log's position in memory follows the entries that Raft stores and removes, and is the same after the log is opened again.
func TestStoreKeepsOneHistory(t *testing.T) {
	disk := embeddbtest.NewDisk()
	open := func() *store {
		s, err := openStore(disk, "data", "the test", newCluster(t, nil).quiet())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	put := func(term, from, to uint64) {
		t.Helper()
		var logs []*raft.Log
		for index := from; index <= to; index++ {
			logs = append(logs, &raft.Log{Index: index, Term: term, Data: batch(index), AppendedAt: time.Unix(1, 2)})
		}
		if err := s.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
	}
	want := func(first, last uint64, terms ...uint64) {
		t.Helper()
		for range 2 {
			if got, gotLast := s.first.Load(), s.last.Load(); got != first || gotLast != last {
				t.Fatalf("log from %d to %d, want %d to %d", got, gotLast, first, last)
			}
			for n, term := range terms {
				var l raft.Log
				if err := s.GetLog(first+uint64(n), &l); err != nil || l.Term != term || !bytes.Equal(l.Data, batch(l.Index)) || !l.AppendedAt.Equal(time.Unix(1, 2)) {
					t.Fatalf("index %d: %+v, %v, want term %d", first+uint64(n), l, err, term)
				}
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			s = open()
		}
	}
	put(1, 1, 6)
	want(1, 6, 1, 1, 1, 1, 1, 1)
	put(2, 4, 4) // in place of three
	want(1, 4, 1, 1, 1, 2)
	if err := s.DeleteRange(3, 4); err != nil {
		t.Fatal(err)
	}
	want(1, 2, 1, 1)
	put(3, 10, 11) // behind a gap
	want(10, 11, 3, 3)
	if err := s.trim(10, trimmed{5, 4}); err != nil {
		t.Fatal(err)
	}
	want(11, 11, 3)
	if err := s.DeleteRange(11, 11); err != nil {
		t.Fatal(err)
	}
	want(0, 0)
	put(4, 12, 13)
	want(12, 13, 4, 4)
	if err := s.DeleteRange(13, 12); err == nil && s.last.Load() != 13 {
		t.Errorf("an empty range removed something: the last index is %d", s.last.Load())
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}
