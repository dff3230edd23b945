package connlimit

import (
	"cmp"
	"container/list"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

// Config is what a Limiter needs.
type Config struct {
	Limits Limits // as Derive returns them

	// Exempt are addresses that many clients share, such as trusted proxies: they are not bounded by address.
	Exempt []netip.Prefix

	Log *slog.Logger
	Now func() time.Time // nil: time.Now
}

// Limiter counts the connections of all ports of a process.
type Limiter struct {
	config Config

	refused [reasons]atomic.Uint64
	evicted [reasons]atomic.Uint64

	mu       sync.Mutex
	limits   Limits
	exempt   []netip.Prefix
	conns    map[*Conn]struct{}
	networks map[netip.Prefix]*network
	crowds   crowds
	unproven list.List // *Conn without a credential, in order of arrival
	doors    [doors]int
	holders  map[place]int // connections that holders have at doors
	told     rate.Lines    // of full limits
}

// place names what a holder has at a door.
type place struct {
	door   Door
	holder string
}

// reason is the limit that a connection was refused or closed for.
type reason int

const (
	byTotal reason = iota
	byUnproven
	byAddress
	byNetwork
	byDoor
	byHolder
	reasons
)

var reasonNames = [reasons]string{"total", "unproven", "address", "network", "door", "holder"}

// busyGrace is how long an unproven connection whose request is being answered is spared for a newcomer from the same
// network. Signing in takes milliseconds; without the grace a crowd of honest clients that all return at once would displace each
// other out.
const busyGrace = 5 * time.Second

// New makes a Limiter.
func New(c Config) *Limiter {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &Limiter{config: c, limits: c.Limits, exempt: c.Exempt, conns: map[*Conn]struct{}{}, networks: map[netip.Prefix]*network{}, told: rate.Lines{Most: 1, Period: 10 * time.Second}}
}

// Limits are the limits in force.
func (l *Limiter) Limits() Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits
}

// Set changes the limits, and which addresses are exempt. Open connections stay: while there are more than a limit, each new one is refused or replaces another.
func (l *Limiter) Set(limits Limits, exempt []netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits, l.exempt = limits, exempt
}

// Conn is one counted connection.
type Conn struct {
	limiter *Limiter
	host    *host
	exempt  bool
	drop    func() // closes the connection
	since   time.Time

	proven    atomic.Bool
	busy      atomic.Bool  // a request is being answered
	idleSince atomic.Int64 // the last answer's end, as steady.Nanos

	onProven func()

	// These are guarded by limiter.mu.
	door  Door
	of    string // the holder at the door; empty: none
	gone  bool
	place *list.Element // in host.unproven
	turn  *list.Element // in limiter.unproven
}

// Admit counts a new connection from an address, or refuses it with nil. It may close another connection in its favour.
// drop closes the connection at once and may be called from any goroutine; proven, which may be nil, is called when the
// connection presents a credential.
func (l *Limiter) Admit(from netip.Addr, drop, proven func()) *Conn {
	c := &Conn{limiter: l, drop: drop, onProven: proven, since: l.config.Now()}
	l.mu.Lock()
	networkKey, hostKey := keysOf(from)
	n := l.networks[networkKey]
	if n == nil {
		n = &network{key: networkKey}
		l.networks[networkKey] = n
	}
	c.host = n.host(hostKey)
	plain := from.Unmap().WithZone("") // networks have no zones
	c.exempt = slices.ContainsFunc(l.exempt, func(p netip.Prefix) bool { return p.Contains(plain) })
	victim, why, full := l.makeRoom(c)
	if full && victim == nil {
		l.tidy(c.host)
		l.note(&l.refused[why], why)
		l.mu.Unlock()
		return nil
	}
	l.add(c) // before the victim is closed: its address would be forgotten with its last connection
	if victim != nil {
		l.remove(victim)
		l.note(&l.evicted[why], why)
	}
	l.mu.Unlock()
	if victim != nil {
		victim.drop()
	}
	return c
}

// makeRoom finds the limit that a new connection would break, and chooses the connection to close for it. One is enough for
// all limits, since none is ever broken by more than one.
func (l *Limiter) makeRoom(c *Conn) (victim *Conn, why reason, full bool) {
	h, n, now := c.host, c.host.network, c.since
	switch {
	case !c.exempt && h.total >= l.limits.PerAddress:
		return oldest(&h.unproven, now, busyGrace), byAddress, true
	case !c.exempt && n.key != h.key && n.total >= l.limits.PerNetwork:
		return oldest(&n.crowdedHost().unproven, now, busyGrace), byNetwork, true
	case l.unproven.Len() >= l.limits.Unproven:
		return l.fromLargestCrowd(n, now), byUnproven, true
	case l.doors[HTTP] >= l.limits.Doors[HTTP]:
		return l.anyIdle(n, now), byDoor, true
	case len(l.conns) >= l.limits.Total:
		return l.anyIdle(n, now), byTotal, true
	}
	return nil, 0, false
}

func (l *Limiter) anyIdle(newcomer *network, now time.Time) *Conn {
	if victim := l.fromLargestCrowd(newcomer, now); victim != nil {
		return victim
	}
	return l.idle(now)
}

// crowdMin is from how many unproven connections on a network is a crowd. Below it, a few players behind one address who
// connect together would be the largest crowd among thousands of attackers with an address each.
const crowdMin = 32

