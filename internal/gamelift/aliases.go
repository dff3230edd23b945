package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// CreateAlias creates a name for a fleet, or one that only has a message.
func (s *Service) CreateAlias(ctx context.Context, in *gamelift.CreateAliasInput) (*gamelift.CreateAliasOutput, error) {
	route, err := routeFromWire(in.RoutingStrategy)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	cmd := hosting.CreateAlias{Alias: fleet.Alias{
		ID: s.resourceID("alias"), Region: caller.Region, Account: caller.Account, Name: *in.Name,
		Description: value(in.Description), Fleet: route.Fleet, Terminal: route.Terminal, Message: route.Message,
		Tags: tagsFromWire(in.Tags),
	}}
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.CreateAliasOutput{Alias: new(aliasToWire(&cmd.Alias))}, undeclared(err, domain.NotFound)
}

// DescribeAlias shows one alias.
func (s *Service) DescribeAlias(ctx context.Context, in *gamelift.DescribeAliasInput) (*gamelift.DescribeAliasOutput, error) {
	a, err := find(ctx, s, "alias", lastPart(*in.AliasId), (*cell.View).Alias)
	return &gamelift.DescribeAliasOutput{Alias: new(aliasToWire(&a))}, err
}

// ListAliases lists aliases in creation order: all, or those of a name or a kind.
func (s *Service) ListAliases(ctx context.Context, in *gamelift.ListAliasesInput) (*gamelift.ListAliasesOutput, error) {
	page, next, err := pageOf(ctx, s, "ListAliases", in, in.Limit, in.NextToken, func(v *cell.View, after place, limit int) []fleet.Alias {
		return v.Aliases(after.catalog(), limit, func(a *fleet.Alias) bool {
			return (in.Name == nil || a.Name == *in.Name) &&
				(in.RoutingStrategyType == "" || a.Terminal == (in.RoutingStrategyType == types.RoutingStrategyTypeTerminal))
		})
	}, func(x *fleet.Alias) place { return place{int64(x.Created), x.ID} })
	return &gamelift.ListAliasesOutput{Aliases: wires(page, aliasToWire), NextToken: next}, err
}

// ResolveAlias returns the fleet of an alias.
func (s *Service) ResolveAlias(ctx context.Context, in *gamelift.ResolveAliasInput) (*gamelift.ResolveAliasOutput, error) {
	id, err := s.resolveAlias(ctx, lastPart(*in.AliasId))
	if err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, id)
	return &gamelift.ResolveAliasOutput{FleetId: &f.ID, FleetArn: fleetARN(&f)}, err
}

func (s *Service) resolveAlias(ctx context.Context, id string) (fleetID string, err error) {
	return read(ctx, s, func(v *cell.View) (string, error) { return v.ResolveAlias(id) })
}

// UpdateAlias changes the given members and keeps the others; a routing strategy is replaced as a whole.
func (s *Service) UpdateAlias(ctx context.Context, in *gamelift.UpdateAliasInput) (*gamelift.UpdateAliasOutput, error) {
	cmd := hosting.UpdateAlias{ID: lastPart(*in.AliasId), Name: in.Name, Description: in.Description}
	if in.RoutingStrategy != nil {
		route, err := routeFromWire(in.RoutingStrategy)
		if err != nil {
			return nil, err
		}
		cmd.Route = &route
	}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateAliasOutput{Alias: new(aliasToWire(&cmd.Alias))}, err
}

// DeleteAlias removes an alias; its fleet stays.
func (s *Service) DeleteAlias(ctx context.Context, in *gamelift.DeleteAliasInput) (*gamelift.DeleteAliasOutput, error) {
	return &gamelift.DeleteAliasOutput{}, s.engine.Do(ctx, &hosting.DeleteAlias{ID: lastPart(*in.AliasId)})
}

// routeFromWire reads a routing strategy. It refuses members that the type does not use: to keep them would suggest an effect.
func routeFromWire(r *types.RoutingStrategy) (hosting.Route, error) {
	switch r.Type {
	case types.RoutingStrategyTypeSimple:
		switch {
		case r.FleetId == nil:
			return hosting.Route{}, invalid("RoutingStrategy.FleetId: required with the type SIMPLE")
		case r.Message != nil:
			return hosting.Route{}, invalid("RoutingStrategy.Message: only an alias of the type TERMINAL has one")
		}
		return hosting.Route{Fleet: lastPart(*r.FleetId)}, nil
	case types.RoutingStrategyTypeTerminal:
		switch {
		case r.Message == nil:
			return hosting.Route{}, invalid("RoutingStrategy.Message: required with the type TERMINAL")
		case r.FleetId != nil:
			return hosting.Route{}, invalid("RoutingStrategy.FleetId: only an alias of the type SIMPLE has one")
		}
		return hosting.Route{Terminal: true, Message: *r.Message}, nil
	default:
		return hosting.Route{}, invalid("RoutingStrategy.Type: required; want SIMPLE or TERMINAL")
	}
}

func aliasToWire(a *fleet.Alias) types.Alias {
	created, updated := a.Created.Std(), a.Updated.Std()
	strategy := &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: &a.Fleet}
	if a.Terminal {
		strategy = &types.RoutingStrategy{Type: types.RoutingStrategyTypeTerminal, Message: &a.Message}
	}
	return types.Alias{
		AliasId: &a.ID, AliasArn: makeARN(a.Region, a.Account, "alias/", a.ID), Name: &a.Name, Description: text(a.Description),
		RoutingStrategy: strategy, CreationTime: &created, LastUpdatedTime: &updated,
	}
}

// catalog returns the place in a listing of the core.
func (p place) catalog() catalog.Place {
	return catalog.Place{Created: domain.Time(p.created), ID: p.id}
}
