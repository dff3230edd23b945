package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

// wires connect the nodes of a cluster, and lose what a test wants them to lose.
type wires struct {
	c *cluster

	lock   sync.Mutex
	leader *member
	term   int
	chance *rand.Rand // nil: nothing is lost
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

// draw says what becomes of a question.
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

// cut takes the leader from everyone's sight.
func (w *wires) cut() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.leader = nil
}

func sees(t *testing.T, m *member, location string) (there bool) {
	t.Helper()
	if err := m.Read(t.Context(), func(v *cell.View) error { _, there = v.Location(location); return nil }); err != nil {
		t.Error(err)
	}
	return there
}

// TestAnyNode: every node takes commands and fills in their results, and what one was told is true at the others at once.
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
	if !isRefusal(err, domain.Conflict) {
		t.Errorf("a location that exists: %v", err)
	}
	c.agree()
}

// TestNoLeader: without a node that decides, commands and reads wait, and are refused after a while; nothing stale is shown.
func TestNoLeader(t *testing.T) {
	c, w := newWired(t, 2, engine.Config{Patience: 50 * time.Millisecond})
	if err := w.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	w.cut()
	if err := c.members[1].Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"}); !isRefusal(err, domain.Overloaded) {
		t.Errorf("a command: %v", err)
	}
	for _, m := range c.members {
		if err := m.Read(t.Context(), func(*cell.View) error { t.Error("a stale read"); return nil }); !isRefusal(err, domain.Overloaded) {
			t.Errorf("a read: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.members[1].Read(ctx, func(*cell.View) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that was given up: %v", err)
	}
}

// TestOneEffectThroughFaults: leaders come and go, questions and answers are lost and delivered twice, appends fail with either outcome. Yet each command
// has one effect: creating what exists and deleting what does not are refused, so a second effect, or a first one that was forgotten, would be an error.
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
			const callers, each = 8, 60
			for caller := range callers {
				work.Go(func() {
					for i := range each {
						at, next := c.members[(caller+i)%3], c.members[(caller+i+1)%3]
						name := fmt.Sprintf("custom-%d-%d", caller, i)
						if err := at.Do(t.Context(), &hosting.CreateLocation{Name: name}); err != nil {
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
			for changes := 0; ; changes++ {
				select {
				case <-ended:
					if changes == 0 {
						t.Error("the leader never changed")
					}
					w.late.Wait()
					c.agree()
					until(t, "a last leader", func() bool { return w.lead(c.members[0], nil) == nil })
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
				case <-time.After(time.Duration(20+chance.IntN(60)) * time.Millisecond):
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
