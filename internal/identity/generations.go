package identity

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/secretkey"
)

// generationsMax bounds the number of generations of the secret in a data directory: those in use, and those from which access keys are derived.
const generationsMax = 64

// firstGeneration is the number of the generation that an installation begins with.
const firstGeneration = 1

// ConnectionKeyAhead is how long the previous generation still signs connection tokens after a rotation: game servers cache the published keys for ten minutes, and no
// connection token is valid for longer. A token that is made again is therefore identical.
const ConnectionKeyAhead = 15 * time.Minute

// lackPatience is how long a check waits for a generation that the state has and this node lacks. lackWaiters is how many checks may wait at a time.
const (
	lackPatience = 3 * time.Second
	lackWaiters  = 64
)

// Generations are the generations of the secret of a running service. They change while it runs: package secretrotation keeps them equal to the state.
type Generations struct {
	dir string         // data directory; empty: they are kept only in memory, for tests
	key *secretkey.Key // that encrypts the file
	now atomic.Pointer[func() time.Time]
	is  atomic.Pointer[generations]

	mu      sync.Mutex // for one change at a time
	stale   bool       // the file must be written
	changed chan struct{}
	waiting atomic.Int32
}

// generations is a snapshot that never changes.
type generations struct {
	code    [2]byte       // of the cell
	all     []*generation // by number, the latest first
	signing *generation
	tried   []*generation // whose signatures are accepted: first the one that signs, then the others, the latest first
	lacks   bool          // one of those that the state needs is missing here
}

type generation struct {
	number   uint32
	secret   CellSecret
	recorded bool      // the state has it
	signs    time.Time // since when; zero: from the beginning, or not yet
	pending  bool
	until    time.Time // date of last use; zero: none yet
	ended    bool
	used     *atomic.Pointer[access.SecretUse] // since a later one began to sign
}

func newGeneration(number uint32, key [secretSize]byte) *generation {
	return &generation{number: number, secret: CellSecret{key: key, number: number}, used: new(atomic.Pointer[access.SecretUse])}
}

func (g *generation) accepted(now time.Time) bool {
	return !g.ended && (g.until.IsZero() || now.Before(g.until))
}

// plain returns the generations of a secret that has only one.
func (s CellSecret) plain() *generations {
	g := newGeneration(s.Generation(), s.key)
	return &generations{code: codeOf(s), all: []*generation{g}, signing: g, tried: []*generation{g}}
}

func (s CellSecret) generations() *generations {
	if s.ring == nil {
		return s.plain()
	}
	return s.ring.is.Load()
}

// codeOf returns the code of a cell that began with a secret.
func codeOf(s CellSecret) [2]byte { return [2]byte(hmacOf(s.key, []byte("cell-code"))) }

// Kept returns the secret with generations that can change from now on and are stored in a data directory.
func (s CellSecret) Kept(dir string, key *secretkey.Key) CellSecret {
	r := &Generations{dir: dir, key: key, changed: make(chan struct{})}
	r.is.Store(s.generations())
	return CellSecret{key: s.key, number: s.number, ring: r}
}

// Generations returns the generations that can change; nil for a secret that is not Kept.
func (s CellSecret) Generations() *Generations { return s.ring }

// Generation returns the number of the generation that signs.
func (s CellSecret) Generation() uint32 {
	if s.ring != nil {
		return s.ring.is.Load().signing.number
	}
	return max(s.number, firstGeneration)
}

// current returns only the generation that signs, for deriving several values that belong together.
func (s CellSecret) current() CellSecret {
	if s.ring == nil {
		return s
	}
	return s.ring.is.Load().signing.secret
}

// At returns a generation by its number; false: it is not here.
func (s CellSecret) At(number uint32) (CellSecret, bool) {
	if s.ring == nil {
		return s, number == s.Generation()
	}
	if g := s.ring.is.Load().at(number); g != nil {
		return g.secret, true
	}
	return CellSecret{}, false
}

func (x *generations) at(number uint32) *generation {
	for _, g := range x.all {
		if g.number == number {
			return g
		}
	}
	return nil
}

// Accepts reports whether proves succeeds for a generation whose signatures are accepted. It always tries all of them, so that its duration reveals nothing.
// purpose describes in a few words what is proven, for the record of the last use of an earlier generation.
func (s CellSecret) Accepts(purpose string, proves func(CellSecret) bool) bool {
	if s.ring == nil {
		return proves(s)
	}
	return s.ring.accepts(purpose, proves)
}

func (r *Generations) accepts(purpose string, proves func(CellSecret) bool) bool {
	x := r.is.Load()
	if r.try(x, purpose, proves) {
		return true
	}
	return x.lacks && r.awaitChange(x) && r.try(r.is.Load(), purpose, proves)
}

func (r *Generations) try(x *generations, purpose string, proves func(CellSecret) bool) bool {
	now, by := r.clock(), (*generation)(nil)
	for _, g := range x.tried {
		if g.accepted(now) && proves(g.secret) {
			by = g
		}
	}
	if by == nil {
		return false
	}
	x.note(by, now, purpose)
	return true
}

