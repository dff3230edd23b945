package playerapi

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/rate"
)

// class is a group of calls that share a bucket: docs/spec/fair-play.md#rate-limits. What lets a player get out has a bucket of its own.
type class uint8

const (
	classOther class = iota
	classLogin
	classLoginAddress
	classAttach
	classGetFlow
	classParty
	classInvite
	classInvitePair
	classCode
	classCodeAddress // failures only
	classEnter
	classLeaveMatchmaking
	classAcceptMatch
	classDetails
	classLeaveParty
	classLeaveGame
	classDecline
	classLogout
	classFrames // what a client sends on its stream
	classPartner
	classes
)

// classNames are the kinds of calls as operators and headers name them. Logins of one address have a setting of their own.
var classNames = [classes]string{
	classOther: "other", classLogin: "login", classLoginAddress: "login-address", classAttach: "attach", classGetFlow: "get-flow", classParty: "party",
	classInvite: "invite", classInvitePair: "invite-pair", classCode: "code", classCodeAddress: "code-address", classEnter: "enter",
	classLeaveMatchmaking: "leave-matchmaking", classAcceptMatch: "accept-match", classDetails: "details", classLeaveParty: "leave-party",
	classLeaveGame: "leave-game", classDecline: "decline", classLogout: "logout", classFrames: "frames", classPartner: "partner",
}

// ratesOf are the rates of the classes, of which each has one but that of logins of one address.
func ratesOf(kinds []playerrates.Kind) (rates [classes]rate.Limit) {
	for _, k := range kinds {
		if at := slices.Index(classNames[:], k.Name); at >= 0 {
			rates[at] = k.Rate
		}
	}
	return rates
}

// buckets limits rates. A bucket is one instant: when it is full again; so one that is full needs no memory.
type buckets struct {
	now   func() time.Time
	rates [classes]rate.Limit

	mu     sync.Mutex
	fullAt map[bucketKey]int64 // Unix nanoseconds
	swept  int64
}

type bucketKey struct {
	class class
	who   string
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, rates: ratesOf(playerrates.Defaults()), fullAt: map[bucketKey]int64{}}
}

// sweepEvery bounds memory: buckets that are full are forgotten.
const sweepEvery = 10 * time.Second

// budget is how a bucket stands.
type budget struct {
	ok   bool          // the call is let through
	wait time.Duration // if not: until one is
	left int           // calls that would be let through at once after it
	full time.Duration // until the bucket is full again
}

// take lets one call through, or says how long to wait.
func (b *buckets) take(c class, who string) (wait time.Duration, ok bool) {
	x := b.look(c, who, true)
	return x.wait, x.ok
}

// open reports whether a call would be let through.
func (b *buckets) open(c class, who string) (wait time.Duration, ok bool) {
	x := b.look(c, who, false)
	return x.wait, x.ok
}

// takeFor is take for a request, whose answer says what is left.
func (b *buckets) takeFor(c class, who string, answer http.Header) (wait time.Duration, ok bool) {
	x := b.look(c, who, true)
	b.tell(c, &x, answer)
	return x.wait, x.ok
}

// Headers of an answer that say what its caller may still call. Source: draft-ietf-httpapi-ratelimit-headers-10.
const (
	rateLimitHeader  = "Ratelimit"
	ratePolicyHeader = "Ratelimit-Policy"
)

// tell says in the headers of an answer what a bucket takes: so many calls (q) in as many seconds as it takes to fill (w), and how
// many are left (r) until it is full again (t, in seconds).
func (b *buckets) tell(c class, x *budget, answer http.Header) {
	limit := b.rates[c]
	if limit.Every <= 0 {
		return
	}
	name := `"` + classNames[c] + `"`
	answer.Add(ratePolicyHeader, name+";q="+strconv.Itoa(limit.Burst)+";w="+seconds(limit.Every*time.Duration(limit.Burst)))
	answer.Add(rateLimitHeader, name+";r="+strconv.Itoa(x.left)+";t="+seconds(x.full))
}

// seconds are whole ones, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// count is the number of buckets that are remembered.
func (b *buckets) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fullAt)
}

func (b *buckets) look(c class, who string, take bool) budget {
	limit := b.rates[c]
	if limit.Every <= 0 {
		return budget{ok: true}
	}
	now := b.now().UnixNano()
	b.mu.Lock()
	defer b.mu.Unlock()
	if now-b.swept > int64(sweepEvery) {
		b.swept = now
		for key, at := range b.fullAt {
			if at <= now {
				delete(b.fullAt, key)
			}
		}
	}
	key := bucketKey{c, who}
	full := max(b.fullAt[key], now)
	next, early := limit.Next(full, now, 1)
	if early > 0 {
		return budget{wait: early, full: time.Duration(full - now)}
	}
	if take {
		b.fullAt[key], full = next, next
	}
	return budget{ok: true, left: int(-early / limit.Every), full: time.Duration(full - now)}
}
