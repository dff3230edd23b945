package fleet

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Build says where the files of a game server are stored. The hosts fetch them; the service does not read them.
type Build struct {
	ID              string // "build-<uuid>"
	Region, Account string // of its ARN
	Name            string
	Version         string
	OperatingSystem string
	SDK             string  // version of the server SDK in the game
	Storage         Storage // zero: no location was given, so hosts cannot start the build
	Created         domain.Time
	Tags            []Tag

	Changed uint64
}

// Storage is a location in an object store of the operator.
type Storage struct{ Bucket, Key, Version, Role string }

// Ready reports whether hosts can fetch the build.
func (b *Build) Ready() bool { return b.Storage != Storage{} }

func (b *Build) Fields(c *wire.Codec) {
	c.String(1, &b.ID)
	c.Shared(2, &b.Region)
	c.Shared(3, &b.Account)
	c.String(4, &b.Name)
	c.String(5, &b.Version)
	c.Shared(6, &b.OperatingSystem)
	c.Shared(7, &b.SDK)
	wire.Sub(c, 8, &b.Storage, b.Ready(), (*Storage).fields)
	wire.Int(c, 9, &b.Created)
	wire.Many(c, 10, &b.Tags, (*Tag).Fields)
}

func (s *Storage) fields(c *wire.Codec) {
	c.String(1, &s.Bucket)
	c.String(2, &s.Key)
	c.String(3, &s.Version)
	c.String(4, &s.Role)
}

func buildPlace(b *Build) catalog.Place { return catalog.Place{Created: b.Created, ID: b.ID} }
