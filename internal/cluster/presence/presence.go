package presence

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
)

// Question is the kind of question that carries a Word; see package exchange.
const Question = 'p'

const (
	roundEvery = 500 * time.Millisecond
	roundMax   = 3 * roundEvery // longer rounds count as this
	wordWait   = time.Second    // time to wait for the answer to a word
	silenceMax = 3 * time.Second
	aloneMax   = 8 * time.Second
)

// Engine executes commands on the leader, and reads everything that the cluster has acknowledged.
type Engine interface {
	Do(ctx context.Context, cmd kernel.Command) error
	Read(ctx context.Context, f func(v *cell.View) error) error
	Now() time.Time                       // the cluster's time
	Heard(t time.Time, ago time.Duration) // the leader's Now was t, at most ago before the call
}

// Standing is what a node reports about itself.
type Standing struct {
	Applied uint64            `cbor:",omitempty"` // number of the last journal entry that it has applied
	Version string            `cbor:",omitempty"` // of the program
	Level   uint              `cbor:",omitempty"` // the highest level of the journal's events that it knows
	URL     string            `cbor:",omitempty"` // for clients
	Short   bool              `cbor:",omitempty"` // it is short of space
	Clock   int64             `cbor:",omitempty"` // its clock at the time of the report, Unix milliseconds
	Lacks   bool              `cbor:",omitempty"` // its archive is incomplete, and it copies records from another node
	NoVote  string            `cbor:",omitempty"` // why it has no vote, for people
	Marks   map[string]uint64 `cbor:",omitempty"` // hashes of shared settings, see settings.Settings.Marks
}

// Word is a node's report to the leader.
type Word struct {
	Node        string
	Incarnation domain.UUID
	Leaves      bool `cbor:",omitempty"` // it has closed its doors and stops
	Standing
}

// reply is the answer to a Word.
type reply struct {
	GivenUp bool                        `cbor:",omitempty"` // the incarnation has ended
	Now     int64                       `cbor:",omitempty"` // the cluster's time, Unix milliseconds
	From    map[trust.NodeID]netip.Addr `cbor:",omitempty"` // addresses from which nodes last connected to the leader
}

// Config configures a node's presence.
type Config struct {
	Node     string // its id
	Engine   Engine
	Ask      func(ctx context.Context, question byte, body []byte) ([]byte, error) // asks the leader; see exchange.Peers
	Standing func() Standing
	From     func() map[trust.NodeID]netip.Addr // addresses from which nodes last connected, for the other nodes when this one leads
	Learn    func(map[trust.NodeID]netip.Addr)  // takes the leader's From
	Log      *slog.Logger
}

// Presence is the presence of one node; while the node leads, it also watches the others. All methods may be called concurrently.
type Presence struct {
	Config
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	lock   sync.Mutex
	id     domain.UUID   // of the current incarnation, which may not be registered yet
	begun  chan struct{} // closed while it is registered
	drop   []func()
	office *office // nil: this node does not lead
}

// Open registers this node and keeps it present until Close.
func Open(c Config) *Presence {
	p := &Presence{Config: c, id: newID(), begun: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.work.Go(p.run)
	return p
}

func newID() (id domain.UUID) {
	_, _ = rand.Read(id[:])
	return id
}

// Node returns the id of the node's current incarnation, which doors pass to commands that attach a connection. A door drops a connection attached
// under an id that is no longer current.
func (p *Presence) Node() domain.UUID {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.id
}

// Begun waits until the node is registered, so that its doors may open.
func (p *Presence) Begun(ctx context.Context) error {
	p.lock.Lock()
	begun := p.begun
	p.lock.Unlock()
	select {
	case <-begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Registered reports whether the current incarnation is registered.
func (p *Presence) Registered() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case <-p.begun:
		return true
	default:
		return false
	}
}

// WhenGivenUp registers drop, which must drop all connections of a door. It is called whenever the node was given up; by then Node returns another
// id.
func (p *Presence) WhenGivenUp(drop func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.drop = append(p.drop, drop)
}

// Close ends the presence. From then on the leader counts the node's connections as lost, so the doors must be closed first.
func (p *Presence) Close(ctx context.Context) {
	p.cancel()
	p.work.Wait()
	p.lock.Lock()
	begun := p.begun
	p.lock.Unlock()
	select {
	case <-begun:
		ctx, cancel := context.WithTimeout(ctx, wordWait)
		defer cancel()
		if err := p.goodbye(ctx); err != nil {
			p.Log.Info("the node stops but could not tell the leader, which will count its connections as lost after a time-out", "error", err)
		}
	default:
	}
	p.Rest()
}

// goodbye tells the leader that the node leaves. If this node has just handed over, the next leader may not decide yet, so goodbye retries.
func (p *Presence) goodbye(ctx context.Context) error {
	for {
		_, err := p.say(ctx, true)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(wordWait / 20):
		case <-ctx.Done():
			return err
		}
	}
}

