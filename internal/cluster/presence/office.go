package presence

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/engine"
)

// Present is a registered node as seen by the leader.
type Present struct {
	Node        string
	Incarnation domain.UUID
	Standing              // zero until the node has reported
	Heard       time.Time // time of its last report; zero: none to this leader
}

// office is a term of leadership: it receives the nodes' reports, and gives up silent nodes.
type office struct {
	p      *Presence
	began  time.Time
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	lock  sync.Mutex
	clock time.Duration // time counted since the start of leadership
	nodes []membership.Node
	heard map[domain.UUID]heard
}

type heard struct {
	Standing
	at    time.Time
	clock time.Duration // the office's clock at that time
}

// Lead starts to watch the nodes, when this node starts to lead.
func (p *Presence) Lead() {
	o := &office{p: p, began: time.Now(), heard: map[domain.UUID]heard{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	p.lock.Lock()
	p.office = o
	p.lock.Unlock()
	o.work.Go(o.watch)
}

// Rest stops watching the nodes. It returns when that has ended.
func (p *Presence) Rest() {
	p.lock.Lock()
	o := p.office
	p.office = nil
	p.lock.Unlock()
	if o != nil {
		o.cancel()
		o.work.Wait()
	}
}

// Leading returns for how long this node has led; 0 if it does not lead.
func (p *Presence) Leading() time.Duration {
	if o := p.presiding(); o != nil {
		return time.Since(o.began)
	}
	return 0
}

// Nodes returns the registered nodes, ordered by name; nil if this node does not lead.
func (p *Presence) Nodes() (all []Present) {
	o := p.presiding()
	if o == nil {
		return nil
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	for _, n := range o.nodes {
		h := o.heard[n.ID]
		all = append(all, Present{n.Name, n.ID, h.Standing, h.at})
	}
	slices.SortFunc(all, func(a, b Present) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// Answer answers another node's Question. It is an exchange.Handler.
func (p *Presence) Answer(ctx context.Context, body []byte) ([]byte, error) {
	var w Word
	if err := cbor.Unmarshal(body, &w); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%v", err)
	}
	o := p.presiding()
	if o == nil {
		return nil, engine.ErrNotLeading
	}
	givenUp, err := o.hear(ctx, &w)
	if err != nil {
		return nil, err
	}
	return cbor.Marshal(reply{givenUp, o.p.Engine.Now().UnixMilli(), p.From()})
}

// hear handles a node's report. A nil error means that this node has verified that it leads.
func (o *office) hear(ctx context.Context, w *Word) (givenUp bool, err error) {
	if w.Leaves {
		return true, o.p.Engine.Do(ctx, &membership.LoseNode{Node: w.Incarnation})
	}
	o.lock.Lock()
	o.heard[w.Incarnation] = heard{w.Standing, time.Now(), o.clock}
	o.lock.Unlock()
	ctx, cancel := context.WithTimeout(ctx, wordWait)
	defer cancel()
	nodes, err := o.registered(ctx)
	return !slices.ContainsFunc(nodes, func(n membership.Node) bool { return n.ID == w.Incarnation }) && err == nil, err
}

func (o *office) registered(ctx context.Context) (nodes []membership.Node, err error) {
	err = o.p.Engine.Read(ctx, func(v *cell.View) error {
		nodes = v.Nodes()
		return nil
	})
	return nodes, err
}

// watch is the goroutine that gives up silent nodes.
func (o *office) watch() {
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for last := time.Now(); ; {
		ctx, cancel := context.WithTimeout(o.ctx, wordWait)
		nodes, err := o.registered(ctx)
		cancel()
		now := time.Now()
		elapsed := min(now.Sub(last), roundMax)
		last = now
		if err == nil {
			for _, n := range o.silent(nodes, elapsed) {
				o.lose(n)
			}
		}
		select {
		case <-ticker.C:
		case <-o.ctx.Done():
			return
		}
	}
}

// silent advances the office's clock, and returns the nodes that have been silent for too long.
func (o *office) silent(nodes []membership.Node, elapsed time.Duration) (all []membership.Node) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.clock += elapsed
	o.nodes = nodes
	for id, h := range o.heard { // forget ended nodes, unless they are about to register
		if !slices.ContainsFunc(nodes, func(n membership.Node) bool { return n.ID == id }) && o.clock-h.clock > silenceMax {
			delete(o.heard, id)
		}
	}
	for _, n := range nodes {
		h, known := o.heard[n.ID]
		if !known { // it has just registered, or this office has just begun
			o.heard[n.ID] = heard{clock: o.clock}
		} else if o.clock-h.clock > silenceMax {
			all = append(all, n)
		}
	}
	return all
}

func (o *office) lose(n membership.Node) {
	if err := o.p.Engine.Do(o.ctx, &membership.LoseNode{Node: n.ID}); err != nil {
		o.p.Log.Debug("a node that is silent could not be given up: that is tried again", "node", n.Name, "error", err)
		return
	}
	o.p.Log.Warn("a node has been silent for too long: its connections count as lost", "node", n.Name, "incarnation", n.ID.String())
}
