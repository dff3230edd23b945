package connlimit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/steady"
)

// port admits connections in a test.
type port struct {
	*Limiter
	t   *testing.T
	now time.Time
}

func newPort(t *testing.T, descriptors int, wanted Limits, exempt ...string) *port {
	t.Helper()
	limits, err := Derive(descriptors, wanted)
	if err != nil {
		t.Fatal(err)
	}
	p := &port{t: t, now: time.Unix(1_000_000, 0)}
	var prefixes []netip.Prefix
	for _, text := range exempt {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	p.Limiter = New(Config{Limits: limits, Exempt: prefixes, Now: func() time.Time { return p.now }})
	return p
}

type client struct {
	*Conn
	dropped bool
}

// connect opens a connection. It returns nil if the connection is refused.
func (p *port) connect(from string) *client {
	p.t.Helper()
	p.now = p.now.Add(time.Millisecond)
	x := &client{}
	x.Conn = p.Admit(netip.MustParseAddr(from), func() { x.dropped = true }, nil)
	if x.Conn == nil {
		return nil
	}
	return x
}

func (p *port) mustConnect(from string) *client {
	p.t.Helper()
	x := p.connect(from)
	if x == nil {
		p.t.Fatalf("connection from %s: refused, %+v", from, p.Stats())
	}
	return x
}

func TestLimitsAreDerivedFromDescriptors(t *testing.T) {
	for _, c := range []struct {
		descriptors                          int
		total, unproven, perAddress, reserve int
		journal, archive                     int
	}{
		{1024, 768, 576, 192, 256, 64, 128},
		{20_000, 18_976, 14_232, 4744, 1024, 256, 500},
		{1 << 20, 100_000, 75_000, 25_000, 1024, 256, 500},
	} {
		l, err := Derive(c.descriptors, Limits{})
		r := ReserveOf(c.descriptors)
		if err != nil || l.Total != c.total || l.Unproven != c.unproven || l.PerAddress != c.perAddress ||
			r != (Reserve{c.reserve, c.journal, c.archive}) {
			t.Errorf("%d descriptors: got %+v, %+v, %v, want %+v", c.descriptors, l, r, err, c)
		}
	}
	if _, err := Derive(200, Limits{}); err == nil {
		t.Error("200 descriptors: want an error")
	}
	if _, err := Derive(1024, Limits{Total: 1000}); err == nil {
		t.Error("a total without the reserve: want an error")
	}
	if l, err := Derive(1024, Limits{Total: 100, Unproven: 5000, PerAddress: 7}); err != nil || l.Unproven != 100 || l.PerAddress != 7 || l.PerNetwork != 14 {
		t.Errorf("limits of an operator's own: got %+v, %v", l, err)
	}
}

// Anonymous connections from one address displace only each other. Other addresses, and connections with credentials, are not
// affected.
func TestAFloodFromOneAddressPressesOutItself(t *testing.T) {
	p := newPort(t, 1024, Limits{PerAddress: 2000})
	signed, waiting := p.mustConnect("192.0.2.1"), p.mustConnect("192.0.2.1")
	signed.Prove()
	var flood []*client
	for range 5000 {
		flood = append(flood, p.mustConnect("198.51.100.7"))
	}
	if s := p.Stats(); s.Unproven < p.Limits().Unproven-1 || s.Unproven > p.Limits().Unproven {
		t.Errorf("after a flood: %+v, want as many as %+v", s, p.Limits())
	}
	if signed.dropped || waiting.dropped || !flood[0].dropped || flood[len(flood)-1].dropped {
		t.Errorf("dropped: signed %t, waiting %t, first %t and last %t of the flood; want the first alone",
			signed.dropped, waiting.dropped, flood[0].dropped, flood[len(flood)-1].dropped)
	}
	for range 500 { // proven ones, for which the flood makes room
		p.mustConnect("192.0.2.2").Prove()
	}
	if s := p.Stats(); s.Open > p.Limits().Total {
		t.Errorf("%d connections, want at most %d", s.Open, p.Limits().Total)
	}
	if waiting.dropped {
		t.Error("an unproven connection was dropped while another address had hundreds")
	}
}

// Attackers with one address each form smaller groups than a few players behind one address who connect together.
func TestAFloodFromManyAddressesDoesNotPressOutSmallNetworks(t *testing.T) {
	p := newPort(t, 1024, Limits{})
	flood := func(n int) {
		for i := range n {
			p.mustConnect(fmt.Sprintf("10.%d.%d.%d", p.Limits().Total%200, i/250%250, i%250+1))
		}
	}
	flood(p.Limits().Unproven)
	for range 10 {
		var players []*client
		for range crowdMin - 1 {
			players = append(players, p.mustConnect("192.0.2.1"))
		}
		flood(p.Limits().Unproven / 2)
		for i, x := range players {
			if x.dropped {
				t.Fatalf("player %d was dropped for a newcomer of the flood, although most of the flood had waited longer", i)
			}
			x.Prove()
		}
		for _, x := range players {
			x.Release()
		}
	}
	if s := p.Stats(); s.Unproven > p.Limits().Unproven {
		t.Errorf("%d unproven connections, want at most %d", s.Unproven, p.Limits().Unproven)
	}
}

// A new connection that displaces the only connection of its own address still counts for that address.
func TestANewcomerInPlaceOfItsOwnAddress(t *testing.T) {
	p := newPort(t, 1024, Limits{PerAddress: 1})
	for range 5 {
		p.mustConnect("192.0.2.1")
	}
	if s := p.Stats(); s.Open != 1 || len(p.networks) != 1 {
		t.Errorf("%d connections on %d networks, want one on one", s.Open, len(p.networks))
	}
	last := p.mustConnect("192.0.2.1")
	last.Release()
	if len(p.networks) != 0 || p.unproven.Len() != 0 {
		t.Errorf("%d networks and %d unproven connections after the last one ended", len(p.networks), p.unproven.Len())
	}
}

func TestAnAddressHasItsShare(t *testing.T) {
	p := newPort(t, 1024, Limits{PerAddress: 10}, "203.0.113.0/24", "fe80::1/128", "2001:db8:1:9::/128")
	for range 10 {
		p.mustConnect("192.0.2.1").Prove()
	}
	if p.connect("192.0.2.1") != nil {
		t.Error("an eleventh connection from one address: want it refused")
	}
	p.mustConnect("192.0.2.2")
	for range 100 {
		p.mustConnect("203.0.113.9").Prove() // exempt
	}
	for range 20 {
		p.mustConnect("fe80::1%eth0").Prove() // exempt, whatever its zone
	}
	for range 10 {
		p.mustConnect("2001:db8:1:9::5").Prove()
	}
	if p.connect("2001:db8:1:9::5") != nil {
		t.Error("an eleventh connection from a neighbour of an exempt address: want it refused")
	}
	// IPv6: a /64 has what an address has, a /56 twice as much.
	for i := range 10 {
		p.mustConnect(fmt.Sprintf("2001:db8:0:1::%d", i+1)).Prove()
	}
	if p.connect("2001:db8:0:1::ffff") != nil {
		t.Error("an eleventh connection from one /64: want it refused")
	}
	for i := range 10 {
		p.mustConnect(fmt.Sprintf("2001:db8:0:%d::1", i+2)).Prove()
	}
	if p.connect("2001:db8:0:f0::1") != nil {
		t.Error("a twenty-first connection from one /56: want it refused")
	}
	p.mustConnect("2001:db8:0:100::1") // another /56
}

// When thousands of honest clients return at once, connections whose requests are being answered are not displaced by the same
// network before busyGrace is over. Another network may displace them.
func TestRequestsUnderWayAreSpared(t *testing.T) {
	p := newPort(t, 1024, Limits{PerAddress: 2000})
	var busy []*client
	for range p.Limits().Unproven {
		x := p.mustConnect("198.51.100.7")
		x.Busy(true)
		busy = append(busy, x)
	}
	if p.connect("198.51.100.7") != nil {
		t.Error("a newcomer pressed out a request of the same network")
	}
	p.mustConnect("192.0.2.1")
	if !busy[0].dropped || busy[1].dropped {
		t.Errorf("dropped: first %t, second %t; want only the first, for another network", busy[0].dropped, busy[1].dropped)
	}
	p.now = p.now.Add(2 * busyGrace)
	p.mustConnect("198.51.100.7") // in place of one that has been busy for too long
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	p := newPort(t, 1024, Limits{PerAddress: 2000})
	var all []*client
	for range p.Limits().Doors[HTTP] {
		x := p.mustConnect("192.0.2.1")
		x.Prove()
		x.Busy(true)
		all = append(all, x)
	}
	if p.connect("192.0.2.2") != nil {
		t.Error("all connections are proven and busy: want a newcomer refused")
	}
	for _, x := range all {
		x.busy.Store(false)
		x.idleSince.Store(steady.Nanos(p.now.Add(-time.Minute)))
	}
	p.mustConnect("192.0.2.2")
}

func TestDoorsHaveTheirShares(t *testing.T) {
	p := newPort(t, 1024, Limits{Doors: [doors]int{EventStreams: 2}})
	a, b, c := p.mustConnect("192.0.2.1"), p.mustConnect("192.0.2.1"), p.mustConnect("192.0.2.1")
	if a.use(EventStreams, "") != nil || b.use(EventStreams, "") != nil || c.use(EventStreams, "") != ErrFull {
		t.Error("want two event streams and no third")
	}
	_ = a.use(HTTP, "")
	if c.use(EventStreams, "") != nil {
		t.Error("a place that was left is not given again")
	}
	b.Release()
	b.Release()
	a.Release()
	c.Release()
	if s := p.Stats(); s != (Stats{}) || len(p.networks) != 0 || p.crowds.most() != nil || p.Limiter.doors != [doors]int{} {
		t.Errorf("after all have gone: %+v, %d networks, doors %v", s, len(p.networks), p.Limiter.doors)
	}
}

// One holder may have at most half of a door's connections, however many addresses it uses. It may replace connections that it closes,
// and the rest remains for others.
func TestHoldersHaveTheirShares(t *testing.T) {
	p := newPort(t, 1024, Limits{Doors: [doors]int{EventStreams: 16, PartnerStreams: 3}})
	var mine []*client
	for i := range 8 {
		x := p.mustConnect(fmt.Sprintf("192.0.2.%d", i))
		if err := x.use(EventStreams, "key"); err != nil {
			t.Fatal(err)
		}
		mine = append(mine, x)
	}
	more := p.mustConnect("198.51.100.1")
	if err := more.use(EventStreams, "key"); err != ErrShare {
		t.Errorf("one more: %v", err)
	}
	for i := range 8 {
		if err := p.mustConnect("203.0.113.1").use(EventStreams, fmt.Sprint("other", i)); err != nil {
			t.Errorf("another holder: %v", err)
		}
	}
	if err := more.use(EventStreams, "last"); err != ErrFull {
		t.Errorf("a full door: %v", err)
	}
	mine[0].Release()
	_ = mine[1].use(HTTP, "")
	if err := more.use(EventStreams, "key"); err != nil {
		t.Errorf("what was given back: %v", err)
	}
	for range 3 { // of a small door one holder may have all
		if err := p.mustConnect("203.0.113.2").use(PartnerStreams, "key"); err != nil {
			t.Error(err)
		}
	}
	for c := range p.conns {
		p.remove(c)
	}
	if len(p.holders) != 0 {
		t.Errorf("left behind: %v", p.holders)
	}
}

// No memory is kept for addresses whose connections were refused.
func TestRefusedAddressesAreForgotten(t *testing.T) {
	p := newPort(t, 1024, Limits{Total: 64, Doors: [doors]int{HTTP: 64}})
	for i := range 64 {
		x := p.mustConnect(fmt.Sprintf("192.0.2.%d", i))
		x.Prove()
		x.Busy(true)
	}
	for i := range 250 {
		if p.connect(fmt.Sprintf("198.51.100.%d", i)) != nil {
			t.Fatal("want it refused")
		}
	}
	if len(p.networks) != 64 {
		t.Errorf("%d networks are remembered, want 64", len(p.networks))
	}
}

func BenchmarkAdmitUnderAttack(b *testing.B) {
	limits, _ := Derive(20_000, Limits{PerAddress: 1 << 20})
	l := New(Config{Limits: limits})
	from := make([]netip.Addr, 1<<16)
	for i := range from {
		from[i] = netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1})
	}
	b.ReportAllocs()
	for i := range b.N {
		l.Admit(from[i%len(from)], func() {}, nil)
	}
}
