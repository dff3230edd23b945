package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/commandcodec"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
)

// wires connects the nodes of a cluster, and loses messages as a test requires.
type wires struct {
	c *cluster

	lock   sync.Mutex
	leader *member
	term   int
	chance *rand.Rand // nil: nothing is lost
	later  string     // name of a command that the leader, of an earlier release, does not know; empty: it knows all
	late   sync.WaitGroup
}

func newWired(t *testing.T, nodes int, config engine.Config) (*cluster, *wires) {
	w := &wires{}
	config.Peers = w
	w.c = newCluster(t, nodes, config)
	t.Cleanup(w.late.Wait)
	return w.c, w
}

// lead makes a node the leader, and tells the others.
func (w *wires) lead(m *member, fails func() journaltest.Fault) error {
	err := w.c.lead(m, fails)
	w.c.group.lock.Lock()
	defer w.c.group.lock.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	if err == nil {
		w.leader, w.term = m, w.c.group.term
	}
	return err
}

// draw decides the fate of a request.
func (w *wires) draw() (to *member, lost, answerLost, repeated bool, delay time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if x := w.chance; x != nil {
		lost, answerLost, repeated = x.IntN(10) == 0, x.IntN(10) == 0, x.IntN(4) == 0
		delay = time.Duration(x.IntN(100)) * time.Millisecond
	}
	return w.leader, lost, answerLost, repeated, delay
}

func (w *wires) Execute(ctx context.Context, r *engine.Request) ([]byte, error) {
	to, lost, answerLost, repeated, delay := w.draw()
	if w.later != "" && bytes.Contains(r.Command, []byte(w.later)) {
		return nil, &engine.Undecided{Refusal: domain.Refuse(domain.Invalid, "decode a command: %q is unknown here: written by a later release", w.later)}
	}
	switch {
	case to == nil:
		return nil, engine.ErrNotLeading
	case lost:
		return nil, engine.ErrStopped
	case repeated: // the network delivers it once more, later
		w.late.Go(func() {
			time.Sleep(delay)
			_, _ = to.ExecuteFor(context.Background(), r)
		})
	}
	answer, err := to.ExecuteFor(ctx, r)
	if answerLost {
		return nil, engine.ErrStopped
	}
	return answer, err
}

func (w *wires) Index(context.Context) (uint64, error) {
	w.c.group.lock.Lock()
	defer w.c.group.lock.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.leader == nil || w.term != w.c.group.term {
		return 0, engine.ErrNotLeading
	}
	return uint64(len(w.c.group.entries)), nil
}

func (w *wires) Verify(context.Context) error { panic("asked of a node") }

// wired has the wires of one node.
type wired struct {
	*wires
	self *member
}

func (w *wired) Verify(context.Context) error {
	w.c.group.lock.Lock()
	defer w.c.group.lock.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.leader != w.self || w.term != w.c.group.term {
		return engine.ErrNotLeading
	}
	return nil
}

// cut hides the leader from all nodes.
func (w *wires) cut() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.leader = nil
}

func sees(t *testing.T, m *member, location string) (there bool) {
	t.Helper()
	for {
		err := m.Read(t.Context(), func(v *cell.View) error { _, there = v.Location(location); return nil })
		if errors.Is(err, engine.ErrStopped) && m.Err() == nil {
			continue // the node's office ended while it read: a client asks again
		}
		if err != nil {
			t.Error(err)
		}
		return there
	}
}

// TestAnyNode: every node accepts commands and fills in their results. A change that one node acknowledged is visible at the others at once.
func TestAnyNode(t *testing.T) {
	c, w := newWired(t, 3, engine.Config{})
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	c.house(c.members[1]).hall()
	for i := range 50 {
		at, next := c.members[i%3], c.members[(i+1)%3]
		name := fmt.Sprint("custom-", i)
		if err := at.Do(t.Context(), &hosting.CreateLocation{Name: name}); err != nil {
			t.Fatal(err)
		}
		if !sees(t, next, name) {
			t.Fatalf("%s is missing at the next node", name)
		}
	}
	game := c.house(c.members[2]).game("g1", 10)
	if got, err := c.members[1].GameSession(t.Context(), game); err != nil || got.ProcessID != "p-g1" {
		t.Errorf("the game session is %+v, %v", got, err)
	}
	err := c.members[2].Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"})
	if !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("a location that exists: %v", err)
	}
	c.agree()
}

