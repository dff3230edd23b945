package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/sim/canon"
)

var background = context.Background()

// node is a running service. It does what engine.Engine does, one move at a time, so that a crash can come between any two: between a
// command's decision, the append of its group, the acknowledgement, and the answer.
type node struct {
	w       *World
	journal journal.Journal
	archive archive.Archive
	seq     *engine.Sequencer

	lookedUp []func()   // claims whose id was looked up in the archive, not submitted yet
	queue    []*request // waiting to be decided
	asked    map[*engine.Call]*request
	spare    *engine.Group
	flight   *engine.Group // taken, maybe not durable
	appended bool          // flight is in the journal, and is not acknowledged
	durable  uint64
	readers  []reader
	down     domain.Time // by how much the contact clock is behind

	frozen    *frozen // taken with flight
	unsaved   *frozen // durable, not saved
	forgetDue int     // archived records that are still in memory
}

// request is a command and the function for its answer.
type request struct {
	call   engine.Call
	answer func(err error)
	still  bool // it is a repeat, and must change nothing
}

// reader waits until what it read is durable.
type reader struct {
	seen uint64
	told func()
}

type frozen struct {
	at       uint64
	snapshot *kernel.Snapshot
}

// errLost is the outcome of a command whose answer is lost: the service has crashed, and its last changes are unknown.
var errLost = errors.New("no answer")

func (n *node) submit(cmd kernel.Command, answer func(error)) {
	n.w.counts.Commands++
	n.queue = append(n.queue, &request{call: engine.Call{Cmd: cmd}, answer: answer})
}

// wish submits a random command.
func (n *node) wish() {
	v := n.seq.Cell().View()
	switch cmd := n.w.cluster.atNode(&v, n.w.wishes.Next(&v, n.w.time())).(type) {
	case nil:
	case kernel.Claim:
		n.claim(cmd)
	default:
		n.submit(cmd, n.w.known.learner(n.w, cmd))
	}
}

// claim looks up the id in the archive before it submits the command, and again if it is stale, like the engine.
func (n *node) claim(cmd kernel.Claim) {
	learn := n.w.known.learner(n.w, cmd)
	if kind, _ := cmd.Claimed(); kind == kernel.Nothing {
		n.submit(cmd, learn)
		return
	}
	n.lookUp(cmd, func() {
		n.submit(cmd, func(err error) {
			if domain.IsRefused(err, domain.Stale) {
				n.claim(cmd)
				return
			}
			learn(err)
		})
	})
}

// lookUp looks up a claimed id in the archive and then submits the command, at once or after others.
func (n *node) lookUp(cmd kernel.Claim, submit func()) {
	if kind, id := cmd.Claimed(); kind != kernel.Nothing {
		at := n.seq.Cell().Forgotten()
		data := n.w.archived(n.archive, archiveKinds[kind], id)
		if err := cmd.SetArchived(data, at); err != nil {
			n.w.violated("the archive has %s as %q: %v", id, data, err)
		}
	}
	if n.w.oneIn(2) {
		submit()
	} else {
		n.lookedUp = append(n.lookedUp, submit)
	}
}

// archiveKinds maps the cell's kinds of ended records to the archive's.
var archiveKinds = map[kernel.ClaimKind]archive.Kind{
	kernel.AGameSession: archive.GameSession, kernel.APlayerSession: archive.PlayerSession, kernel.APlacement: archive.Placement,
	kernel.ATicket: archive.Ticket, kernel.AChange: archive.PlayerChange, kernel.AnAuditEntry: archive.AuditEntry,
}

// decide decides some commands of the queue. One that must change nothing is decided alone, so that this can be checked.
func (n *node) decide(most int) {
	if len(n.lookedUp) > 0 && n.w.oneIn(3) {
		submit := n.lookedUp[0]
		n.lookedUp = n.lookedUp[1:]
		submit()
	}
	if len(n.queue) == 0 {
		return
	}
	if n.queue[0].still {
		before := n.dump()
		n.execute(n.queue[:1])
		if after := n.dump(); n.w.node == n && string(before) != string(after) {
			n.w.violated("a repeat of %T changed something", n.queue[0].call.Cmd)
		}
		n.queue = n.queue[1:]
		return
	}
	some := n.queue[:min(most, len(n.queue))]
	for i, r := range some {
		if r.still {
			some = some[:i]
			break
		}
	}
	n.queue = n.queue[len(some):]
	n.execute(some)
}

func (n *node) dump() []byte {
	b, err := canon.Dump(n.seq.Cell().Freeze())
	if err != nil {
		n.w.violated("%v", err)
	}
	return b
}

