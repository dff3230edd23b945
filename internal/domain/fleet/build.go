package fleet

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Build describes where the files of a game server are stored: in the service's own store, to which they were uploaded, or in an operator's store,
// which the service does not read.
type Build struct {
	ID              string // "build-<uuid>"
	Region, Account string // of its ARN
	Name            string
	Version         string
	OperatingSystem string
	SDK             string  // version of the server SDK in the game
	Storage         Storage // in an operator's object store; zero: in the service's own store
	Created         domain.Time
	Tags            []Tag
	Holder          quota.Holder

	Manifest string // SHA-256 of the list of its files in the service's own store, in hexadecimal digits; empty: nothing was uploaded yet
	Size     int64  // bytes of these files; 0: unknown
	Failure  string // why the upload cannot be used; empty: it can, or there is none yet

	Changed uint64
}

// Storage is a location in an object store of the operator.
type Storage struct{ Bucket, Key, Version, Role string }

// Ready reports whether hosts can fetch the build.
func (b *Build) Ready() bool { return b.Storage != Storage{} || b.Manifest != "" }

// Uploadable reports whether the build waits for its files.
func (b *Build) Uploadable() bool { return !b.Ready() && b.Failure == "" }

func (b *Build) Fields(c *wire.Codec) {
	c.String(1, &b.ID)
	c.Shared(2, &b.Region)
	c.Shared(3, &b.Account)
	c.String(4, &b.Name)
	c.String(5, &b.Version)
	c.Shared(6, &b.OperatingSystem)
	c.Shared(7, &b.SDK)
	wire.Sub(c, 8, &b.Storage, b.Storage != Storage{}, (*Storage).fields)
	wire.Int(c, 9, &b.Created)
	wire.Many(c, 10, &b.Tags, (*Tag).Fields)
	c.String(11, &b.Manifest)
	wire.Int(c, 12, &b.Size)
	c.String(13, &b.Failure)
	c.Fixed64(14, (*uint64)(&b.Holder))
}

func (s *Storage) fields(c *wire.Codec) {
	c.String(1, &s.Bucket)
	c.String(2, &s.Key)
	c.String(3, &s.Version)
	c.String(4, &s.Role)
}

func buildPlace(b *Build) catalog.Place { return catalog.Place{Created: b.Created, ID: b.ID} }