// awaitChange waits up to lackPatience until this node gets a generation that it lacks.
func (r *Generations) awaitChange(x *generations) bool {
	if r.waiting.Add(1) > lackWaiters {
		r.waiting.Add(-1)
		return false
	}
	defer r.waiting.Add(-1)
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	if r.is.Load() != x {
		return true
	}
	select {
	case <-changed:
		return true
	case <-time.After(lackPatience):
		return false
	}
}

func (r *Generations) clock() time.Time {
	if now := r.now.Load(); now != nil {
		return (*now)()
	}
	return time.Now()
}

// note records the use of a generation that no longer signs, to within half a minute.
func (x *generations) note(g *generation, now time.Time, purpose string) {
	if g == x.signing || g.pending {
		return
	}
	at := domain.TimeOf(now)
	if last := g.used.Load(); last == nil || at.Sub(last.At) >= usedEvery {
		g.used.Store(&access.SecretUse{Number: g.number, At: at, Purpose: purpose})
	}
}

// Accepted reports whether the signatures of a generation are accepted, and records its use.
func (s CellSecret) Accepted(number uint32, purpose string) bool {
	if s.ring == nil {
		return number == s.Generation()
	}
	x := s.ring.is.Load()
	if x.signing.number == number { // the usual case
		return true
	}
	g, now := x.at(number), s.ring.clock()
	if g == nil || !g.accepted(now) {
		return false
	}
	x.note(g, now, purpose)
	return true
}

// stands is Accepted without recording a use.
func (s CellSecret) stands(number uint32) bool {
	if s.ring == nil {
		return number == s.Generation()
	}
	g := s.ring.is.Load().at(number)
	return g != nil && g.accepted(s.ring.clock())
}

// AcceptedGenerations returns the generations whose signatures are accepted: first the one that signs, then the others, the latest first.
func (s CellSecret) AcceptedGenerations() (all []CellSecret) {
	if s.ring == nil {
		return []CellSecret{s}
	}
	now := s.ring.clock()
	for _, g := range s.ring.is.Load().tried {
		if g.accepted(now) {
			all = append(all, g.secret)
		}
	}
	return all
}

// signers returns the accepted generations that sign or have signed: first the one that signs, then the others, the latest first.
func (s CellSecret) signers() (all []CellSecret) {
	if s.ring == nil {
		return []CellSecret{s}
	}
	now := s.ring.clock()
	for _, g := range s.ring.is.Load().tried {
		if g.accepted(now) && !g.pending {
			all = append(all, g.secret)
		}
	}
	return all
}

// ForTokenUntil returns the generation that signs a connection token with a given end: the latest one whose ConnectionKeyAhead is over by that end. The same
// token always gets the same generation.
func (s CellSecret) ForTokenUntil(end time.Time) CellSecret {
	if s.ring == nil {
		return s
	}
	x, now := s.ring.is.Load(), s.ring.clock()
	by := x.signing
	for _, g := range x.all {
		if !g.accepted(now) || g.pending {
			continue
		}
		if by = g; !end.Before(g.signs.Add(ConnectionKeyAhead)) {
			break
		}
	}
	return by.secret // the oldest one, if the token ends before
}

// Lacks reports whether this node lacks a generation of the state that signs or whose signatures are accepted.
func (r *Generations) Lacks() bool { return r.is.Load().lacks }

// UseClock sets the time of the cell, by which generations reach their date of last use.
func (r *Generations) UseClock(now func() time.Time) { r.now.Store(&now) }

// Uses returns the last use on this node of each generation that no longer signs, to within half a minute.
func (r *Generations) Uses() (all []access.SecretUse) {
	for _, g := range r.is.Load().all {
		if use := g.used.Load(); use != nil {
			all = append(all, *use)
		}
	}
	return all
}

// Add stores a generation in the data directory. When it returns without an error, the file is durable and the generation's signatures are accepted. It replaces a
// generation with the same number that the state does not have.
func (r *Generations) Add(number uint32, secret CellSecret) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.is.Load()
	next := *was
	g := newGeneration(number, secret.key)
	g.pending = true
	next.all = slices.DeleteFunc(slices.Clone(was.all), func(x *generation) bool { return x.number == number })
	if len(next.all) >= generationsMax {
		return domain.Refuse(domain.LimitExceeded, "the data directory has %d generations of the secret: rotate the access keys that are derived from the oldest ones", len(next.all))
	}
	next.all = append(next.all, g)
	if err := r.write(&next); err != nil {
		return err
	}
	r.publish(&next)
	return nil
}

// Remove removes a generation that the state does not have.
func (r *Generations) Remove(number uint32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.is.Load()
	g := was.at(number)
	if g == nil || g.recorded || g == was.signing {
		return nil
	}
	next := *was
	next.all = slices.DeleteFunc(slices.Clone(was.all), func(x *generation) bool { return x == g })
	r.publish(&next)
	r.stale = true
	return r.writeStale()
}