// TestNoLeader: without a leader, commands and reads wait, and are refused after a while. No read returns stale data.
func TestNoLeader(t *testing.T) {
	c, w := newWired(t, 2, engine.Config{Patience: 50 * time.Millisecond})
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	w.cut()
	if err := c.members[1].Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"}); !domain.IsRefused(err, domain.Overloaded) {
		t.Errorf("a command: %v", err)
	}
	for _, m := range c.members {
		if err := m.Read(t.Context(), func(*cell.View) error { t.Error("a stale read"); return nil }); !domain.IsRefused(err, domain.Overloaded) {
			t.Errorf("a read: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.members[1].Read(ctx, func(*cell.View) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that was given up: %v", err)
	}
}

// TestReadAtANodeThatFallsBehind: a node that no longer receives or applies entries refuses reads after a while.
func TestReadAtANodeThatFallsBehind(t *testing.T) {
	c, w := newWired(t, 2, engine.Config{Patience: 50 * time.Millisecond})
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	c.members[1].disk.cutOff()
	if err := c.members[0].Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := c.members[1].Read(ctx, func(*cell.View) error { t.Error("a stale read"); return nil })
	if !domain.IsRefused(err, domain.Overloaded) {
		t.Error(err)
	}
}

// TestOneEffectThroughFaults: leaders change, requests and answers are lost and delivered twice, appends fail with either outcome. Yet each command has
// one effect. The test notices a second or a forgotten effect, because creating an existing record or deleting a missing one is an error.
func TestOneEffectThroughFaults(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1))
			c, w := newWired(t, 3, engine.Config{SnapshotEvery: 8 << 10, Patience: time.Minute})
			if err := w.lead(c.members[0], nil); err != nil {
				t.Fatal(err)
			}
			w.lock.Lock()
			w.chance = rand.New(rand.NewPCG(seed, 2))
			w.lock.Unlock()
			var work sync.WaitGroup
			var completed atomic.Int64 // commands
			const callers, each = 8, 60
			for caller := range callers {
				work.Go(func() {
					for i := range each {
						at, next := c.members[(caller+i)%3], c.members[(caller+i+1)%3]
						name := fmt.Sprintf("custom-%d-%d", caller, i)
						err := at.Do(t.Context(), &hosting.CreateLocation{Name: name})
						completed.Add(1)
						if err != nil {
							t.Errorf("%s: %v", name, err)
						} else if !sees(t, next, name) {
							t.Errorf("%s was acknowledged, and is missing at the next node", name)
						} else if err := next.Do(t.Context(), &hosting.DeleteLocation{Name: name}); err != nil {
							t.Errorf("delete %s: %v", name, err)
						}
					}
				})
			}
			ended := make(chan struct{})
			go func() { work.Wait(); close(ended) }()
			before, patience := int64(-1), 1
			for changes := 0; ; changes++ {
				if now := completed.Load(); now > before {
					before, patience = now, 1
				} else {
					patience *= 2 // or leaders would change faster than a busy machine completes commands
				}
				select {
				case <-ended:
					if changes == 0 {
						t.Error("the leader never changed")
					}
					w.late.Wait()
					c.agree()
					waittest.Until(t, "a last leader", func() bool { return w.lead(c.members[0], nil) == nil })
					if err := c.members[0].Read(t.Context(), func(v *cell.View) error {
						for _, l := range v.Locations("", 1000) {
							if strings.HasPrefix(l.Name, "custom-") {
								t.Errorf("%s was deleted, and is there: a copy of a command that came late had an effect", l.Name)
							}
						}
						return nil
					}); err != nil {
						t.Error(err)
					}
					return
				case <-time.After(time.Duration(patience*(20+chance.IntN(60))) * time.Millisecond):
				}
				appends, fail := chance.IntN(30), journaltest.Fault(chance.IntN(3))
				err := w.lead(c.members[chance.IntN(3)], func() journaltest.Fault {
					if appends--; appends == 0 {
						return fail
					}
					return journaltest.None
				})
				_ = err // it decides already, or its first append failed
			}
		})
	}
}

