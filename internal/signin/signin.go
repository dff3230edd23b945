// Package signin counts failed sign-ins at every door, logs them within limits, and slows clients that keep failing.
//
// Slowing means to answer with the door's throttling error; no connection is held open. It must not let a stranger lock out
// the owner of an access key, so there is no limit on a key alone:
//
//   - An address that has signed in with a key is trusted for that key. Its credentials are always verified.
//   - For any other address, attempts with a key count against the pair of key and address. A stranger elsewhere uses up a
//     budget that the owner does not share.
//   - Where both share an address on which the owner has not signed in yet, a part of the attempts beyond the budget is
//     verified all the same, so the owner's retries get through.
//   - Credentials other than access keys are always verified; only the answer to a failure is slowed.
//
// All memory is allocated at the start. Names are kept as keyed 64-bit hashes in sets of eight, of which the least useful
// one makes room, so two names never share a budget, and no client can choose whose entry is replaced.
package signin

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/rate"
)

// Budgets of failed sign-ins. A burst is the number that may fail at once; after that, one more may fail in each period.
const (
	pairBurst  = 10 // failures of one access key at one address
	pairPeriod = 6 * time.Second

	addressBurst  = 100 // failures of all credentials at one address: an IPv4 address, or a /64 of IPv6
	addressPeriod = time.Second

	// failureCosts is the cost of a failure, and playerFailureCosts that of a player's failure: thousands of players may
	// share an address.
	failureCosts       = 10
	playerFailureCosts = 1

	// verifiedPart: one in so many attempts beyond the budget is verified. It bounds
	// how often the owner of a key has to try from an address where a stranger keeps failing with the same key.
	verifiedPart = 16
)

// Config is what a Watch needs.
type Config struct {
	// CountOnly turns slowing off: for development mode, where any credentials are accepted.
	CountOnly bool
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger     // nil: none
	// Failed is told of each failure but those of players: the door, the address, and the id of the access key if that exists. nil: none.
	Failed func(door, address, key, reason string)
}

// Watch counts the sign-ins at all doors.
type Watch struct {
	config  Config
	started time.Time
	seed    maphash.Seed
	doors   []*Door

	pairs     *budgets // access key and address
	addresses *budgets

	// Pairs that have signed in. A key of the role client is in every copy of a game, so pairs with one are kept apart: they
	// cannot push out those of other keys.
	trusted, trustedClients trusts
}

// New makes a Watch.
func New(c Config) *Watch {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &Watch{
		config: c, started: c.Now(), seed: maphash.MakeSeed(),
		pairs:     newBudgets("pairs", rate.Every(pairPeriod/failureCosts, pairBurst*failureCosts)),
		addresses: newBudgets("addresses", rate.Every(addressPeriod/failureCosts, addressBurst*failureCosts)),
	}
}

// Door makes the Door of a name, which is its label in metrics. All doors are made before the first is used. With a nil Watch
// it returns nil, which counts nothing and slows no caller.
func (w *Watch) Door(name string) *Door {
	if w == nil {
		return nil
	}
	d := &Door{watch: w, name: name}
	for r := range d.failed {
		d.failed[r].told = rate.Lines{Most: linesMax, Period: linesWithin}
	}
	w.doors = append(w.doors, d)
	return d
}

// now is in nanoseconds since the start.
func (w *Watch) now() int64 { return w.config.Now().Sub(w.started).Nanoseconds() }

func (w *Watch) address(from string) uint64 { return maphash.String(w.seed, from) }

func (w *Watch) pair(from, keyID string) uint64 {
	return bits.RotateLeft64(maphash.String(w.seed, from), 32) ^ maphash.String(w.seed, keyID)
}

func (w *Watch) trust(key identity.AccessKey) *trusts {
	if key.Role == identity.Client {
		return &w.trustedClients
	}
	return &w.trusted
}

// Slowed is the error of an attempt that is refused because of earlier failures.
type Slowed struct {
	Wait time.Duration // until a failure counts as one within the budget again
}

func (s *Slowed) Error() string {
	return fmt.Sprintf("too many failed sign-ins from this address; check the credentials, and try again in %d s", s.Seconds())
}

// Seconds is the time to wait, in whole seconds, for a Retry-After header.
func (s *Slowed) Seconds() int { return int((s.Wait + time.Second - 1) / time.Second) }

func slowedFor(wait time.Duration) *Slowed {
	if wait <= 0 {
		return nil
	}
	return &Slowed{wait}
}

// Door counts the sign-ins at one door.
type Door struct {
	watch  *Watch
	name   string
	failed [reasons]reasonCount
	slowed counter
}