// Follow makes the generations equal to those of the state, and returns the needed ones that are missing here. It destroys generations that are no longer needed. An error
// means that no generation in force is here, or that the file could not be written. In the second case the new generations are in force, and the next Follow or Flush writes
// the file again.
func (r *Generations) Follow(all []access.SecretStanding) (missing []access.SecretStanding, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, last := r.is.Load(), uint32(0)
	next := generations{code: was.code}
	known := map[uint32]bool{}
	for _, w := range all {
		last = max(last, w.Number)
		g := was.at(w.Number)
		if g != nil && g.secret.Check() != w.Check {
			g = nil // another node used this number first
		}
		switch {
		case !w.Needed:
			continue
		case g == nil:
			missing = append(missing, w)
			next.lacks = next.lacks || w.Activated != 0 && w.Ended == 0
			continue
		}
		now := *g
		now.recorded, now.pending, now.ended, now.signs, now.until = true, w.Pending(), w.Ended != 0, time.Time{}, time.Time{}
		if w.Activated != 0 {
			now.signs = w.Activated.Std()
		}
		if w.Until != 0 {
			now.until = w.Until.Std()
		}
		if w.Signs() {
			next.signing = &now
		}
		known[w.Number] = true
		next.all = append(next.all, &now)
	}
	for _, g := range was.all {
		if !known[g.number] && g.number > last { // Add was just called, or the state is older than the file
			next.all = append(next.all, g)
		}
	}
	if next.signing == nil { // it is missing: until it arrives, an earlier one signs
		for _, g := range next.all {
			if !g.pending && !g.ended && (next.signing == nil || g.number > next.signing.number) {
				next.signing = g
			}
		}
	}
	if next.signing == nil {
		return missing, errors.New("the data directory has none of the generations of the cell's secret that are in force")
	}
	r.stale = r.stale || next.signing.number != was.signing.number || len(next.all) != len(was.all) ||
		slices.ContainsFunc(was.all, func(g *generation) bool { return next.at(g.number) == nil })
	r.publish(&next)
	return missing, r.writeStale()
}

// Prune removes generations that the state does not have. It is for the start of a single machine, whose state is complete: a rotation that has begun is in it.
func (r *Generations) Prune() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.is.Load()
	next.all = slices.DeleteFunc(slices.Clone(next.all), func(g *generation) bool { return !g.recorded && g != next.signing })
	if len(next.all) == len(r.is.Load().all) {
		return nil
	}
	r.publish(&next)
	r.stale = true
	return r.writeStale()
}

// Reset keeps only the generation that signs, and makes it the first one. The operator has accepted the loss of the others, which ends all access keys.
func (r *Generations) Reset() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := CellSecret{key: r.is.Load().signing.secret.key}
	r.publish(s.plain())
	r.stale = true
	return r.writeStale()
}

// arrange puts the generations in order, and collects those whose signatures are accepted.
func (x *generations) arrange() {
	slices.SortFunc(x.all, func(a, b *generation) int { return cmp.Compare(b.number, a.number) })
	x.tried = []*generation{x.signing}
	for _, g := range x.all {
		if g != x.signing && !g.ended {
			x.tried = append(x.tried, g)
		}
	}
}

// publish puts generations into force. The caller holds r.mu.
func (r *Generations) publish(x *generations) {
	x.arrange()
	r.is.Store(x)
	close(r.changed)
	r.changed = make(chan struct{})
}

// The encoding of generations in the file of a data directory and in the text for nodes and backups: the code of the cell, the number of the generation that signs, and each
// generation with its number. See docs/formats/identity.md.
const (
	generationsHead = 2 + 4 + 1
	generationSize  = 4 + secretSize
)

// With returns the current secret together with generations of an earlier moment that it no longer has. A backup whose state is from between the two moments needs both.
func (s CellSecret) With(earlier CellSecret) CellSecret {
	now, was := *s.generations(), earlier.generations()
	for _, g := range was.all {
		if now.at(g.number) == nil {
			now.all = append(slices.Clone(now.all), g)
		}
	}
	return now.secret()
}

// Frozen returns the secret with its current generations, which no longer change.
func (s CellSecret) Frozen() CellSecret { return s.generations().secret() }

// Fits reports whether these are the generations of a state: whether at least one that the state needs is here, or the state has none. missing has the numbers of
// the activated generations that the state needs and that are not here.
func (s CellSecret) Fits(all []access.SecretStanding) (missing []uint32, fits bool) {
	x, fits := s.generations(), len(all) == 0
	for _, w := range all {
		g := x.at(w.Number)
		switch {
		case g != nil && g.secret.Check() == w.Check:
			fits = fits || w.Needed
		case w.Needed && w.Activated != 0:
			missing = append(missing, w.Number)
		}
	}
	return missing, fits
}
