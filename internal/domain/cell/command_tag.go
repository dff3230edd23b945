package cell

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// ResourceKind is what can carry tags.
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
	ComputeResource       // ID: "<fleet id>/<name>", or the name alone where only one fleet has it
)

// Resource names something that can carry tags.
type Resource struct {
	Kind ResourceKind
	ID   string // or the name, where that is what names it
}

// TagResource adds tags to a resource, or overwrites them; Untag removes keys.
type TagResource struct {
	Resource Resource
	Tags     []fleet.Tag
	Untag    []string
}

func (cmd *TagResource) decide(t *tx) error {
	have, store, err := t.c.taggable(cmd.Resource)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(have), func(x fleet.Tag) bool { return slices.Contains(cmd.Untag, x.Key) })
	tags, err := t.tagged(cmd.Resource.Kind, left, cmd.Tags)
	if err != nil {
		return err
	}
	t.emit(store(tags))
	return nil
}

// taggable finds the tags of a resource, and the event that stores others.
func (c *Cell) taggable(of Resource) (tags []fleet.Tag, store func([]fleet.Tag) Event, err error) {
	switch of.Kind {
	case FleetResource:
		if r, ok := c.fleets.Fleet(of.ID); ok {
			f := *c.fleets.Fleets.Get(r)
			return f.Tags, func(tags []fleet.Tag) Event { f.Tags = tags; return &FleetChanged{f} }, nil
		}
		return nil, nil, domain.Refuse(domain.NotFound, "fleet %s not found", of.ID)
	case LocationResource:
		if r, ok := c.fleets.Location(of.ID); ok {
			l := *c.fleets.Locations.Get(r)
			return l.Tags, func(tags []fleet.Tag) Event { l.Tags = tags; return &LocationChanged{l} }, nil
		}
		return nil, nil, domain.Refuse(domain.NotFound, "location %s not found", of.ID)
	case QueueResource:
		if r, ok := c.placements.Queue(of.ID); ok {
			q := *c.placements.Queues.Get(r)
			return q.Tags, func(tags []fleet.Tag) Event { q.Tags = tags; return &QueueChanged{q} }, nil
		}
		return nil, nil, domain.Refuse(domain.NotFound, "queue %s not found", of.ID)
	case ComputeResource:
		r, err := c.computeNamed(of.ID)
		if err != nil {
			return nil, nil, err
		}
		x := *c.fleets.Computes.Get(r)
		return x.Tags, func(tags []fleet.Tag) Event { x.Tags = tags; return &ComputeRegistered{x} }, nil
	case RuleSetResource:
		if r, ok := c.matchmaking.RuleSet(of.ID); ok {
			x := *c.matchmaking.RuleSets.Get(r)
			return x.Tags, func(tags []fleet.Tag) Event { x.Tags = tags; return &RuleSetChanged{x} }, nil
		}
		return nil, nil, domain.Refuse(domain.NotFound, "rule set %s not found", of.ID)
	case ConfigurationResource:
		if now, ok := c.matchmaking.Configuration(of.ID); ok {
			x := *now
			return x.Tags, func(tags []fleet.Tag) Event { x.Tags = tags; return &ConfigurationChanged{x} }, nil
		}
		return nil, nil, domain.Refuse(domain.NotFound, "matchmaking configuration %s not found", of.ID)
	case AliasResource:
		a, err := c.aliasByID(of.ID)
		if err != nil {
			return nil, nil, err
		}
		alias := *a
		return alias.Tags, func(tags []fleet.Tag) Event { alias.Tags = tags; return &AliasChanged{alias} }, nil
	case BuildResource:
		found, err := c.buildByID(of.ID)
		if err != nil {
			return nil, nil, err
		}
		b := *found
		return b.Tags, func(tags []fleet.Tag) Event { b.Tags = tags; return &BuildChanged{b} }, nil
	case GameServerGroupResource:
		found, err := c.groupByName(of.ID)
		if err != nil {
			return nil, nil, err
		}
		g := *found
		return g.Tags, func(tags []fleet.Tag) Event { g.Tags = tags; return &GameServerGroupChanged{g} }, nil
	}
	return nil, nil, domain.Refuse(domain.NotFound, "resource %s not found", of.ID)
}

