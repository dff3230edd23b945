package answers_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/commandcodec"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// node is a cell with its journal.
type node struct {
	t       *testing.T
	cell    *cell.Cell
	journal [][]byte
	seed    uint64
}

func newNode(t *testing.T) *node {
	return &node{t: t, cell: cell.New(cell.DefaultConfig())}
}

func (n *node) do(cmd kernel.Command) (emitted bool, err error) {
	n.seed++
	env := kernel.Env{Now: 1_700_000_000_000 + domain.Time(n.seed), Number: uint64(len(n.journal) + 1)}
	binary.BigEndian.PutUint64(env.Seed[:], n.seed)
	emitted, err = n.cell.Execute(cmd, &env)
	if emitted {
		n.journal = append(n.journal, env.Batch)
	}
	return emitted, err
}

func (n *node) must(cmd kernel.Command) (emitted bool) {
	n.t.Helper()
	emitted, err := n.do(cmd)
	if err != nil {
		n.t.Fatalf("%T: %v", cmd, err)
	}
	return emitted
}

// replayed returns another node that applied the same journal.
func (n *node) replayed() *node {
	n.t.Helper()
	other := &node{t: n.t, cell: cell.New(cell.DefaultConfig()), journal: n.journal, seed: n.seed + 100}
	for i, batch := range n.journal {
		if err := other.cell.Replay(uint64(i+1), batch); err != nil {
			n.t.Fatal(err)
		}
	}
	return other
}

// loaded returns another node that loaded a snapshot.
func (n *node) loaded() *node {
	n.t.Helper()
	var stored bytes.Buffer
	if err := n.cell.Freeze().Write(&stored); err != nil {
		n.t.Fatal(err)
	}
	other := &node{t: n.t, cell: cell.New(cell.DefaultConfig()), journal: n.journal, seed: n.seed + 100}
	if err := other.cell.Load(&stored); err != nil {
		n.t.Fatal(err)
	}
	return other
}

var asker = domain.UUID{1, 2, 3}

// once returns a function that makes one attempt of a request after the other: each begins with the command as it was first sent.
func once(t *testing.T, request, settled uint64, cmd kernel.Command) func() (*answers.Once, kernel.Command) {
	t.Helper()
	asked, err := commandcodec.Encode(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return func() (*answers.Once, kernel.Command) {
		again, err := asked.Command()
		if err != nil {
			t.Fatal(err)
		}
		return &answers.Once{Command: again, Asker: asker, Request: request, Settled: settled, Form: asked}, again
	}
}

func newLocation() *hosting.CreateLocation {
	return &hosting.CreateLocation{Name: "custom-dev", Region: "us-east-1"}
}

func build(no uint64) *hosting.CreateBuild {
	return &hosting.CreateBuild{Build: fleet.Build{ID: fmt.Sprint("build-", no), Name: "arena"}}
}

// A request has one effect, and each attempt gets the answer of the first, both on the leader that executed it and on its followers.
func TestOneEffect(t *testing.T) {
	first := newNode(t)
	ask := once(t, 1, 1, &hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Name: "arena"}})
	wrapped, cmd := ask()
	if !first.must(wrapped) {
		t.Fatal("nothing has happened")
	}
	made := cmd.(*hosting.CreateBuild).Build
	if made.Created == 0 {
		t.Fatalf("made %+v", made)
	}
	for name, n := range map[string]*node{"the same node": first, "a replica": first.replayed(), "a node with a snapshot": first.loaded()} {
		wrapped, cmd := ask()
		if n.must(wrapped) {
			t.Errorf("%s: it happened again", name)
		}
		if again := cmd.(*hosting.CreateBuild).Build; again.ID != "build-1" || again.Created != made.Created || again.Name != "arena" {
			t.Errorf("%s: answered %+v, the first time %+v", name, again, made)
		}
	}
}

// The answer to a request that changed nothing is not kept: a repeat is executed again.
func TestRefusedAndIdleRequests(t *testing.T) {
	n := newNode(t)
	ask := once(t, 1, 1, newLocation())
	n.must(newLocation())
	wrapped, _ := ask()
	if _, err := n.do(wrapped); err == nil {
		t.Fatal("a location was made twice")
	}
	if askers := n.cell.Askers(); len(askers) != 0 {
		t.Errorf("remembered: %+v", askers)
	}
	n.must(&hosting.DeleteLocation{Name: "custom-dev"})
	wrapped, _ = ask()
	if !n.must(wrapped) {
		t.Error("the refusal is remembered")
	}
}

