package presence

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
)

// nodes is a cluster whose journal and network are a lock. One node leads at a time, and nodes may be cut off.
type nodes struct {
	t      *testing.T
	lock   sync.Mutex
	cell   *cell.Cell
	number uint64
	leader string
	cut    map[string]bool
	all    map[string]*Presence
	drops  map[string]int
	told   map[string]map[trust.NodeID]netip.Addr // what each node has learnt from the leader
	frozen chan struct{}                          // until it is closed nothing is read; nil: at once
}

func newNodes(t *testing.T) *nodes {
	return &nodes{t: t, cell: cell.New(cell.DefaultConfig()), cut: map[string]bool{}, all: map[string]*Presence{}, drops: map[string]int{}, told: map[string]map[trust.NodeID]netip.Addr{}}
}

var here = netip.MustParseAddr("192.0.2.1")

// seat is the engine of one node.
type seat struct {
	*nodes
	node string
}

func (s seat) reaches() bool { return s.leader != "" && !s.cut[s.node] && !s.cut[s.leader] }

func (s seat) Do(ctx context.Context, cmd kernel.Command) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !s.reaches() {
		return domain.Refuse(domain.Overloaded, "no node decides")
	}
	s.number++
	_, err := s.cell.Execute(cmd, &kernel.Env{Now: domain.TimeOf(time.Now()), Number: s.number, Seed: domain.UUID{1}})
	return err
}

func (s seat) Read(ctx context.Context, f func(v *cell.View) error) error {
	s.lock.Lock()
	frozen := s.frozen
	s.lock.Unlock()
	if frozen != nil {
		<-frozen
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.reaches() {
		return engine.ErrNotLeading
	}
	v := s.cell.View()
	return f(&v)
}

func (seat) Now() time.Time { return time.Now() }

// Heard records that the node was told the leader's time.
func (s seat) Heard(told time.Time, ago time.Duration) {
	if now := time.Now(); told.After(now) || now.Sub(told) > ago+time.Millisecond { // whole milliseconds travel
		s.t.Errorf("%s heard at %v that it was %v at most %v ago", s.node, now, told, ago)
	}
}

func (n *nodes) open(name string) *Presence {
	s := seat{n, name}
	p := Open(Config{
		Node: name, Engine: s, Log: slog.New(slog.DiscardHandler),
		Standing: func() Standing { return Standing{Applied: 7, Version: "of " + name, Level: 3} },
		From: func() map[trust.NodeID]netip.Addr {
			return map[trust.NodeID]netip.Addr{trust.NodeID("seen by " + name): here}
		},
		Learn: func(told map[trust.NodeID]netip.Addr) {
			n.lock.Lock()
			defer n.lock.Unlock()
			n.told[name] = told
		},
		Ask: func(ctx context.Context, question byte, body []byte) ([]byte, error) {
			n.lock.Lock()
			reaches, leader := s.reaches() && question == Question, n.all[n.leader]
			n.lock.Unlock()
			if !reaches {
				return nil, engine.ErrNotLeading
			}
			return leader.Answer(ctx, body)
		},
	})
	n.lock.Lock()
	n.all[name] = p
	n.lock.Unlock()
	p.WhenGivenUp(func() {
		n.lock.Lock()
		n.drops[name]++
		n.lock.Unlock()
	})
	return p
}

// lead changes the leader. "" means no leader.
func (n *nodes) lead(name string) {
	n.lock.Lock()
	was := n.all[n.leader]
	n.leader = name
	now := n.all[name]
	n.lock.Unlock()
	if was != nil {
		was.Rest()
	}
	if now != nil {
		now.Lead()
	}
}

func (n *nodes) set(name string, cut bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.cut[name] = cut
}

// want checks which nodes are registered, and how often each has dropped its connections.
func (n *nodes) want(registered string, drops map[string]int) {
	n.t.Helper()
	synctest.Wait()
	n.lock.Lock()
	defer n.lock.Unlock()
	v := n.cell.View()
	var names []string
	for _, x := range v.Nodes() {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != registered {
		n.t.Errorf("registered are %q, want %q", got, registered)
	}
	for name := range n.all {
		if n.drops[name] != drops[name] {
			n.t.Errorf("%s has dropped its connections %d times, want %d", name, n.drops[name], drops[name])
		}
	}
}

func (n *nodes) close() {
	for _, p := range n.all {
		p.Close(context.Background())
	}
	n.lead("")
}

// in3 runs a test with three nodes, of which n1 leads, in virtual time.
func in3(t *testing.T, test func(t *testing.T, n *nodes)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		for _, name := range []string{"n1", "n2", "n3"} {
			n.open(name)
		}
		time.Sleep(2 * time.Second) // no node leads yet
		n.want("", nil)
		n.lead("n1")
		for _, p := range n.all {
			if err := p.Begun(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		test(t, n)
		n.close()
	})
}

func TestEverybodyIsThere(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		for range 5 {
			n.lead("n2")
			time.Sleep(2 * time.Second)
			n.lead("")
			time.Sleep(4 * time.Second) // an election
			n.lead("n3")
			time.Sleep(20 * time.Second)
		}
		if v := n.cell.View(); len(v.Nodes()) != 3 {
			t.Errorf("%d nodes are registered", len(v.Nodes()))
		}
		all := n.all["n3"].Nodes()
		if len(all) != 3 || n.all["n1"].Nodes() != nil {
			t.Fatalf("the leader knows %d nodes, another one %d", len(all), len(n.all["n1"].Nodes()))
		}
		for i, x := range all {
			name := []string{"n1", "n2", "n3"}[i]
			if x.Node != name || x.Incarnation != n.all[name].Node() || x.Level != 3 || x.Version != "of "+name || time.Since(x.Heard) > time.Second {
				t.Errorf("%s is %+v", name, x)
			}
		}
		for name, drops := range n.drops {
			t.Errorf("%s has dropped its connections %d times", name, drops)
		}
	})
}