func (n *node) execute(some []*request) {
	calls := make([]*engine.Call, len(some))
	for i, r := range some {
		calls[i] = &r.call
		n.asked[&r.call] = r
	}
	var answered []*engine.Call
	for len(calls) > 0 { // a full group ends a step
		some, decided := n.seq.Execute(n.w.now, kernel.AllKinds(), calls)
		answered, calls = append(answered, some...), calls[decided:]
	}
	for _, r := range some {
		n.w.decided(some, &r.call)
	}
	if len(answered) > 0 && n.flight != nil {
		n.w.violated("%T was answered while entry %d, which it may have seen, was not durable", answered[0].Cmd, n.flight.Number)
	}
	n.answer(answered)
}

func (n *node) answer(calls []*engine.Call) {
	for _, c := range calls {
		r := n.asked[c]
		if r == nil {
			n.w.violated("%T was answered twice", c.Cmd)
		}
		delete(n.asked, c)
		if c.Err != nil {
			n.w.counts.Refused++
		}
		r.answer(c.Err)
	}
}

// tick ends what is due.
func (n *node) tick() {
	for {
		tick := &kernel.Tick{}
		n.execute([]*request{{call: engine.Call{Cmd: tick}, answer: func(error) {}}})
		if !tick.More {
			n.w.nothingIsLate()
			return
		}
	}
}

// commit makes the next move of the group in flight: take, append, acknowledge.
func (n *node) commit() {
	switch {
	case n.flight == nil:
		g := n.seq.Take(n.spare)
		if g == nil {
			n.answer(n.seq.TakeIdle())
			return
		}
		n.flight, n.appended, n.spare = g, false, &engine.Group{}
		if n.w.habits.snapshots && n.unsaved == nil && n.w.oneIn(20) {
			n.frozen = &frozen{g.Number, n.seq.Cell().Freeze()}
		}
	case !n.appended:
		if err := n.journal.Append(background, n.flight.Number, n.flight.Batch); err != nil {
			if !errors.Is(err, journal.ErrFailed) {
				n.w.violated("append: %v", err)
			}
			n.w.stop() // what is durable is unknown
			return
		}
		n.appended = true
	default:
		n.tell()
	}
}

// tell acknowledges the group in flight.
func (n *node) tell() {
	g := n.flight
	n.flight = nil
	n.seq.Durable(g.Number)
	n.durable = g.Number
	n.w.history.append(n.w, g.Number, g.Batch)
	n.answer(g.Calls())
	waiting := n.readers[:0]
	for _, r := range n.readers {
		if r.seen <= n.durable {
			r.told()
		} else {
			waiting = append(waiting, r)
		}
	}
	n.readers = waiting
	if n.frozen != nil {
		n.unsaved, n.frozen = n.frozen, nil
	}
}

// drain answers all waiting commands.
func (n *node) drain() {
	for n.w.node == n && (len(n.lookedUp) > 0 || len(n.queue) > 0 || len(n.asked) > 0 || n.flight != nil) {
		n.decide(8)
		n.commit()
	}
}

// read reads some of the state, and records it as known once it is durable.
func (n *node) read() {
	n.w.counts.Reads++
	v := n.seq.Cell().View()
	learn := n.w.known.look(n.w, &v)
	n.whenDurable(v.Seen(), learn)
}

// whenDurable calls told once entry seen is durable, unless the service crashes before.
func (n *node) whenDurable(seen uint64, told func()) {
	if seen <= n.durable {
		told()
		return
	}
	n.readers = append(n.readers, reader{seen, told})
}

func (n *node) saveSnapshot() {
	s := n.unsaved
	if s == nil {
		return
	}
	n.unsaved = nil
	if err := n.journal.SaveSnapshot(background, s.at, func(to io.Writer) error { return s.snapshot.Write(to) }); err != nil {
		return // it only makes the next restart longer
	}
	n.w.counts.Snapshots++
	if err := n.journal.Trim(background, s.at+1); err != nil && !errors.Is(err, journal.ErrFailed) {
		n.w.violated("trim: %v", err)
	}
}

// move moves ended records from memory to the archive.
func (n *node) move() {
	if n.forgetDue > 0 {
		return
	}
	v := n.seq.Cell().View()
	records := v.Ended(0, 1+n.w.chance.IntN(40), domain.TimeOf(n.w.now.Add(-n.w.habits.linger)))
	if len(records) == 0 || v.Seen() > n.durable {
		return
	}
	var batch []archive.Record
	for _, x := range records {
		if x.Kind != kernel.Nothing {
			batch = append(batch, archive.Record{
				Kind: archiveKinds[x.Kind], ID: x.ID, Created: int64(x.Created), Ended: int64(x.Ended), Fleet: x.Fleet, Group: x.GameID, Player: x.Player, Data: x.Data,
			})
		}
	}
	if err := n.archive.Put(background, batch); err != nil {
		n.w.stop()
		return
	}
	n.w.counts.Archived += len(batch)
	n.forgetDue = len(records)
	for left := len(records); left > 0; {
		some := 1 + n.w.chance.IntN(left)
		left -= some
		n.submit(&kernel.Forget{Count: some}, func(err error) {
			if err == nil {
				n.forgetDue -= some
			}
		})
	}
}