// join opens another node, with the peers and the log of the test.
func (c *cluster) join(config engine.Config, log engine.Log) *engine.Engine {
	c.Helper()
	vault, err := archivetest.NewMemory(1).Open()
	if err != nil {
		c.Fatal(err)
	}
	config.Archive, config.Cell = vault, cell.DefaultConfig()
	e, err := engine.OpenReplica(c.Context(), config, log)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = e.Close() })
	return e
}

// TestDeposedLeader: a node that does not know yet that another one leads refuses no command because of its own outdated state.
func TestDeposedLeader(t *testing.T) {
	c, w := newWired(t, 2, engine.Config{})
	c.group.lock.Lock()
	c.group.elect()
	unaware := &office{c.members[0].disk, c.group.term, make(chan struct{}), nil}
	c.group.lock.Unlock()
	if err := c.members[0].Lead(t.Context(), unaware); err != nil {
		t.Fatal(err)
	}
	if err := w.lead(c.members[1], nil); err != nil {
		t.Fatal(err)
	}
	if err := c.members[1].Do(t.Context(), &hosting.CreateLocation{Name: "custom-x"}); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { close(unaware.ended) })
	if err := c.members[0].Do(t.Context(), &hosting.DeleteLocation{Name: "custom-x"}); err != nil {
		t.Errorf("what the other node acknowledged is not there: %v", err)
	}
}

// slowDisk delays the next load of a snapshot.
type slowDisk struct {
	engine.Log
	hold             atomic.Bool
	loading, proceed chan struct{}
}

func (d *slowDisk) LatestSnapshot(ctx context.Context) (uint64, io.ReadCloser, error) {
	if d.hold.CompareAndSwap(true, false) {
		close(d.loading)
		<-d.proceed
	}
	return d.Log.LatestSnapshot(ctx)
}

// TestVoidStateIsNotShown: while a node drops uncommitted changes, a reader does not see them. It also does not mistake another entry with the same
// number for them.
func TestVoidStateIsNotShown(t *testing.T) {
	c, w := newWired(t, 2, engine.Config{})
	d := &disk{group: c.group}
	slow := &slowDisk{Log: d, loading: make(chan struct{}), proceed: make(chan struct{})}
	m := &member{disk: d}
	m.Engine = c.join(engine.Config{Peers: &wired{w, m}}, slow)
	var fail atomic.Bool
	if err := w.lead(m, func() journaltest.Fault {
		if fail.Load() {
			return journaltest.NotWritten
		}
		return journaltest.None
	}); err != nil {
		t.Fatal(err)
	}
	slow.hold.Store(true)
	fail.Store(true)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { _ = m.Do(ctx, &hosting.CreateLocation{Name: "custom-void"}) }()
	<-slow.loading
	giveUp()
	c.group.lock.Lock()
	w.lock.Lock()
	w.term = c.group.term // nothing was acknowledged since, so the index of a read is old
	w.lock.Unlock()
	c.group.lock.Unlock()
	read := make(chan bool, 1)
	go func() {
		there := false
		err := m.Read(t.Context(), func(v *cell.View) error { _, there = v.Location("custom-void"); return nil })
		read <- there && err == nil
	}()
	time.Sleep(20 * time.Millisecond) // the reader has seen what is void, or waits
	if err := w.lead(c.members[1], nil); err != nil {
		t.Fatal(err)
	}
	close(slow.proceed)
	if err := c.members[1].Do(t.Context(), &hosting.CreateLocation{Name: "custom-other"}); err != nil {
		t.Fatal(err)
	}
	if <-read {
		t.Error("a read has shown what was never committed")
	}
}

// deaf loses the first answer, and then calls a function of the test.
type deaf struct {
	*wires
	asked atomic.Int32
	then  func()
}

