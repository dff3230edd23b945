package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// ResourceKind is a kind of resource that can have tags.
type ResourceKind uint8

// The kinds of resources.
const (
	FleetResource ResourceKind = iota + 1
	LocationResource
	AliasResource
	GameServerGroupResource
	BuildResource
	QueueResource
	RuleSetResource
	ConfigurationResource // of matchmaking
	ComputeResource       // ID: "<fleet id>/<name>", or the name alone if only one fleet has a compute of that name
)

// Resource names a resource that can have tags.
type Resource struct {
	Kind ResourceKind
	ID   string // or the name, for resources without an id
}

// TagResource adds or overwrites tags of a resource; Untag removes keys.
type TagResource struct {
	Resource Resource
	Tags     []keyvalue.Pair
	Untag    []string
}

func (cmd *TagResource) Decide(t *kernel.Tx) error {
	h := kernel.Of[*hosting.Tx](t)
	x, err := tagged(cmd.Resource, h.State, kernel.Of[*gameservers.Tx](t).State, kernel.Of[*matchmaking.Tx](t).State)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(x.Tags), func(tag keyvalue.Pair) bool { return slices.Contains(cmd.Untag, tag.Key) })
	tags, err := h.Tagged(x.Own, left, cmd.Tags)
	if err != nil {
		return err
	}
	t.Emit(x.Store(tags))
	return nil
}

func tagged(of Resource, h *hosting.State, g *gameservers.State, m *matchmaking.State) (kernel.Tagged, error) {
	switch of.Kind {
	case FleetResource:
		return h.FleetTags(of.ID)
	case LocationResource:
		return h.LocationTags(of.ID)
	case AliasResource:
		return h.AliasTags(of.ID)
	case BuildResource:
		return h.BuildTags(of.ID)
	case QueueResource:
		return h.QueueTags(of.ID)
	case ComputeResource:
		return h.ComputeTags(of.ID)
	case GameServerGroupResource:
		return g.GroupTags(of.ID)
	case RuleSetResource:
		return m.RuleSetTags(of.ID)
	case ConfigurationResource:
		return m.ConfigurationTags(of.ID)
	}
	return kernel.Tagged{}, domain.Refuse(domain.NotFound, "resource %s not found", of.ID)
}

func (v *View) Tags(of Resource) ([]keyvalue.Pair, error) {
	v.own.SawAll()
	x, err := tagged(of, v.c.hosting.State, v.c.gameservers.State, v.c.matchmaking.State)
	return x.Tags, err
}
