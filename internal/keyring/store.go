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

// store is a cell whose keys can be changed: one that runs, or one that only this process has open.
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
	Sources []string  // networks from which alone it works; none: from everywhere
}

// limited reports whether earlier releases would accept the key where it must not work.
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
	Expires   time.Time     `json:"expires,omitzero"`    // zero: it is valid for as long as the key was at first
	Forever   bool          `json:"forever,omitempty"`   // it does not expire, whatever the key did
	Sources   []string      `json:"sources,omitempty"`   // none: those of the key
	Overlap   time.Duration `json:"overlap,omitempty"`   // until the key ends, in nanoseconds; 0: when the rotation is finished
}

func (x Rotation) command(by access.Actor, at domain.Time) (*access.RotateAccessKey, error) {
	sources, err := sourcesOf(x.Sources)
	return &access.RotateAccessKey{
		ID: x.ID, Forever: x.Forever, Overlap: x.Overlap, At: at,
		Successor: access.Key{ID: cmp.Or(x.Successor, identity.NewKeyID()), CreatedBy: by, Expires: timeOf(x.Expires), Sources: sources},
	}, err
}

// Limits are changes of until when, and from which networks, a key works.
type Limits struct {
	ID       string    `json:"-"`                  // of the key
	Expires  time.Time `json:"expires,omitzero"`   // zero: as before
	Forever  bool      `json:"forever,omitempty"`  // it does not expire
	Sources  []string  `json:"sources,omitempty"`  // none: as before
	Anywhere bool      `json:"anywhere,omitempty"` // it works from all networks
	Force    bool      `json:"force,omitempty"`    // also where the caller's key, or the last admin key without limits, would not work any more
}

func (x Limits) command(by access.Actor, at domain.Time) (*access.LimitAccessKey, error) {
	sources, err := sourcesOf(x.Sources)
	return &access.LimitAccessKey{ID: x.ID, Expires: timeOf(x.Expires), Forever: x.Forever, Sources: sources, Anywhere: x.Anywhere, By: by, Force: x.Force, At: at}, err
}