// computeNamed finds a compute by "<fleet id>/<name>", or by a name that only one fleet has: the ARN of a compute, as the
// API makes it, does not tell the fleet.
func (c *Cell) computeNamed(id string) (found fleet.Ref, err error) {
	if f, name, ok := strings.Cut(id, "/"); ok {
		if r, ok := c.fleets.Compute(f, name); ok {
			return r, nil
		}
	}
	in := ""
	for _, f := range c.fleets.Fleets.All() {
		r, ok := c.fleets.Compute(f.ID, id)
		switch {
		case ok && found != 0:
			return 0, domain.Refuse(domain.Invalid, "compute %s is registered in fleets %s and %s; name it as compute/<fleet id>/%s", id, in, f.ID, id)
		case ok:
			found, in = r, f.ID
		}
	}
	if found == 0 {
		return 0, domain.Refuse(domain.NotFound, "compute %s not found", id)
	}
	return found, nil
}

// ownTags are the tags that the service itself acts on, and their values.
var ownTags = map[ResourceKind]map[string][]string{
	FleetResource:   {fleet.PackingTag: {fleet.Pack, fleet.Spread}},
	ComputeResource: {fleet.DrainTag: {"true", "false"}},
	ConfigurationResource: {
		matchmaking.PlacementTimeoutTag: {matchmaking.Requeue, matchmaking.Fail}, matchmaking.PlacementFailureTag: {matchmaking.Fail, matchmaking.Requeue},
		matchmaking.BackfillLeaversTag: {"true", "false"}, matchmaking.SilentCancelTag: {"true", "false"},
	},
}

// checkOwnTags refuses a tag of the service's own name space that it would not act on: a misspelt one would do nothing, and
// nobody would notice.
func checkOwnTags(kind ResourceKind, tags []fleet.Tag) error {
	for i, tag := range tags {
		if !strings.HasPrefix(tag.Key, "muster:") {
			continue
		}
		values, ok := ownTags[kind][tag.Key]
		switch {
		case !ok:
			return domain.Refuse(domain.Invalid, "Tags[%d].Key: %q means nothing to Muster here; keys that begin with \"muster:\" are its own", i, tag.Key)
		case !slices.Contains(values, tag.Value):
			return domain.Refuse(domain.Invalid, "Tags[%d].Value: %q of %s is not one of %s", i, tag.Value, tag.Key, strings.Join(values, ", "))
		}
	}
	return nil
}

// Tags returns the tags of a resource, or refuses.
func (v *View) Tags(of Resource) ([]fleet.Tag, error) {
	v.sawAll()
	tags, _, err := v.c.taggable(of)
	return tags, err
}

// tagged returns have with the tags of add, sorted by key, for a resource of a kind.
func (t *tx) tagged(kind ResourceKind, have, add []fleet.Tag) ([]fleet.Tag, error) {
	if err := checkOwnTags(kind, add); err != nil {
		return nil, err
	}
	all := slices.Clone(have)
	for i, tag := range add {
		if slices.ContainsFunc(add[:i], func(x fleet.Tag) bool { return x.Key == tag.Key }) {
			return nil, domain.Refuse(domain.Invalid, "Tags[%d].Key: %q is given twice", i, tag.Key)
		}
		if at := slices.IndexFunc(all, func(x fleet.Tag) bool { return x.Key == tag.Key }); at >= 0 {
			all[at] = tag
		} else {
			all = append(all, tag)
		}
	}
	if len(all) > t.c.config.TagsMax {
		return nil, domain.Refuse(domain.Invalid, "Tags: the resource would have %d tags; the limit is %d", len(all), t.c.config.TagsMax)
	}
	slices.SortFunc(all, func(a, b fleet.Tag) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}
