// Package permit asks policies about requests that name resources of the state. It finds the ARN and the tags of each as they are stored, whatever form a request names
// it in: an id, an ARN with another region, or an alias.
//
// Fleets have their computes, game sessions and player sessions in them: those have no resources of their own. A placement counts as its queue, and a ticket as
// its matchmaking configuration.
package permit

import (
	"context"
	"errors"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// Kind is a kind of resource.
type Kind uint8

// The kinds of resources, which are named by id or name.
const (
	Fleet Kind = iota + 1
	Alias
	AliasTarget // an alias that stands for the fleets that it routes to
	Build
	Location
	Queue
	Configuration
	RuleSet
	GameServerGroup
	AliasNamed // by its id, its ARN, or a name that no other one has
	Compute    // that is tagged: it counts as its fleet, with its own tags and those of the fleet
)

// Engine is what this package needs of the engine.
type Engine interface {
	Read(ctx context.Context, f func(v *cell.View) error) error
	ReadHere(ctx context.Context, f func(v *cell.View) error) error
	Placement(ctx context.Context, id string) (placement.Placement, error)
	Ticket(ctx context.Context, id string) (matchmaking.TicketView, error)
	PlayerSession(ctx context.Context, id domain.PlayerSessionID) (hosting.PlayerSession, error)
}

// Request is what a principal wants to do. Its methods do nothing for a principal without policies.
type Request struct {
	By     *identity.Principal
	Region string          // of ARNs of resources that do not exist
	Tags   []keyvalue.Pair // that the request gives to a resource
	Engine Engine

	named    []named
	requests []policy.Request
	settled  int  // of requests, before those that look adds
	missing  bool // look has not found one

	// Room for what most requests name.
	namedRoom    [2]named
	requestsRoom [2]policy.Request
}

type named struct {
	kind Kind
	id   string
}

// Name adds a resource by its id or name.
func (r *Request) Name(kind Kind, id string) {
	if !r.By.Restricted() {
		return
	}
	if r.named == nil {
		r.named = r.namedRoom[:0]
	}
	r.named = append(r.named, named{kind, id})
}

// Any adds no resource in particular, which "*" alone matches. It is also for what does not exist: only who may ask about everything learns so.
func (r *Request) Any() { r.add(policy.AnyResource, nil) }

// New adds a resource that the request makes, of a kind as in ARNs, under an id that is not known yet.
func (r *Request) New(kind string) { r.add(ARN(r.Region, r.By.Account, kind+"/*"), nil) }

// Placement adds the queue of a placement.
func (r *Request) Placement(ctx context.Context, id string) error {
	if !r.By.Restricted() {
		return nil
	}
	p, err := r.Engine.Placement(ctx, id)
	return r.found(Queue, p.Queue, err)
}

// Ticket adds the matchmaking configuration of a ticket.
func (r *Request) Ticket(ctx context.Context, id string) error {
	if !r.By.Restricted() {
		return nil
	}
	t, err := r.Engine.Ticket(ctx, id)
	return r.found(Configuration, t.Configuration, err)
}

// PlayerSession adds the fleet of a player session.
func (r *Request) PlayerSession(ctx context.Context, id string) error {
	if !r.By.Restricted() {
		return nil
	}
	parsed, err := domain.ParseID[domain.PlayerSessionID](id)
	if err != nil {
		r.Any()
		return nil
	}
	p, err := r.Engine.PlayerSession(ctx, parsed)
	return r.found(Fleet, p.FleetID, err)
}

func (r *Request) found(kind Kind, id string, err error) error {
	switch refusal, ok := errors.AsType[*domain.Refusal](err); {
	case ok && refusal.Reason == domain.NotFound:
		r.Any()
	case err != nil:
		return err
	default:
		r.Name(kind, id)
	}
	return nil
}

func (r *Request) add(arn string, tags []keyvalue.Pair) {
	if r.requests == nil {
		r.requests = r.requestsRoom[:0]
	}
	r.requests = append(r.requests, policy.Request{Resource: arn, ResourceTags: tags})
}

// ARN is an ARN of the service API.
func ARN(region, account, resource string) string {
	return "arn:aws:gamelift:" + region + ":" + account + ":" + resource
}

// May asks the policies of the principal about an action on all resources that were added; on none in particular, if none was. Its error is an *identity.Denied,
// or that of a look-up.
func (r *Request) May(ctx context.Context, action policy.Action) error {
	if !r.By.Restricted() {
		return nil
	}
	if len(r.named) > 0 {
		r.settled = len(r.requests)
		err := r.Engine.ReadHere(ctx, r.look)
		if err == nil && r.missing { // what another node has just made, this one may not have yet
			err = r.Engine.Read(ctx, r.look)
		}
		if err != nil {
			return err
		}
	}
	if len(r.requests) == 0 {
		r.Any()
	}
	for i := range r.requests {
		q := &r.requests[i]
		q.Action, q.RequestTags = action, r.Tags
		if err := r.By.MayDo(*q); err != nil {
			return err
		}
	}
	return nil
}

// look finds the resources with their tags. One that is not there has the ARN that the principal would give it.
func (r *Request) look(v *cell.View) error {
	r.requests, r.missing = r.requests[:r.settled], false
	for _, x := range r.named {
		r.find(v, x.kind, x.id)
	}
	return nil
}

func (r *Request) find(v *cell.View, kind Kind, id string) {
	region, account, prefix := r.Region, r.By.Account, ""
	var tags []keyvalue.Pair
	ok := false
	switch kind {
	case Fleet:
		var x fleet.Fleet
		if prefix = "fleet/"; id != "" {
			x, ok = v.Fleet(id)
		}
		if ok {
			region, account, tags = x.Region, x.Account, x.Tags
		}
	case Alias:
		prefix = "alias/"
		if x, found := v.Alias(id); found {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case AliasTarget:
		r.findTargets(v, id)
		return
	case AliasNamed:
		a, err := v.AliasNamed(id)
		if err != nil {
			r.missing = true
			r.Any()
			return
		}
		r.find(v, Alias, a.ID)
		return
	case Build:
		prefix = "build/"
		if x, found := v.Build(id); found {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case Location:
		prefix = "location/"
		if x, found := v.Location(id); found {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case Queue:
		prefix = "gamesessionqueue/"
		if x, found := v.Queue(id); found {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case Configuration:
		prefix = "matchmakingconfiguration/"
		if x, found := v.Configuration(id); found {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case RuleSet:
		prefix = "matchmakingruleset/"
		if x, found := v.RuleSet(id); found {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case GameServerGroup:
		prefix = "gameservergroup/"
		if x, err := v.GameServerGroup(id); err == nil {
			ok, region, account, tags = true, x.Region, x.Account, x.Tags
		}
	case Compute:
		r.findCompute(v, id)
		return
	}
	r.missing = r.missing || !ok
	r.add(ARN(region, account, prefix+id), tags)
}

// findTargets adds the fleets that an alias routes to: two while a rollout moves it. An alias without a fleet counts as itself.
func (r *Request) findTargets(v *cell.View, alias string) {
	a, ok := v.Alias(alias)
	if !ok || a.Terminal {
		r.find(v, Alias, alias)
		return
	}
	targets := []string{a.Fleet}
	for _, x := range v.Rollouts() {
		if x.Alias == a.ID && (x.Ended == 0 || x.Phase == fleet.RolloutReturning) {
			targets = append(targets, x.From, x.To)
		}
	}
	slices.Sort(targets)
	for _, id := range slices.Compact(targets) {
		r.find(v, Fleet, id)
	}
}

func (r *Request) findCompute(v *cell.View, id string) {
	x, err := v.ComputeNamed(id)
	if err != nil {
		r.missing = true
		r.Any()
		return
	}
	r.find(v, Fleet, x.FleetID)
	as := &r.requests[len(r.requests)-1]
	tags := slices.Clone(x.Tags)
	for _, t := range as.ResourceTags { // what a policy says of the fleet holds for its computes
		if !slices.ContainsFunc(tags, func(own keyvalue.Pair) bool { return own.Key == t.Key }) {
			tags = append(tags, t)
		}
	}
	as.ResourceTags = tags
}