func (d *deaf) Execute(ctx context.Context, r *engine.Request) ([]byte, error) {
	answer, err := d.wires.Execute(ctx, r)
	if d.asked.Add(1) == 1 {
		d.then()
		return nil, engine.ErrStopped
	}
	return answer, err
}

// TestRefusedBeforeItIsDecided: a node without room refuses a command whose earlier attempt took effect. That refusal does not count as the answer.
func TestRefusedBeforeItIsDecided(t *testing.T) {
	var short atomic.Bool
	c, w := newWired(t, 2, engine.Config{Short: func() error {
		if short.Load() {
			return errors.New("full")
		}
		return nil
	}})
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	d := &deaf{wires: w, then: func() {
		short.Store(true)
		time.AfterFunc(50*time.Millisecond, func() { short.Store(false) })
	}}
	e := c.join(engine.Config{Peers: d}, &disk{group: c.group})
	if err := e.Do(t.Context(), &hosting.CreateLocation{Name: "custom-x"}); err != nil {
		t.Errorf("the command had its effect, and the error is %v", err)
	}
	short.Store(true)
	if err := e.Do(t.Context(), &hosting.CreateLocation{Name: "custom-y"}); !domain.IsRefused(err, domain.Overloaded) {
		t.Errorf("a first attempt without room: %v", err)
	}
}

// TestClosedWhileWaiting: a caller that waits for a leader stops asking when its node is closed.
func TestClosedWhileWaiting(t *testing.T) {
	c, w := newWired(t, 1, engine.Config{})
	d := &deaf{wires: w, then: func() {}}
	e := c.join(engine.Config{Peers: d, Patience: time.Hour}, &disk{group: c.group})
	asked := make(chan error, 1)
	go func() { asked <- e.Do(context.Background(), &hosting.CreateLocation{Name: "custom-x"}) }()
	waittest.Until(t, "a question", func() bool { return d.asked.Load() > 1 })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; !errors.Is(err, engine.ErrStopped) {
		t.Errorf("the node was closed, and the error is %v", err)
	}
}

// found is a form that reports when the answer of an earlier attempt was found.
type found struct {
	*commandcodec.Form
	found chan struct{}
}

func (f found) Fill(cmd kernel.Command, answer []byte) error {
	close(f.found)
	return f.Form.Fill(cmd, answer)
}

// TestVoidBesideAnEffectThatIsLost: a node is about to record that a request had no effect, and finds the effect of an earlier attempt, whose append then
// fails. The request counts as effective only once that append is durable.
func TestVoidBesideAnEffectThatIsLost(t *testing.T) {
	c, w := newWired(t, 1, engine.Config{})
	m := c.members[0]
	var hold atomic.Bool
	appending, fail := make(chan struct{}), make(chan struct{})
	if err := w.lead(m, func() journaltest.Fault {
		if !hold.Load() {
			return journaltest.None
		}
		close(appending)
		<-fail
		return journaltest.NotWritten
	}); err != nil {
		t.Fatal(err)
	}
	hold.Store(true)
	cmd := &hosting.CreateLocation{Name: "custom-x"}
	asked, err := commandcodec.Encode(cmd)
	if err != nil {
		t.Fatal(err)
	}
	r := &engine.Request{Asker: domain.UUID{1}, No: 1, Attempt: 1, Settled: 1, Command: asked.Asked()}
	first := make(chan error, 1)
	go func() { _, err := m.ExecuteFor(context.Background(), r); first <- err }()
	<-appending
	second := make(chan error, 1)
	form := found{asked, make(chan struct{})}
	go func() {
		second <- m.Void(&answers.Once{Command: cmd, Asker: r.Asker, Request: 1, Attempt: 2, Settled: 1, Form: form}, errors.New("refused"))
	}()
	<-form.found
	close(fail)
	if err := <-first; !errors.Is(err, engine.ErrStopped) {
		t.Errorf("the first attempt: %v", err)
	}
	if err := <-second; !errors.Is(err, engine.ErrNotLeading) {
		t.Errorf("the second attempt: %v; want that it is asked again", err)
	}
}
