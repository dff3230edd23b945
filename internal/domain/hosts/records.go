package hosts

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// ID identifies a host. Other records contain its text form.
type ID = domain.ID[hostKind]

type hostKind struct{}

// Prefix implements domain.Kind.
func (hostKind) Prefix() string { return "host-" }

// Host is a machine whose agent has joined.
type Host struct {
	ID       string
	Name     string // also the name of the compute that represents it
	Location string
	Fleet    string // the only fleet that it may serve; empty: any fleet of a build in its location
	Key      []byte // public key, Ed25519
	Joined   domain.Time
	Token    string // id of the token with which it joined

	// Signed is the time by the host's own clock in the signature of its latest connection. The next one must be later, which
	// prevents replays.
	Signed   domain.Time
	Seen     domain.Time        // when its agent was last known to be connected; 0: never
	SilentBy domain.ContactTime // when it becomes silent without another sign of life; 0: it is silent

	Drained   bool        // by an operator
	Revoked   domain.Time // 0: it may connect
	RevokedBy string      // principal

	IP, DNS  string // where players reach it
	Version  string // of its agent
	Ports    int32  // in the pool for server processes
	MemoryMB int64  // 0: unknown

	Holder quota.Holder // for its own quota and that of its computes: the token's holder

	Changed uint64 // journal number of the last change; 0: before this run
}

// Silent reports whether the agent has not been connected for SilentAfter.
func (h *Host) Silent() bool { return h.SilentBy == 0 }

// Level returns the level of the snapshot part.
func (*Host) Level() uint { return level }

// Fields of a Host.
func (h *Host) Fields(c *wire.Codec) {
	c.String(1, &h.ID)
	c.String(2, &h.Name)
	c.Shared(3, &h.Location)
	c.Shared(4, &h.Fleet)
	c.Bytes(5, &h.Key)
	wire.Int(c, 6, &h.Joined)
	c.Shared(7, &h.Token)
	wire.Int(c, 8, &h.Signed)
	wire.Int(c, 9, &h.Seen)
	wire.Int(c, 10, &h.SilentBy)
	c.Bool(11, &h.Drained)
	wire.Int(c, 12, &h.Revoked)
	c.Shared(13, &h.RevokedBy)
	c.String(14, &h.IP)
	c.String(15, &h.DNS)
	c.Shared(16, &h.Version)
	wire.Int(c, 17, &h.Ports)
	wire.Int(c, 18, &h.MemoryMB)
	c.Fixed64(19, (*uint64)(&h.Holder))
}

// countsFor returns for whom a host counts: the holder, until the host is revoked.
func countsFor(h *Host) quota.Holder {
	if h.Revoked != 0 {
		return 0
	}
	return h.Holder
}

func place(h *Host) catalog.Place { return catalog.Place{Created: h.Joined, ID: h.ID} }

// Token allows hosts to join. The state contains only the hash of its secret.
type Token struct {
	ID, Hash string
	Fleet    string // the only fleet that the hosts may serve; empty: any fleet of a build in their location
	Location string // of the hosts; empty: each host names one of the fleet's locations
	Uses     uint32 // how many more hosts may join with it
	Issued   domain.Time
	Expires  domain.Time
	By       string       // principal that created it
	Holder   quota.Holder // of the hosts that join with it
}

// Level returns the level of the snapshot part.
func (*Token) Level() uint { return level }

// Fields of a Token.
func (x *Token) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.String(2, &x.Hash)
	c.Shared(3, &x.Fleet)
	c.Shared(4, &x.Location)
	wire.Int(c, 5, &x.Uses)
	wire.Int(c, 6, &x.Issued)
	wire.Int(c, 7, &x.Expires)
	c.Shared(8, &x.By)
	c.Fixed64(9, (*uint64)(&x.Holder))
}
