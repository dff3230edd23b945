package keyring

import (
	"cmp"
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/identity"
)

// store is a cell whose keys can be changed: a running one, or one that this process opened exclusively.
type store interface {
	Do(ctx context.Context, cmd kernel.Command) error
	Read(ctx context.Context, f func(v *cell.View) error) error
}

// New describes a key to create.
type New struct {
	ID      string // empty: a random one
	Role    access.Role
	Name    string
	Expires time.Time // zero: never
	Sources []string  // the only networks from which it works; none: all
}

// limited reports whether the key has limits, which earlier releases would ignore.
func (n New) limited() bool { return !n.Expires.IsZero() || len(n.Sources) > 0 }

func (n New) command(by access.Actor, at domain.Time) (*access.CreateAccessKey, error) {
	n.ID = cmp.Or(n.ID, identity.NewKeyID())
	sources, err := sourcesOf(n.Sources)
	return &access.CreateAccessKey{At: at, Key: access.Key{
		ID: n.ID, Role: n.Role, Account: identity.DefaultAccount, Name: n.Name, CreatedBy: by, Expires: timeOf(n.Expires), Sources: sources,
	}}, err
}

func sourcesOf(texts []string) ([]string, error) {
	sources, err := identity.ParseSources(texts)
	if err != nil {
		return nil, domain.Refuse(domain.Invalid, "%s", err)
	}
	return sources, nil
}

// timeOf keeps the zero time.
func timeOf(t time.Time) domain.Time {
	if t.IsZero() {
		return 0
	}
	return domain.TimeOf(t)
}

// Rotation describes the successor of a key.
type Rotation struct {
	ID        string        `json:"-"`                   // of the key
	Successor string        `json:"successor,omitempty"` // its id; empty: a random one
	Expires   time.Time     `json:"expires,omitzero"`    // zero: it gets the original lifetime of the old key
	Forever   bool          `json:"forever,omitempty"`   // it does not expire, even if the old key did
	Sources   []string      `json:"sources,omitempty"`   // none: those of the old key
	Overlap   time.Duration `json:"overlap,omitempty"`   // until the old key ends, in nanoseconds; 0: the old key ends when the rotation is finished
}

func (x Rotation) command(by access.Actor, at domain.Time) (*access.RotateAccessKey, error) {
	sources, err := sourcesOf(x.Sources)
	return &access.RotateAccessKey{
		ID: x.ID, Forever: x.Forever, Overlap: x.Overlap, At: at,
		Successor: access.Key{ID: cmp.Or(x.Successor, identity.NewKeyID()), CreatedBy: by, Expires: timeOf(x.Expires), Sources: sources},
	}, err
}

// Limits describes a change of the time until which, and the networks from which, a key works.
type Limits struct {
	ID       string    `json:"-"`                  // of the key
	Expires  time.Time `json:"expires,omitzero"`   // zero: as before
	Forever  bool      `json:"forever,omitempty"`  // it does not expire
	Sources  []string  `json:"sources,omitempty"`  // none: as before
	Anywhere bool      `json:"anywhere,omitempty"` // it works from all networks
	Force    bool      `json:"force,omitempty"`    // even if this excludes the request itself, or limits the last admin key without limits
}

func (x Limits) command(by access.Actor, at domain.Time) (*access.LimitAccessKey, error) {
	sources, err := sourcesOf(x.Sources)
	return &access.LimitAccessKey{ID: x.ID, Expires: timeOf(x.Expires), Forever: x.Forever, Sources: sources, Anywhere: x.Anywhere, By: by, Force: x.Force, At: at}, err
}
