// Package secretrotation rotates the secret of a cell while the service runs. No node ever refuses what another has signed.
//
// A rotation has two steps. First, a node makes the new generation, stores it in its data directory, and records its existence in the journal. Each node gets it from the others over
// their own connections, stores it, accepts its signatures, and records that. Second, once all present nodes have it, the leader activates it: from then on it signs, and the previous
// generation has a date of last use. The state has every step, so a new leader or a returning node continues where the others are.
//
// The state contains no secrets: package identity keeps them in a file of each data directory. An access key is derived from the generation that signed when the key was
// made, for as long as the key works. docs/decisions/0109-generations-of-the-secret.md.
package secretrotation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
)

const (
	// lookEvery is the interval for reading the state again, in case a step failed: a node was unreachable, or the disk was full.
	lookEvery = time.Second
	// notedEvery is the interval at which a node records the uses of earlier generations that it has seen.
	notedEvery = 30 * time.Second
	// activateWait is how long Rotate waits until the new generation signs. The rotation continues after that.
	activateWait = 15 * time.Second
	fetchWait    = 3 * time.Second
	catchEvery   = 50 * time.Millisecond

	// single is the name of a single machine's node in the state.
	single = "service"
)

// Config is what a Rotator needs.
type Config struct {
	Engine  *engine.Engine
	Secret  identity.CellSecret // Kept
	Changed func()              // puts changes of the secret into force at once
	Log     *slog.Logger

	// At a node of a cluster:

	Node    string      // its id; empty: a single machine
	Current func() bool // whether the node has applied, at some moment since its start, everything that had been acknowledged by then
	// Fetch gets a generation from another node.
	Fetch func(ctx context.Context, number uint32, check string) (identity.CellSecret, error)
}

// Rotator keeps the secret of a running service equal to the state, and changes it. Its methods may be called concurrently.
type Rotator struct {
	config   Config
	secrets  *identity.Generations
	unfollow func()
	stop     context.CancelFunc
	work     sync.WaitGroup
	wake     chan struct{} // wakes the goroutine that follows the state
	office   chan struct{} // wakes the leader's goroutine
	complete atomic.Bool
	rotating sync.Mutex // held while a generation is made here

	resting context.CancelFunc // ends the leader's goroutine
	leading sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a look at the state finds a change
	seen    string        // the result of the last look
	failed  bool          // the file could not be written
	lacking bool          // a generation could not be fetched
}

// Open follows the state.
func Open(ctx context.Context, c Config) (*Rotator, error) {
	r := &Rotator{config: c, secrets: c.Secret.Generations(), wake: make(chan struct{}, 1), office: make(chan struct{}, 1), changed: make(chan struct{})}
	r.secrets.UseClock(c.Engine.Now)
	r.unfollow = c.Engine.Follow(kernel.Kinds(new(access.SecretPrepared), new(access.SecretHeld), new(access.SecretActivated), new(access.SecretEnded), new(access.SecretForgotten),
		new(access.AccessKeyCreated), new(access.AccessKeyRevoked), new(access.AccessKeyExpired), new(access.LossAccepted)), func(engine.Committed) { r.wakeUp() })
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.look(ctx); err != nil {
		r.unfollow()
		r.stop()
		return nil, err
	}
	if c.Node == "" {
		if err := r.secrets.Prune(); err != nil {
			c.Log.Error("a generation of the secret that was never used stays in the data directory", "error", err)
		}
	}
	r.work.Go(func() { r.follow(ctx) })
	r.work.Go(func() { r.noteUses(ctx) })
	return r, nil
}

// Close stops following the state. The secret stays as it is.
func (r *Rotator) Close() {
	r.unfollow()
	r.stop()
	r.work.Wait()
}

func (r *Rotator) wakeUp() {
	for _, c := range []chan struct{}{r.wake, r.office} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Complete reports whether this node has had all accepted generations at some moment since its start. Until then its doors must stay closed: they would refuse
// signatures of other nodes.
func (r *Rotator) Complete() bool { return r.complete.Load() }

// node returns the name of this node in the state.
func (r *Rotator) node() string {
	if r.config.Node == "" {
		return single
	}
	return r.config.Node
}

// follow keeps the secret equal to the state until ctx ends.
func (r *Rotator) follow(ctx context.Context) {
	for {
		every := lookEvery
		if !r.complete.Load() {
			every = catchEvery
		}
		select {
		case <-r.wake:
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.config.Log.Debug("the generations of the secret cannot be read from the state", "error", err)
		}
	}
}

// look reads the state and performs this node's next steps.
func (r *Rotator) look(ctx context.Context) error {
	current := r.config.Current == nil || r.config.Current() // before the state is read
	all, err := r.standings(ctx)
	if err != nil {
		return err
	}
	missing, err := r.secrets.Follow(all)
	for _, g := range missing {
		if r.fetch(ctx, &g) {
			missing, err = r.secrets.Follow(all)
		}
	}
	r.complain(err, missing)
	if seen := fmt.Sprint(all, missing); seen != r.seen { // look is called by one goroutine at a time
		r.seen = seen
		r.config.Changed()
		r.mu.Lock()
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
	}
	if current && !r.secrets.Lacks() {
		r.complete.Store(true)
	}
	for i := range all {
		r.hold(ctx, &all[i])
	}
	return nil
}

func (r *Rotator) standings(ctx context.Context) (all []access.SecretStanding, err error) {
	err = r.config.Engine.ReadHere(ctx, func(v *cell.View) error { all = v.SecretStandings(); return nil })
	return all, err
}

// fetch gets a generation from another node, and stores it.
func (r *Rotator) fetch(ctx context.Context, g *access.SecretStanding) bool {
	if r.config.Fetch == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	secret, err := r.config.Fetch(ctx, g.Number, g.Check)
	if err == nil {
		err = r.secrets.Add(g.Number, secret)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.config.Log.Debug("a generation of the secret could not be copied from another node", "generation", g.Number, "error", err)
		}
		return false
	}
	r.config.Log.Info("a generation of the secret was copied from another node", "generation", g.Number)
	return true
}