// Refuse must be called before the secret of an access key is checked. It returns nil when the secret is to be checked. While no access key
// has failed anywhere it costs one atomic load.
func (d *Door) Refuse(from string, key identity.AccessKey) *Slowed {
	if d == nil || d.watch.config.CountOnly || !d.watch.pairs.used.Load() {
		return nil
	}
	w := d.watch
	pair, now := w.pair(from, key.ID), w.now()
	if w.trust(key).has(pair, now) {
		return nil
	}
	failedBefore, early := w.pairs.look(pair, now)
	if !failedBefore {
		return nil // only the address is over its budget, which may be the fault of other clients
	}
	_, earlyAddress := w.addresses.look(w.address(from), now)
	slow := slowedFor(max(early, earlyAddress))
	if slow == nil || rand.Uint32N(verifiedPart) == 0 {
		return nil
	}
	d.slowed.Add(1)
	return slow
}

// Trust must be called after each successful sign-in with an access key.
func (d *Door) Trust(from string, key identity.AccessKey) {
	if d == nil || d.watch.config.CountOnly {
		return
	}
	w := d.watch
	w.trust(key).add(w.pair(from, key.ID), w.now())
}

// Failure is a sign-in that failed.
type Failure struct {
	From   string // address of the client
	Reason Reason
	KeyID  string // as the client named it
	Player bool   // a player's, not a program's of the studio
	Cause  error  // for the log; may be nil
}

// Fail counts and logs a failure. It returns nil if the client may learn why it failed, and otherwise the error to answer
// with instead.
func (d *Door) Fail(f Failure) *Slowed {
	if d == nil {
		return nil
	}
	w := d.watch
	now := w.now()
	d.count(&f, w.started.Add(time.Duration(now)))
	if w.config.Failed != nil && !f.Player {
		key := ""
		if f.Reason == WrongSecret || f.Reason == Elsewhere {
			key = f.KeyID
		}
		w.config.Failed(d.name, f.From, key, f.Reason.String())
	}
	if w.config.CountOnly || !f.Reason.charged() {
		return nil
	}
	costs := failureCosts
	if f.Player {
		costs = playerFailureCosts
	}
	early := w.addresses.charge(w.address(f.From), now, costs)
	if f.Reason == WrongSecret {
		early = max(early, w.pairs.charge(w.pair(f.From, f.KeyID), now, costs))
	}
	slow := slowedFor(early)
	if slow != nil {
		d.slowed.Add(1)
	}
	return slow
}

// ErrWrong is the error of an access key that does not exist or has another secret.
var ErrWrong = fmt.Errorf("there is no access key with this id and secret")

// Proven finds the access key that a client sent together with its secret, which for temporary credentials is followed by a dot and the session token. It
// takes the same time when there is no such key. The error is ErrWrong, identity.ErrExpired or a *Slowed.
func (d *Door) Proven(keys identity.Finder, from, id, secret string) (identity.AccessKey, error) {
	sent, token, _ := strings.Cut(secret, ".")
	key, err := keys.With(id, token, from)
	if err == nil {
		if slow := d.Refuse(from, key); slow != nil {
			return identity.AccessKey{}, slow
		}
	}
	if identity.Equal(sent, key.Secret) && err == nil {
		d.Trust(from, key)
		return key, nil
	}
	f := Failure{From: from, Reason: UnknownKey, KeyID: id}
	answer := ErrWrong
	switch {
	case err == nil:
		f.Reason = WrongSecret
	case errors.Is(err, identity.ErrExpired):
		f.Reason, answer = Expired, err
	case errors.Is(err, identity.ErrElsewhere):
		f.Reason = Elsewhere
	case id == "" && secret == "":
		f.Reason = Missing
	}
	if slow := d.Fail(f); slow != nil {
		return identity.AccessKey{}, slow
	}
	return identity.AccessKey{}, answer
}

var (
	failedDesc  = prometheus.NewDesc("muster_failed_signins_total", "Requests whose credentials were missing or wrong.", []string{"door", "reason"}, nil)
	slowedDesc  = prometheus.NewDesc("muster_slowed_signins_total", "Sign-ins answered with a throttling error because others from the same address had failed.", []string{"door"}, nil)
	evictedDesc = prometheus.NewDesc("muster_signin_budgets_evicted_total", "Budgets of failed sign-ins in use that made room for others.", []string{"table"}, nil)
)

// Describe implements prometheus.Collector.
func (w *Watch) Describe(to chan<- *prometheus.Desc) {
	to <- failedDesc
	to <- slowedDesc
	to <- evictedDesc
}

// Collect implements prometheus.Collector.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	counted := func(desc *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	for _, d := range w.doors {
		for r := range reasons {
			counted(failedDesc, d.failed[r].n.Load(), d.name, r.String())
		}
		counted(slowedDesc, d.slowed.Load(), d.name)
	}
	for _, b := range []*budgets{w.pairs, w.addresses} {
		counted(evictedDesc, b.evictions(), b.name)
	}
}
