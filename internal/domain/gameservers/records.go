// Package gameservers is the room of game server groups and their game servers, which clients claim. It is independent of fleets and game
// sessions.
package gameservers

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Group is a set of equal game servers. Its settings for cloud instances are stored without effect, because the service starts no
// instances.
//
// Slices of a record are never changed in place: a frozen copy of the record may share them.
type Group struct {
	Name            string
	Region, Account string // of its ARN
	Role            string // an ARN
	SizeMin         int32
	SizeMax         int32
	Template        LaunchTemplate
	Instances       []InstanceType
	Balancing       string
	Protection      string
	Suspended       bool // REPLACE_INSTANCE_TYPES is suspended
	Deleting        bool // accepts no new game servers, and is removed with its last one
	Created         domain.Time
	Updated         domain.Time
	Tags            []keyvalue.Pair
	Holder          quota.Holder // of its quota; see package quota

	Changed uint64 // journal number of the last change, 0 when older than this run
}

// LaunchTemplate names a template of the cloud, by id or by name.
type LaunchTemplate struct{ ID, Name, Version string }

// InstanceType is a kind of instance that a group may use.
type InstanceType struct{ Name, Weight string }

func (g *Group) Fields(c *wire.Codec) {
	c.String(1, &g.Name)
	c.Shared(2, &g.Region)
	c.Shared(3, &g.Account)
	c.String(4, &g.Role)
	wire.Int(c, 5, &g.SizeMin)
	wire.Int(c, 6, &g.SizeMax)
	wire.Sub(c, 7, &g.Template, g.Template != LaunchTemplate{}, (*LaunchTemplate).fields)
	wire.Many(c, 8, &g.Instances, (*InstanceType).fields)
	c.String(9, &g.Balancing)
	c.String(10, &g.Protection)
	c.Bool(11, &g.Suspended)
	c.Bool(12, &g.Deleting)
	wire.Int(c, 13, &g.Created)
	wire.Int(c, 14, &g.Updated)
	wire.Many(c, 15, &g.Tags, (*keyvalue.Pair).Fields)
	c.Fixed64(16, (*uint64)(&g.Holder))
}

func (t *LaunchTemplate) fields(c *wire.Codec) {
	c.String(1, &t.ID)
	c.String(2, &t.Name)
	c.String(3, &t.Version)
}

func (t *InstanceType) fields(c *wire.Codec) {
	c.String(1, &t.Name)
	c.String(2, &t.Weight)
}

func groupPlace(g *Group) catalog.Place { return catalog.Place{Created: g.Created, ID: g.Name} }

// Server is one game server. Once utilized, it stays utilized.
type Server struct {
	ID         string // unique in the installation
	Group      string
	Instance   string // its host, as reported
	Connection string // how players reach it
	Data       string
	Utilized   bool
	Registered domain.Time
	Claimed    domain.Time // when it was last claimed
	Healthy    domain.Time // its last healthy report
	Holder     quota.Holder

	ClaimBy  domain.ContactTime // when the claim expires unless the game server is utilized; 0: not claimed
	HealthBy domain.ContactTime // a healthy report must have come

	indexed bool // among the free ones
	Changed uint64
}

// Free reports whether the game server can be claimed.
func (s *Server) Free() bool { return !s.Utilized && s.ClaimBy == 0 }

func (s *Server) Fields(c *wire.Codec) {
	c.String(1, &s.ID)
	c.Shared(2, &s.Group)
	c.Shared(3, &s.Instance)
	c.String(4, &s.Connection)
	c.String(5, &s.Data)
	c.Bool(6, &s.Utilized)
	wire.Int(c, 7, &s.Registered)
	wire.Int(c, 8, &s.Claimed)
	wire.Int(c, 9, &s.Healthy)
	wire.Int(c, 10, &s.ClaimBy)
	wire.Int(c, 11, &s.HealthBy)
	c.Fixed64(12, (*uint64)(&s.Holder))
}

func serverPlace(s *Server) catalog.Place { return catalog.Place{Created: s.Registered, ID: s.ID} }
