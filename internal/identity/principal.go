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

// Principal identifies the authenticated caller of a request: docs/glossary.md#principal. Doors ask it what the request may do,
// shares of bounded resources count for it, and audit records show it. (Players are identified by playerflow.Caller, in the core.)
type Principal struct {
	ID      string // of the access key, or holder and session name of temporary credentials; for others the name in audit records
	Account string // 12 digits, for ARNs
	Role    Role
	Address string // of the client, in the form that limits by address use

	session  *Session // of temporary credentials; nil: the caller used an access key, or none
	life     *life    // of the access key; nil: never revoked
	policies *policy.Set
	standing *standing // of the access key; nil: uses are not recorded
	agent    bool      // the caller is a host's agent
}

// Session returns the session of a caller with temporary credentials; nil for others.
func (p *Principal) Session() *Session { return p.session }

// ARN returns the principal's name in AWS's form.
func (p *Principal) ARN() string {
	if p.session != nil {
		return p.session.ARN()
	}
	if p.agent {
		return "arn:aws:iam::" + p.Account + ":host/" + cmp.Or(p.ID, "compute")
	}
	return UserARN(p.Account, p.Role, cmp.Or(p.ID, "anonymous"))
}

// Holder returns the name under which shares, rates and quotas count: the access key, person or machine that temporary credentials were issued to, regardless of
// the names of their sessions. A caller gains nothing by naming more sessions.
func (p *Principal) Holder() string {
	if p.session != nil {
		return p.session.Holder
	}
	return p.ID
}

// Quota implements quotas.Caller.
func (p *Principal) Quota() string { return p.Holder() }

// Principal returns the principal of a request with this key from an address.
func (k AccessKey) Principal(address string) Principal {
	return Principal{ID: k.principalID(), Account: k.Account, Role: k.Role, Address: address, session: k.Session(), life: k.life, policies: k.policies, standing: k.standing}
}

// Used records an operation as the last use of the access key. Most calls record nothing because another use was recorded recently.
func (p *Principal) Used(operation string) { p.standing.use(p.Address, operation) }

// Life is the AccessKey.Life of the principal's key.
func (p *Principal) Life() context.Context { return p.life.context() }

// Maker returns the number with which the core marks objects that an access key with the role client made: the first eight bytes of the
// SHA-256 of its id. For other roles it is 0: they may change the objects of all keys.
func (p *Principal) Maker() domain.Maker {
	if p.Role != Client {
		return 0
	}
	sum := sha256.Sum256([]byte(p.ID))
	return domain.Maker(max(binary.BigEndian.Uint64(sum[:8]), 1))
}

// Actor returns the principal for the audit record of a request to a door.
func (p *Principal) Actor(r *http.Request, door string) access.Actor {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return access.Actor{Principal: p.ID, Address: host, Door: door}
}

// Within returns a context that ends with ctx or with the access key. If the key ends it, its cause is ErrRevoked, ErrExpired or ErrPolicies.
// It also makes the principal the holder of the records that commands create. The caller must call cancel.
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

// Ended reports whether a context ended because the access key or temporary credentials of its request ended.
func Ended(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrRevoked) || errors.Is(cause, ErrExpired) || errors.Is(cause, ErrPolicies)
}

// Roles is the set of roles that may make a call.
type Roles uint8

// The sets in use. Reading reveals who plays where, which a client in players' hands needs only in part.
const (
	MayAdminister Roles = 1 << Admin
	MayOperate          = MayAdminister | 1<<Backend // sessions and computes of all callers
	MayLook             = MayOperate | 1<<ReadOnly
	MayPlay             = MayOperate | 1<<Client // the operations of a game client
	MayPlayOrLook       = MayPlay | MayLook
)

// Allow reports whether a role is in the set.
func (r Roles) Allow(role Role) bool { return r&(1<<role) != 0 }