// complain logs a problem that keeps this node from following the state, once per problem.
func (r *Rotator) complain(err error, missing []access.SecretStanding) {
	if err != nil && !r.failed {
		r.config.Log.Error("the file with the secret cannot be written: the state decides what is accepted, and the service tries to write the file every second", "error", err)
	}
	if len(missing) > 0 && !r.lacking && r.config.Fetch != nil {
		r.config.Log.Warn("no other node has provided a generation of the secret yet: this node asks again every second", "generation", missing[0].Number)
	}
	r.failed, r.lacking = err != nil, len(missing) > 0
}

// hold records that this node has a generation, if the rotation waits for that.
func (r *Rotator) hold(ctx context.Context, g *access.SecretStanding) {
	if !g.Pending() || slices.Contains(g.Holders, r.node()) {
		return
	}
	if secret, ok := r.config.Secret.At(g.Number); !ok || secret.Check() != g.Check {
		return
	}
	if err := r.config.Engine.Do(ctx, &access.HoldSecret{Number: g.Number, Check: g.Check, Node: r.node()}); err != nil && ctx.Err() == nil {
		r.config.Log.Debug("the others do not know yet that this node has a generation of the secret", "generation", g.Number, "error", err)
	}
}

// noteUses records the last uses of earlier generations until ctx ends.
func (r *Rotator) noteUses(ctx context.Context) {
	every := time.NewTicker(notedEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		all, err := r.standings(ctx)
		if err != nil {
			continue
		}
		uses := slices.DeleteFunc(r.secrets.Uses(), func(x access.SecretUse) bool {
			return !slices.ContainsFunc(all, func(g access.SecretStanding) bool {
				return g.Number == x.Number && g.Until != 0 && x.At.Sub(g.LastUse.At) >= access.UsedEvery
			})
		})
		if len(uses) == 0 {
			continue
		}
		if err := r.config.Engine.Do(ctx, &access.NoteSecretUses{Uses: uses}); err != nil && ctx.Err() == nil {
			r.config.Log.Debug("uses of earlier generations of the secret are not recorded yet", "error", err)
		}
	}
}

// Lead implements office.Part: the leader activates a generation once all nodes have it, and ends generations at their date of last use.
func (r *Rotator) Lead() {
	ctx, cancel := context.WithCancel(context.Background())
	r.resting = cancel
	r.leading.Go(func() {
		for {
			r.decide(ctx)
			select {
			case <-r.office:
			case <-time.After(lookEvery):
			case <-ctx.Done():
				return
			}
		}
	})
}

// Rest implements office.Part.
func (r *Rotator) Rest() {
	if r.resting != nil {
		r.resting()
		r.leading.Wait()
	}
}

func (r *Rotator) decide(ctx context.Context) {
	var all []access.SecretStanding
	var nodes []string
	err := r.config.Engine.ReadHere(ctx, func(v *cell.View) error {
		all, nodes = v.SecretStandings(), r.nodes(v)
		return nil
	})
	if err != nil {
		return
	}
	do := func(cmd kernel.Command, what string, g *access.SecretStanding) {
		if err := r.config.Engine.Do(ctx, cmd); err != nil {
			if ctx.Err() == nil {
				r.config.Log.Debug("a step of the rotation of the secret failed and will be tried again", "step", what, "generation", g.Number, "error", err)
			}
			return
		}
		r.config.Log.Info("a step of the rotation of the secret is done", "step", what, "generation", g.Number)
	}
	now := domain.TimeOf(r.config.Engine.Now())
	for i := range all {
		switch g := &all[i]; {
		case g.Pending() && len(waitsFor(g, nodes)) == 0:
			do(&access.ActivateSecret{Number: g.Number, Nodes: nodes}, "it signs from now on", g)
		case g.Pending() && r.config.Node == "" && r.lost(g):
			do(&access.EndSecret{Number: g.Number, By: access.Actor{Principal: "muster", Door: "process"}}, "given up, because no data directory has it", g)
		case g.Ended == 0 && !g.Accepted(now):
			do(&access.EndOldSecrets{}, "its date of last use has come", g)
		}
	}
}

// lost reports whether a single machine lacks a generation that never signed: it was restored from the backup of a node that did not have the generation yet.
func (r *Rotator) lost(g *access.SecretStanding) bool {
	secret, ok := r.config.Secret.At(g.Number)
	return !ok || secret.Check() != g.Check
}

// nodes returns the nodes that must have a generation before it signs: all that the cluster considers present. An absent node gets it before its doors open.
func (r *Rotator) nodes(v *cell.View) []string {
	all := []string{r.node()}
	if r.config.Node == "" {
		return all
	}
	for _, n := range v.Nodes() {
		if !slices.Contains(all, n.Name) {
			all = append(all, n.Name)
		}
	}
	return all
}

func waitsFor(g *access.SecretStanding, nodes []string) (left []string) {
	for _, n := range nodes {
		if !slices.Contains(g.Holders, n) {
			left = append(left, n)
		}
	}
	return left
}
