package rates

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

// Class is a group of calls that share a bucket: docs/spec/fair-play.md#rate-limits. Calls by which a player gets out of something, such
// as a party or a search, have a bucket of their own.
type Class uint8

const (
	Other Class = iota
	Login
	LoginAddress
	Attach
	GetFlow
	Party
	Invite
	InvitePair
	Code
	CodeAddress // failures only
	Enter
	LeaveMatchmaking
	AcceptMatch
	Details
	LeaveParty
	LeaveGame
	Decline
	Logout
	Frames // what a client sends on its stream
	Partner
	classes
)

// classNames has the names of the classes in settings and headers. Logins by address have a setting of their own.
var classNames = [classes]string{
	Other: "other", Login: "login", LoginAddress: "login-address", Attach: "attach", GetFlow: "get-flow", Party: "party",
	Invite: "invite", InvitePair: "invite-pair", Code: "code", CodeAddress: "code-address", Enter: "enter",
	LeaveMatchmaking: "leave-matchmaking", AcceptMatch: "accept-match", Details: "details", LeaveParty: "leave-party",
	LeaveGame: "leave-game", Decline: "decline", Logout: "logout", Frames: "frames", Partner: "partner",
}

// ratesOf returns the rates of the classes. Every class has one, except logins by address.
func ratesOf(kinds []playerrates.Kind) (rates [classes]rate.Limit) {
	for _, k := range kinds {
		if at := slices.Index(classNames[:], k.Name); at >= 0 {
			rates[at] = k.Rate
		}
	}
	return rates
}

// Buckets limits rates. A bucket is stored as the instant at which it is full again, so full buckets need no memory.
type Buckets struct {
	now   func() time.Time
	rates live.Value[*[classes]rate.Limit]

	mu     sync.Mutex
	fullAt map[bucketKey]int64 // Unix nanoseconds
	swept  int64
}

type bucketKey struct {
	class Class
	who   string
}

// New makes full buckets. If kinds is nil, each class has its default rate. loginsPerAddress is per minute; 0: no limit.
func New(now func() time.Time, kinds []playerrates.Kind, loginsPerAddress int) *Buckets {
	b := &Buckets{now: now, fullAt: map[bucketKey]int64{}}
	b.Set(kinds, loginsPerAddress)
	return b
}

// Set changes the rates while they are in use; the parameters are those of New. A bucket is full again after the time
// that it had left, or that an empty one takes at the new rate, whichever is shorter.
func (b *Buckets) Set(kinds []playerrates.Kind, loginsPerAddress int) {
	if kinds == nil {
		kinds = playerrates.Defaults()
	}
	rates := ratesOf(kinds)
	if loginsPerAddress > 0 {
		rates[LoginAddress] = rate.Limit{Every: time.Minute / time.Duration(loginsPerAddress), Burst: max(5, loginsPerAddress/6)}
	}
	b.rates.Set(&rates)
}

// Limit returns the rate of a class.
func (b *Buckets) Limit(c Class) rate.Limit { return b.rates.Get()[c] }

// sweepEvery is how often full buckets are forgotten, which bounds memory.
const sweepEvery = 10 * time.Second

// budget is the state of a bucket.
type budget struct {
	ok   bool          // the call may proceed
	wait time.Duration // otherwise: until a call may proceed
	left int           // further calls that could proceed immediately
	full time.Duration // until the bucket is full again
}

// Take takes one call from a bucket, or returns how long to wait.
func (b *Buckets) Take(c Class, who string) (wait time.Duration, ok bool) {
	x := b.look(c, who, true)
	return x.wait, x.ok
}

// Open reports whether a call could proceed, without taking it.
func (b *Buckets) Open(c Class, who string) (wait time.Duration, ok bool) {
	x := b.look(c, who, false)
	return x.wait, x.ok
}

// TakeFor is Take for a request. It adds the remaining budget to the headers of the answer.
func (b *Buckets) TakeFor(c Class, who string, answer http.Header) (wait time.Duration, ok bool) {
	x := b.look(c, who, true)
	b.tell(c, &x, answer)
	return x.wait, x.ok
}

// The headers that report a caller's budget. Source: draft-ietf-httpapi-ratelimit-headers-10.
const (
	rateLimitHeader  = "Ratelimit"
	ratePolicyHeader = "Ratelimit-Policy"
)

// tell sets the headers of an answer: the bucket allows q calls in w seconds, the time in which it fills; r calls remain until it is
// full again in t seconds.
func (b *Buckets) tell(c Class, x *budget, answer http.Header) {
	limit := b.Limit(c)
	if limit.Every <= 0 {
		return
	}
	name := `"` + classNames[c] + `"`
	answer.Add(ratePolicyHeader, name+";q="+strconv.Itoa(limit.Burst)+";w="+seconds(limit.Every*time.Duration(limit.Burst)))
	answer.Add(rateLimitHeader, name+";r="+strconv.Itoa(x.left)+";t="+seconds(x.full))
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Count returns the number of buckets in memory.
func (b *Buckets) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fullAt)
}

func (b *Buckets) look(c Class, who string, take bool) budget {
	limit := b.Limit(c)
	if limit.Every <= 0 {
		return budget{ok: true}
	}
	now := steady.Nanos(b.now())
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
	if most := limit.Refilled(now); full > most {
		full, b.fullAt[key] = most, most
	}
	next, early := limit.Next(full, now, 1)
	if early > 0 {
		return budget{wait: early, full: time.Duration(full - now)}
	}
	if take {
		b.fullAt[key], full = next, next
	}
	return budget{ok: true, left: int(-early / limit.Every), full: time.Duration(full - now)}
}
