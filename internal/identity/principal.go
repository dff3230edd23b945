package identity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/quotas"
)

// Principal is who a request is made by, once that is authenticated: docs/glossary.md#principal. Doors ask it what the request may do,
// shares of what is bounded are taken in its name, and audit records show it. (A player is playerflow.Caller, as the core knows players.)
type Principal struct {
	ID      string // of the access key, or the holder of temporary credentials with the name of the session; else what audit records show
	Account string // 12 digits, for ARNs
	Role    Role
	Address string // of the client, as limits by address know it

	session  *Session // of temporary credentials; nil: the caller used an access key, or none
	life     *life    // of the access key; nil: it is never revoked
	policies *policy.Set
	standing *standing // of the access key; nil: its uses are not recorded
	agent    bool      // of a host
}

// Session returns the session of a caller with temporary credentials; nil for others.
func (p *Principal) Session() *Session { return p.session }

// ARN names the principal as AWS would.
func (p *Principal) ARN() string {
	if p.session != nil {
		return p.session.ARN()
	}
	if p.agent {
		return "arn:aws:iam::" + p.Account + ":host/" + cmp.Or(p.ID, "compute")
	}
	return UserARN(p.Account, p.Role, cmp.Or(p.ID, "anonymous"))
}

// Holder is the name under which shares, rates and quotas count: the access key, person or machine that all temporary credentials of a caller were issued to, whatever the
// names of their sessions are. A caller that names more sessions gets no more of anything.
func (p *Principal) Holder() string {
	if p.session != nil {
		return p.session.Holder
	}
	return p.ID
}

// Quota implements quotas.Caller.
func (p *Principal) Quota() string { return p.Holder() }

// Principal is who uses the key, from an address.
func (k AccessKey) Principal(address string) Principal {
	return Principal{ID: k.principalID(), Account: k.Account, Role: k.Role, Address: address, session: k.Session(), life: k.life, policies: k.policies, standing: k.standing}
}

// Used notes what the principal does with its access key, for the last use of the key. Most calls find that there was another use a moment before.
func (p *Principal) Used(operation string) { p.standing.use(p.Address, operation) }

// Life is done as soon as the access key is revoked, as AccessKey.Life.
func (p *Principal) Life() context.Context { return p.life.context() }

// Maker is the number with which the core marks objects made with an access key of the role client: the first eight bytes of the
// SHA-256 of its id. For other roles it is 0: they may change objects of all keys.
func (p *Principal) Maker() domain.Maker {
	if p.Role != Client {
		return 0
	}
	sum := sha256.Sum256([]byte(p.ID))
	return domain.Maker(max(binary.BigEndian.Uint64(sum[:8]), 1))
}

// Actor is the principal in the audit record of a request to a door.
func (p *Principal) Actor(r *http.Request, door string) access.Actor {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return access.Actor{Principal: p.ID, Address: host, Door: door}
}

// Within returns a context that ends with ctx, and with the access key. A context that the key has ended has ErrRevoked, ErrExpired or ErrPolicies as its
// cause. It also has the principal as the holder of what commands create. The caller must call cancel.
func (p *Principal) Within(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	ctx = quotas.With(ctx, p)
	life := p.Life()
	forget := context.AfterFunc(life, func() { end(context.Cause(life)) })
	return ctx, func() {
		forget()
		end(nil)
	}
}

// Ended reports whether a context has ended with the access key, or the temporary credentials, of its request.
func Ended(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrRevoked) || errors.Is(cause, ErrExpired) || errors.Is(cause, ErrPolicies)
}

// Roles is a set of roles: who may make a call.
type Roles uint8

// The sets in use. Looking tells who plays where, which a client in players' hands needs only in part.
const (
	MayAdminister Roles = 1 << Admin
	MayOperate          = MayAdminister | 1<<Backend // sessions and computes of everyone
	MayLook             = MayOperate | 1<<ReadOnly
	MayPlay             = MayOperate | 1<<Client // what a game client does
	MayPlayOrLook       = MayPlay | MayLook
)

// Allow reports whether a role is in the set.
func (r Roles) Allow(role Role) bool { return r&(1<<role) != 0 }