// run is the goroutine of the node's presence.
func (p *Presence) run() {
	for p.begin() {
		why := p.stay()
		if why == "" {
			return
		}
		p.giveUp(why)
	}
}

// begin registers the current incarnation. It waits for a leader as long as necessary, and reports false if the presence ends first.
func (p *Presence) begin() bool {
	id := p.Node()
	for said := false; ; {
		err := p.Engine.Do(p.ctx, &membership.BeginNode{Node: id, Name: p.Config.Node})
		if err == nil {
			break
		}
		if !said && p.ctx.Err() == nil {
			p.Log.Warn("the node cannot register with the cluster yet, and takes no connections: it tries again", "error", err)
			said = true
		}
		if !p.pause() {
			return false
		}
	}
	p.Log.Info("the node is registered with the cluster", "incarnation", fmt.Sprint(id))
	p.lock.Lock()
	close(p.begun)
	p.lock.Unlock()
	return true
}

func (p *Presence) pause() bool {
	select {
	case <-time.After(roundEvery):
		return true
	case <-p.ctx.Done():
		return false
	}
}

// stay reports to the leader until the node is given up or loses contact, and returns the reason; empty if the presence ends.
func (p *Presence) stay() (why string) {
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	alone, last := time.Duration(0), time.Now()
	for {
		ctx, cancel := context.WithTimeout(p.ctx, wordWait)
		givenUp, err := p.say(ctx, false)
		cancel()
		now := time.Now()
		alone, last = alone+min(now.Sub(last), roundMax), now
		switch {
		case p.ctx.Err() != nil:
			return ""
		case givenUp:
			return "the leader has given up this node, which was silent for too long"
		case err == nil:
			alone = 0
		case alone >= aloneMax:
			return "this node has no contact with a leader"
		}
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return ""
		}
	}
}

// giveUp ends the incarnation. The next one has another id before any connection is dropped, so that no connection is attached under the old id
// afterwards.
func (p *Presence) giveUp(why string) {
	p.Log.Warn("all connections of this node are dropped, so that game servers and players reconnect, to any node", "reason", why)
	p.lock.Lock()
	p.id, p.begun = newID(), make(chan struct{})
	drop := p.drop
	p.lock.Unlock()
	for _, f := range drop {
		f()
	}
}

// say reports to the leader that the node is up, or leaves.
func (p *Presence) say(ctx context.Context, leaves bool) (givenUp bool, err error) {
	w := Word{Node: p.Config.Node, Incarnation: p.Node(), Leaves: leaves, Standing: p.Standing()}
	if o := p.presiding(); o != nil {
		return o.hear(ctx, &w)
	}
	body, err := cbor.Marshal(w)
	if err != nil {
		return false, err
	}
	asked := time.Now()
	answer, err := p.Ask(ctx, Question, body)
	if err != nil {
		return false, err
	}
	var r reply
	if err := cbor.Unmarshal(answer, &r); err != nil {
		return false, fmt.Errorf("the leader's answer: %w", err)
	}
	if r.Now != 0 {
		p.Engine.Heard(time.UnixMilli(r.Now), time.Since(asked))
	}
	p.Learn(r.From)
	return r.GivenUp, nil
}

func (p *Presence) presiding() *office {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.office
}