// TestSilentNode: a node that is cut off is given up after 3 s, drops its connections after 8 s without a leader, and comes back as another incarnation.
// The leader tells the others where nodes have connected from, so that two nodes that have moved find each other.
func TestWhereNodesConnectFrom(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		n.lead("n2")
		time.Sleep(2 * time.Second)
		n.lock.Lock()
		defer n.lock.Unlock()
		for _, name := range []string{"n1", "n3"} {
			if want := (map[trust.NodeID]netip.Addr{"seen by n2": here}); !maps.Equal(n.told[name], want) {
				t.Errorf("%s has learnt %v, want %v", name, n.told[name], want)
			}
		}
	})
}

func TestSilentNode(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		before := n.all["n2"].Node()
		n.set("n2", true)
		time.Sleep(2 * time.Second)
		n.want("n1 n2 n3", nil)
		time.Sleep(2500 * time.Millisecond)
		n.want("n1 n3", nil)
		if n.all["n2"].Node() != before {
			t.Error("the node has given itself up early")
		}
		time.Sleep(5 * time.Second)
		n.want("n1 n3", map[string]int{"n2": 1})
		time.Sleep(time.Minute)
		n.set("n2", false)
		if err := n.all["n2"].Begun(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		n.want("n1 n2 n3", map[string]int{"n2": 1})
		if n.all["n2"].Node() == before {
			t.Error("the incarnation is the one that was given up")
		}
	})
}

// TestWokenNode: a node that was absent for longer than the leader waits is told so, drops its connections and registers again.
func TestWokenNode(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		before := n.all["n2"].Node()
		n.set("n2", true)
		time.Sleep(5 * time.Second)
		n.want("n1 n3", nil)
		n.set("n2", false)
		time.Sleep(time.Second)
		n.want("n1 n2 n3", map[string]int{"n2": 1})
		refused := seat{n, "n2"}.Do(t.Context(), &hosting.ConnectProcess{Node: before})
		if refused == nil {
			t.Error("the incarnation that was given up attaches a connection")
		}
	})
}

// TestDeadLeader: the next leader gives the one before up 3 s after the beginning of its office, and no other node.
func TestDeadLeader(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		n.set("n1", true)
		n.lead("")
		time.Sleep(2 * time.Second)
		n.lead("n2")
		time.Sleep(2 * time.Second)
		n.want("n1 n2 n3", nil)
		time.Sleep(2500 * time.Millisecond)
		n.want("n2 n3", nil)
		time.Sleep(5 * time.Second)
		n.want("n2 n3", map[string]int{"n1": 1})
	})
}

// TestNoLeader: without a majority anywhere all nodes drop their connections, once, and register again when one leads.
func TestNoLeader(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		n.lead("")
		time.Sleep(time.Minute)
		once := map[string]int{"n1": 1, "n2": 1, "n3": 1}
		n.want("n1 n2 n3", once)
		n.lead("n3")
		time.Sleep(10 * time.Second)
		if v := n.cell.View(); len(v.Nodes()) != 3 || v.Nodes()[0].No < 4 {
			t.Errorf("registered are %+v, want the next incarnations of three", v.Nodes())
		}
		n.lead("n1")
		time.Sleep(10 * time.Second)
		for name, drops := range n.drops {
			if drops != once[name] {
				t.Errorf("%s has dropped its connections %d times", name, drops)
			}
		}
	})
}

// TestSleepingLeader: a leader that wakes up hears the others before it gives one up.
func TestSleepingLeader(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		n.lock.Lock()
		n.frozen = make(chan struct{})
		n.lock.Unlock()
		time.Sleep(7 * time.Second)
		n.lock.Lock()
		close(n.frozen)
		n.frozen = nil
		n.lock.Unlock()
		time.Sleep(10 * time.Second)
		n.want("n1 n2 n3", nil)
	})
}

// TestGoodbye: a node that stops is given up at once, even the leader.
func TestGoodbye(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		n.all["n2"].Close(t.Context())
		n.want("n1 n3", nil)
		n.all["n1"].Close(t.Context())
		n.want("n3", nil)
	})
}

// TestGoodbyeToTheNextLeader: a leader that has handed over and stops is given up once the next leader is ready.
func TestGoodbyeToTheNextLeader(t *testing.T) {
	in3(t, func(t *testing.T, n *nodes) {
		n.lead("")
		go func() {
			time.Sleep(600 * time.Millisecond)
			n.lead("n2")
		}()
		began := time.Now()
		n.all["n1"].Close(t.Context())
		n.want("n2 n3", nil)
		if took := time.Since(began); took > wordWait {
			t.Errorf("it took %v", took)
		}
	})
}

// TestClosedBeforeItBegan: a node that never reached a leader sends no goodbye.
func TestClosedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		p := n.open("n1")
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if p.Begun(ctx) == nil {
			t.Error("it is registered without a leader")
		}
		p.Close(t.Context())
		n.want("", nil)
	})
}
