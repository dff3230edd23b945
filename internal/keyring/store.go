package keyring

import (
	"cmp"
	"context"

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
	ID   string // empty: a random one
	Role access.Role
	Name string
}

func (n New) command(by access.Actor, at domain.Time) *access.CreateAccessKey {
	n.ID = cmp.Or(n.ID, identity.NewKeyID())
	return &access.CreateAccessKey{At: at, Key: access.Key{ID: n.ID, Role: n.Role, Account: identity.DefaultAccount, Name: n.Name, CreatedBy: by}}
}