// fromLargestCrowd is the oldest unproven connection of the network that has the most; among small networks, the oldest of all.
func (l *Limiter) fromLargestCrowd(newcomer *network, now time.Time) *Conn {
	most := l.crowds.most()
	if most == nil {
		return nil
	}
	if most.unproven < crowdMin {
		return oldest(&l.unproven, now, 0)
	}
	grace := busyGrace
	if most != newcomer && most.unproven > newcomer.unproven+1 {
		grace = 0 // a crowd does not keep others out by keeping busy
	}
	return oldest(&most.crowdedHost().unproven, now, grace)
}

// oldestTried is among how many of the oldest one is looked for that asks for nothing.
const oldestTried = 32

// oldest is the unproven connection that has waited longest, if possible one whose request is not being answered; nil when
// all are younger than the grace and busy.
func oldest(unproven *list.List, now time.Time, grace time.Duration) *Conn {
	first := unproven.Front()
	for e, i := first, 0; e != nil && i < oldestTried; e, i = e.Next(), i+1 {
		if c := e.Value.(*Conn); !c.busy.Load() {
			return c
		}
	}
	if first == nil || now.Sub(first.Value.(*Conn).since) < grace {
		return nil
	}
	return first.Value.(*Conn)
}

const (
	// idleTried is among how many proven connections the one is chosen that has been idle longest.
	idleTried = 64
	// idleMin spares clients that are about to send their next request.
	idleMin = time.Second
)

// idle returns a proven HTTP connection without a request. Its client opens another one when it needs it.
func (l *Limiter) idle(now time.Time) *Conn {
	var longest *Conn
	tried := 0
	for c := range l.conns {
		if tried++; tried > idleTried {
			break
		}
		if c.door != HTTP || c.busy.Load() || steady.Nanos(now)-c.idleSince.Load() < int64(idleMin) || !c.proven.Load() {
			continue
		}
		if longest == nil || c.idleSince.Load() < longest.idleSince.Load() {
			longest = c
		}
	}
	return longest
}

func (l *Limiter) add(c *Conn) {
	l.conns[c] = struct{}{}
	l.doors[HTTP]++
	c.host.total++
	c.host.network.total++
	c.place = c.host.unproven.PushBack(c)
	c.turn = l.unproven.PushBack(c)
	l.crowds.resize(c.host.network, 1)
}

// remove forgets a connection. l.mu is locked.
func (l *Limiter) remove(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	l.leaveUnproven(c)
	delete(l.conns, c)
	l.doors[c.door]--
	l.giveBack(c)
	c.host.total--
	c.host.network.total--
	l.tidy(c.host)
}

func (l *Limiter) leaveUnproven(c *Conn) {
	if c.place == nil {
		return
	}
	c.host.unproven.Remove(c.place)
	l.unproven.Remove(c.turn)
	c.place, c.turn = nil, nil
	l.crowds.resize(c.host.network, -1)
}

// tidy forgets addresses without connections.
func (l *Limiter) tidy(h *host) {
	if h.total > 0 {
		return
	}
	h.network.forget(h)
	if len(h.network.hosts) == 0 {
		delete(l.networks, h.network.key)
	}
}

// note counts a connection that was refused or closed, and logs some of them. l.mu is locked.
func (l *Limiter) note(counter *atomic.Uint64, why reason) {
	counter.Add(1)
	if write, before := l.told.Note(l.config.Now()); write {
		l.config.Log.Warn("a limit of connections was reached: connections were refused or closed", "limit", reasonNames[why], "count", before+1,
			"connections", len(l.conns), "unproven", l.unproven.Len())
	}
}

// Prove records that the connection presented a credential that was accepted. It may be called any number of times.
func (c *Conn) Prove() {
	if c == nil || c.proven.Load() {
		return
	}
	l := c.limiter
	l.mu.Lock()
	first := c.proven.CompareAndSwap(false, true)
	if first && !c.gone {
		l.leaveUnproven(c)
	}
	l.mu.Unlock()
	if first && c.onProven != nil {
		c.onProven()
	}
}

// Proven reports whether the connection has presented a credential.
func (c *Conn) Proven() bool { return c.proven.Load() }

// Busy records that a request is being answered, or that its answer has been given.
func (c *Conn) Busy(busy bool) {
	if !busy {
		c.idleSince.Store(steady.Now())
	}
	c.busy.Store(busy)
}

// use moves the connection to a door, unless that is full or the holder has its share of it.
func (c *Conn) use(door Door, holder string) error {
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.gone || c.door == door:
		return nil // a connection that is gone shows at the next read or write
	case door != HTTP && l.doors[door] >= l.limits.Doors[door]:
		l.note(&l.refused[byDoor], byDoor)
		return ErrFull
	case holder != "" && l.holders[place{door, holder}] >= l.limits.ofHolder(door):
		l.note(&l.refused[byHolder], byHolder)
		return ErrShare
	}
	l.doors[c.door]--
	l.giveBack(c)
	c.door, c.of = door, holder
	l.doors[door]++
	if holder != "" {
		if l.holders == nil {
			l.holders = map[place]int{}
		}
		l.holders[place{door, holder}]++
	}
	return nil
}

// giveBack counts down what the holder of a connection has at its door.
func (l *Limiter) giveBack(c *Conn) {
	if c.of == "" {
		return
	}
	at := place{c.door, c.of}
	if l.holders[at]--; l.holders[at] == 0 {
		delete(l.holders, at)
	}
	c.of = ""
}

// Release forgets the connection, which is closed. It may be called any number of times.
func (c *Conn) Release() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.limiter.remove(c)
}