// ended returns the number of ended records in memory.
func (n *node) ended() int {
	v := n.seq.Cell().View()
	return v.Totals().Ended
}

// start opens the journal after some time and continues from there.
func (w *World) start() {
	w.now = w.now.Add(time.Duration(w.chance.IntN([]int{50, 5_000, 60_000, 60_000, 60_000, 7_200_000}[w.chance.IntN(6)])) * time.Millisecond)
	n := w.open()
	w.node = n
	w.history.catchUp(w, n.journal)
	if err := canon.Differ("the restarted cell", n.seq.Cell().Freeze(), w.history.cell.Freeze()); err != nil {
		w.violated("%v", err)
	}
	n.down = w.history.down
	if w.history.last != 0 {
		n.down += w.time() - w.history.last
	}
	w.checkKnown()
	w.checkNotices()
	v, was := n.seq.Cell().View(), w.history.cluster
	w.cluster.running = was
	before := w.held(&v)
	w.cluster.running = w.cluster.at && w.history.last != 0 && (was || w.cluster.oneIn(2)) && !w.cluster.oneIn(12)
	n.execute([]*request{{call: engine.Call{Cmd: &kernel.Resume{Cluster: w.cluster.running}}, answer: func(error) {
		if w.history.down != n.down {
			w.violated("down for %v until now, the journal says %v", n.down, w.history.down)
		}
	}}})
	w.checkTakeover(was, before)
	for w.node == n && len(n.asked) > 0 {
		n.commit()
	}
}

// open reads snapshot and journal.
func (w *World) open() *node {
	j, a, err := w.disk.open()
	if err != nil {
		w.unreadable("open", err)
	}
	c := w.newCell()
	at, snapshot, err := j.LatestSnapshot(background)
	if err == nil && snapshot != nil {
		err = c.Load(snapshot)
	}
	if err != nil {
		w.unreadable(fmt.Sprintf("load the snapshot after entry %d", at), err)
	}
	last := at
	for entry, err := range j.Read(background, at+1) {
		if err == nil {
			err = c.Replay(entry.Number, entry.Batch)
		}
		if err != nil {
			w.unreadable(fmt.Sprintf("replay after entry %d", last), err)
		}
		last = entry.Number
	}
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(w.chance.Uint32())
	}
	return &node{w: w, journal: j, archive: a, seq: engine.NewSequencer(c, last, seed), durable: last, asked: map[*engine.Call]*request{}, spare: &engine.Group{}}
}

// crash is the sudden end of the machine; stop is the end of a service that cannot continue.
func (w *World) crash() {
	w.counts.Crashes++
	w.disk.crash()
	w.leave(w.node)
}

func (w *World) stop() {
	if w.disk.off() {
		w.counts.Crashes++
	}
	n := w.node
	n.journal.Close()
	n.archive.Close()
	w.disk.stopped()
	w.leave(n)
}

// leave answers no more callers.
func (w *World) leave(n *node) {
	w.node = nil
	w.counts.Lost += len(n.queue) + len(n.asked)
	for _, r := range n.queue {
		r.answer(errLost)
	}
	clear(n.asked)
	n.lookedUp, n.queue, n.readers = nil, nil, nil
}

// takeOver opens the journal elsewhere while this service still runs, whose later appends must fail.
func (w *World) takeOver() {
	old := w.node
	w.counts.Takeovers++
	w.disk.stopped()
	w.start()
	for old.flight == nil || !old.appended {
		if old.flight == nil {
			if old.flight = old.seq.Take(old.spare); old.flight == nil {
				break
			}
			continue
		}
		err := old.journal.Append(background, old.flight.Number, old.flight.Batch)
		if !errors.Is(err, journal.ErrFenced) {
			w.violated("a service that was taken over appended entry %d: %v", old.flight.Number, err)
		}
		break
	}
	w.counts.Lost += len(old.queue) + len(old.asked)
}

// loseAllLinks ends every connection of a game server.
func (n *node) loseAllLinks() {
	v := n.seq.Cell().View()
	for _, p := range everyProcess(&v) {
		n.submit(&hosting.LoseLink{Process: p.Key, Link: p.Link}, func(error) {})
	}
	n.drain()
}
