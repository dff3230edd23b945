package signin

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/rate"
)

// world is a Watch on a clock that tests move.
type world struct {
	*Watch
	door *Door
	at   time.Time
	log  logtest.Log
}

func newWorld() *world {
	x := &world{at: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	x.Watch = New(Config{Now: func() time.Time { return x.at }, Log: slog.New(slog.NewTextHandler(&x.log, nil))})
	x.door = x.Door("test")
	return x
}

func (x *world) pass(d time.Duration) { x.at = x.at.Add(d) }

const (
	home     = "192.0.2.1"
	stranger = "198.51.100.7"
)

// oneKey finds one key.
type oneKey struct{ identity.AccessKey }

func (k oneKey) Find(id string) (identity.AccessKey, bool) { return k.AccessKey, id == k.ID }

func (k oneKey) With(id, token, _ string) (identity.AccessKey, error) {
	if id != k.ID || token != "" {
		return identity.AccessKey{}, identity.ErrUnknown
	}
	return k.AccessKey, nil
}

var owned = oneKey{identity.AccessKey{ID: "MUSTAAAAAAAAAAAAAAAA", Secret: "right", Role: identity.Backend}}

func (x *world) try(from, secret string) error {
	_, err := x.door.Proven(owned, from, owned.ID, secret)
	return err
}

func isSlowed(err error) bool { _, ok := errors.AsType[*Slowed](err); return ok }

// untilSlowed tries a wrong secret until attempts are slowed, and returns how many were verified.
func (x *world) untilSlowed(from string) (answered int) {
	for !isSlowed(x.try(from, "wrong")) {
		if answered++; answered > 10*addressBurst {
			return answered
		}
	}
	return answered
}

func TestAPairHasABurstAndThenARate(t *testing.T) {
	x := newWorld()
	if n := x.untilSlowed(stranger); n != pairBurst {
		t.Errorf("%d failures were answered at once, want %d", n, pairBurst)
	}
	slow, ok := errors.AsType[*Slowed](x.try(stranger, "wrong"))
	if !ok || slow.Wait > pairPeriod || slow.Seconds() != int(pairPeriod/time.Second) {
		t.Errorf("after the burst: %v, want a wait of %s", slow, pairPeriod)
	}
	x.pass(pairPeriod)
	if n := x.untilSlowed(stranger); n != 1 {
		t.Errorf("%d failures were answered after one period, want 1", n)
	}
	x.pass(pairBurst * pairPeriod)
	if n := x.untilSlowed(stranger); n != pairBurst {
		t.Errorf("%d failures were answered after a rest, want %d", n, pairBurst)
	}
}

// A failure with an unknown key counts only against the address, and all doors share the count.
func TestAnAddressHasABudgetForAllCredentials(t *testing.T) {
	x := newWorld()
	other := x.Door("other")
	for i := range addressBurst {
		door, f := x.door, Failure{From: stranger, Reason: UnknownKey, KeyID: fmt.Sprint(i)}
		if i%2 == 0 {
			door, f = other, Failure{From: stranger, Reason: WrongToken}
		}
		if slow := door.Fail(f); slow != nil {
			t.Fatalf("failure %d: %v", i, slow)
		}
	}
	if x.door.Fail(Failure{From: stranger, Reason: UnknownKey}) == nil {
		t.Error("the address has no bound")
	}
	if slow := x.door.Fail(Failure{From: home, Reason: UnknownKey}); slow != nil {
		t.Errorf("another address: %v", slow)
	}
	if x.pairs.used.Load() {
		t.Error("unknown keys took budgets of pairs")
	}
	x.pass(addressPeriod)
	if slow := x.door.Fail(Failure{From: stranger, Reason: WrongToken}); slow != nil {
		t.Errorf("after a period: %v", slow)
	}
}

func TestAPlayersFailureCountsATenth(t *testing.T) {
	x := newWorld()
	n := 0
	for x.door.Fail(Failure{From: home, Reason: WrongToken, Player: true}) == nil {
		n++
	}
	if n != failureCosts*addressBurst {
		t.Errorf("%d failures of players, want %d", n, failureCosts*addressBurst)
	}
}

func TestHarmlessFailuresSlowNoClient(t *testing.T) {
	x := newWorld()
	for _, r := range []Reason{Missing, Malformed, Clock, Expired} {
		for range 10 * addressBurst {
			if slow := x.door.Fail(Failure{From: home, Reason: r}); slow != nil {
				t.Fatalf("%s: %v", r, slow)
			}
		}
		if n := x.door.failed[r].n.Load(); n != 10*addressBurst {
			t.Errorf("%s: %d counted", r, n)
		}
	}
}

// The owner is never slowed by a stranger elsewhere, whether or not it has signed in before.
func TestTheOwnerElsewhereIsNotLockedOut(t *testing.T) {
	x := newWorld()
	for range 10_000 {
		_ = x.try(stranger, "wrong")
		if err := x.try(home, "right"); err != nil {
			t.Fatal(err)
		}
	}
}

// At the same address, an owner who has signed in there is always verified.
func TestTheOwnerAtTheSameAddressIsNotLockedOut(t *testing.T) {
	x := newWorld()
	if err := x.try(home, "right"); err != nil {
		t.Fatal(err)
	}
	slowed := 0
	for range 10_000 {
		if isSlowed(x.try(home, "wrong")) {
			slowed++
		}
		if err := x.try(home, "right"); err != nil {
			t.Fatal(err)
		}
	}
	if slowed != 10_000-pairBurst {
		t.Errorf("%d of the stranger's attempts were slowed, want %d", slowed, 10_000-pairBurst)
	}
	x.pass(trustedFor + 2*trustUnit)
	x.untilSlowed(home)
	if x.trusted.has(x.pair(home, owned.ID), x.now()) {
		t.Errorf("still trusted after %s", trustedFor)
	}
}

// A first sign-in is verified at once even if others at the same address fail with other credentials.
func TestANoisyAddressDoesNotStopTheFirstSignIn(t *testing.T) {
	x := newWorld()
	for x.door.Fail(Failure{From: home, Reason: WrongToken}) == nil {
	}
	if err := x.try(home, "right"); err != nil {
		t.Error(err)
	}
}

// A first sign-in from an address where a stranger continuously fails with the same key succeeds after some retries, and from then
// on at once. Only a part of the stranger's guesses is verified.
func TestTheFirstSignInBesideAnAttackerGetsThrough(t *testing.T) {
	x := newWorld()
	worst := 0
	for n := range 50 {
		from := fmt.Sprint("203.0.113.", n)
		x.untilSlowed(from)
		tries := 1
		for x.try(from, "right") != nil {
			for range 100 {
				_ = x.try(from, "wrong")
			}
			tries++
		}
		worst = max(worst, tries)
		for range 100 {
			if _ = x.try(from, "wrong"); x.try(from, "right") != nil {
				t.Fatal("slowed after the first sign-in")
			}
		}
	}
	if most := 40 * verifiedPart; worst > most { // by chance once in 10^15 runs
		t.Errorf("the worst of 50 owners needed %d tries", worst)
	}
}

func TestDevelopmentModeCountsOnly(t *testing.T) {
	x := newWorld()
	x.config.CountOnly = true
	for range 10 * addressBurst {
		if err := x.try(home, "wrong"); err != ErrWrong {
			t.Fatal(err)
		}
	}
	if n := x.door.failed[WrongSecret].n.Load(); n != 10*addressBurst {
		t.Errorf("%d counted", n)
	}
}

func TestANilDoorSlowsNobody(t *testing.T) {
	door := (*Watch)(nil).Door("none")
	if slow := door.Fail(Failure{Reason: WrongSecret}); slow != nil {
		t.Error(slow)
	}
	if _, err := door.Proven(owned, home, owned.ID, "right"); err != nil {
		t.Error(err)
	}
}

// A million names take no more memory than the tables have, and the attack of one stranger does not displace the trust in others.
func TestTheTablesAreBounded(t *testing.T) {
	x := newWorld()
	if size := 2*unsafe.Sizeof(*x.pairs) + 2*unsafe.Sizeof(x.trusted); size > 3<<19+1<<10 {
		t.Errorf("the tables take %d bytes", size)
	}
	if err := x.try(home, "right"); err != nil {
		t.Fatal(err)
	}
	public := owned.AccessKey
	public.Role = identity.Client
	for i := range 200_000 {
		from := fmt.Sprint("2001:db8:", i, "::/64")
		x.door.Fail(Failure{From: from, Reason: WrongSecret, KeyID: owned.ID})
		x.door.Trust(from, public)
	}
	if x.pairs.evictions() == 0 || x.addresses.evictions() == 0 {
		t.Error("nothing made room")
	}
	if !x.trusted.has(x.pair(home, owned.ID), x.now()) {
		t.Error("sign-ins with a client key ended the trust of another key")
	}
	held := 0
	for i := range x.trustedClients.table {
		for j := range x.trustedClients.table[i] {
			if x.trustedClients.table[i][j].Load() != 0 {
				held++
			}
		}
	}
	if held != sets*ways {
		t.Errorf("%d pairs are trusted, want a full table of %d", held, sets*ways)
	}
}

// In a full set the budget that recovers first is replaced, and likewise the name whose last sign-in is the longest ago.
func TestTheLeastUsefulEntryMakesRoom(t *testing.T) {
	b := newBudgets("test", rate.Every(time.Second, 10))
	for i := range uint64(ways) {
		for range i + 1 {
			b.charge(i<<1, 0, 1)
		}
	}
	b.charge(ways<<1, 0, 1)
	if failed, _ := b.look(0, 0); failed {
		t.Error("the budget that would have recovered first is still there")
	}
	for i := uint64(1); i <= ways; i++ {
		if failed, _ := b.look(i<<1, 0); !failed {
			t.Errorf("budget %d is gone", i)
		}
	}
	var trusted trusts
	name := func(i uint64) uint64 { return i << 20 } // all of one set
	for i := range uint64(ways) {
		trusted.add(name(i), int64(i)*int64(trustUnit))
	}
	now := int64(ways) * int64(trustUnit)
	trusted.add(name(0), now) // signs in again
	trusted.add(name(ways), now)
	if trusted.has(name(1), now) || !trusted.has(name(0), now) || !trusted.has(name(ways), now) {
		t.Error("another one than the one that signed in the longest ago made room")
	}
}

func TestTheLogIsBoundedAndHasNoSecret(t *testing.T) {
	x := newWorld()
	for range 1000 {
		_ = x.try(stranger, "a-secret")
		x.door.Fail(Failure{From: stranger, Reason: UnknownKey, KeyID: "a-secret-in-the-wrong-place"})
	}
	text := x.log.String()
	if n := strings.Count(text, "\n"); n != 2*linesMax {
		t.Errorf("%d lines, want %d:\n%s", n, 2*linesMax, text)
	}
	if strings.Contains(text, "a-secret") || !strings.Contains(text, "key="+owned.ID) || !strings.Contains(text, "address="+stranger) {
		t.Error(text)
	}
	x.pass(linesWithin)
	x.door.Fail(Failure{From: stranger, Reason: UnknownKey})
	if text := x.log.String(); !strings.Contains(text, fmt.Sprint("unlogged=", 1000-linesMax)) {
		t.Error(text)
	}
}

func TestKeyIDsInTheLog(t *testing.T) {
	for id, want := range map[string]string{
		owned.ID: owned.ID, strings.Repeat("A", keyIDMax): strings.Repeat("A", keyIDMax),
		strings.Repeat("A", keyIDMax+1): "(not an id)", "mustlower": "(not an id)", "A B": "(not an id)", "A\nB": "(not an id)",
	} {
		if got := loggedKey(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func BenchmarkSuccess(b *testing.B) {
	for name, failures := range map[string]int{"calm": 0, "attacked": 1000} {
		b.Run(name, func(b *testing.B) {
			w := New(Config{})
			d := w.Door("test")
			for range failures {
				d.Fail(Failure{From: stranger, Reason: WrongSecret, KeyID: owned.ID})
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if d.Refuse(home, owned.AccessKey) != nil {
						b.Error("slowed")
					}
					d.Trust(home, owned.AccessKey)
				}
			})
		})
	}
}

func BenchmarkFailure(b *testing.B) {
	d := New(Config{}).Door("test")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if d.Refuse(stranger, owned.AccessKey) == nil {
				d.Fail(Failure{From: stranger, Reason: WrongSecret, KeyID: owned.ID})
			}
		}
	})
}