// Every node keeps an answer until its number is settled. A late copy of a settled request has no effect.
func TestSettled(t *testing.T) {
	n := newNode(t)
	ask := func(n *node, request, settled uint64) (happened bool, err error) {
		wrapped, _ := once(t, request, settled, build(request))()
		return n.do(wrapped)
	}
	for _, request := range []uint64{3, 1, 2, 5, 4} { // they may overtake each other
		if happened, err := ask(n, request, 1); !happened || err != nil {
			t.Fatalf("request %d: happened %t, %v", request, happened, err)
		}
	}
	if happened, err := ask(n, 6, 4); !happened || err != nil {
		t.Fatal(happened, err)
	}
	for name, n := range map[string]*node{"the same node": n, "a replica": n.replayed(), "a node with a snapshot": n.loaded()} {
		if a := n.cell.Askers()[asker]; a.Kept != 3 || a.Settled != 4 {
			t.Errorf("%s: remembered %+v", name, a)
		}
		for request := uint64(1); request <= 6; request++ {
			happened, err := ask(n, request, 1)
			if happened || (err != nil) != (request < 4) {
				t.Errorf("%s: request %d happened again: %t, %v", name, request, happened, err)
			}
		}
		if happened, err := ask(n, 1<<40, 1<<40); !happened || err != nil { // most requests change nothing
			t.Errorf("%s: a new request: happened %t, %v", name, happened, err)
		}
		if a := n.cell.Askers()[asker]; a.Kept != 1 || a.Settled != 1<<40 {
			t.Errorf("%s: remembered %+v", name, a)
		}
	}
}

// The answers of a process that has been silent for too long are dropped, and its requests no longer have an effect.
func TestDropAnswers(t *testing.T) {
	n := newNode(t)
	ask := once(t, 9, 8, newLocation())
	wrapped, _ := ask()
	n.must(wrapped)
	if n.must(&answers.DropAnswers{Asker: domain.UUID{9}}) {
		t.Error("dropping nothing is an event")
	}
	n.must(&answers.DropAnswers{Asker: asker})
	n.must(&hosting.DeleteLocation{Name: "custom-dev"})
	for name, n := range map[string]*node{"the same node": n, "a replica": n.replayed(), "a node with a snapshot": n.loaded()} {
		if a := n.cell.Askers()[asker]; a.Kept != 0 || a.Settled != 10 {
			t.Errorf("%s: remembered %+v", name, a)
		}
		wrapped, _ := ask()
		if happened, err := n.do(wrapped); happened || err == nil || !wrapped.Lost {
			t.Errorf("%s: asked again: happened %t, %v, lost %t", name, happened, err, wrapped.Lost)
		}
		wrapped, _ = once(t, 10, 10, build(10))()
		if !n.must(wrapped) {
			t.Errorf("%s: the next request has no effect", name)
		}
	}
}

// Once a caller was told that its request had no effect, a late copy of an earlier attempt has none either.
func TestVoid(t *testing.T) {
	n := newNode(t)
	ask := once(t, 1, 1, &hosting.DeleteLocation{Name: "custom-dev"})
	attempt := func(n *node, no uint64) (*answers.Once, bool, error) {
		wrapped, _ := ask()
		wrapped.Attempt = no
		happened, err := n.do(wrapped)
		return wrapped, happened, err
	}
	second, happened, err := attempt(n, 2) // the first is still on its way
	if happened || err == nil || !second.Decided || second.Changed {
		t.Fatalf("there is nothing to delete: happened %t, %v, %+v", happened, err, second)
	}
	if !n.must(&answers.Void{Once: second}) {
		t.Fatal("that the request is void is no event")
	}
	n.must(newLocation())
	for name, n := range map[string]*node{"the same node": n, "a replica": n.replayed(), "a node with a snapshot": n.loaded()} {
		for no := uint64(1); no <= 2; no++ {
			if late, happened, err := attempt(n, no); happened || err == nil || !late.Lost {
				t.Errorf("%s: attempt %d comes late: happened %t, %v", name, no, happened, err)
			}
		}
		if third, happened, err := attempt(n, 3); !happened || err != nil || !third.Changed {
			t.Errorf("%s: the asker asks again: happened %t, %v", name, happened, err)
		}
	}
}

// An earlier attempt that arrives before its request is void takes effect: the caller gets its answer.
func TestVoidTooLate(t *testing.T) {
	n := newNode(t)
	n.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-7"}})
	ask := once(t, 7, 7, build(7))
	first, made := ask()
	first.Attempt = 1
	second, cmd := ask()
	second.Attempt, second.Decided = 2, true
	n.must(first)
	if n.must(&answers.Void{Once: second}) || !second.Changed {
		t.Errorf("the request is void although it had an effect: %+v", second)
	}
	if cmd.(*hosting.CreateBuild).Build.Created != made.(*hosting.CreateBuild).Build.Created {
		t.Error("the answer is not that of the first attempt")
	}
}

// unwritable is a form that cannot encode answers.
type unwritable struct{}

func (unwritable) Answer(kernel.Command) ([]byte, error) { return nil, errors.New("no form") }
func (unwritable) Fill(kernel.Command, []byte) error     { return nil }

// A request whose answer cannot be stored still has one effect only.
func TestUnwritableAnswer(t *testing.T) {
	n := newNode(t)
	ask := func() *answers.Once {
		return &answers.Once{Command: newLocation(), Asker: asker, Request: 1, Settled: 1, Form: unwritable{}}
	}
	n.must(ask())
	var refusal *domain.Refusal
	if emitted, err := n.do(ask()); emitted || !errors.As(err, &refusal) || refusal.Reason != domain.Conflict {
		t.Errorf("again: emitted %t, %v", emitted, err)
	}
}
