package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// CreateFleetLocations adds custom locations to a fleet; see B018.
func (s *Service) CreateFleetLocations(ctx context.Context, in *gamelift.CreateFleetLocationsInput) (*gamelift.CreateFleetLocationsOutput, error) {
	cmd := hosting.AddFleetLocations{ID: lastPart(*in.FleetId), Locations: locationNames(in.Locations)}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.CreateFleetLocationsOutput{
		FleetId: &cmd.Fleet.ID, FleetArn: fleetARN(&cmd.Fleet),
		LocationStates: namedLocationStates(&cmd.Fleet, cmd.Locations),
	}, err
}

// DeleteFleetLocations starts to remove locations from a fleet with everything that runs there.
func (s *Service) DeleteFleetLocations(ctx context.Context, in *gamelift.DeleteFleetLocationsInput) (*gamelift.DeleteFleetLocationsOutput, error) {
	cmd := hosting.RemoveFleetLocations{ID: lastPart(*in.FleetId), Locations: in.Locations}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.DeleteFleetLocationsOutput{
		FleetId: &cmd.Fleet.ID, FleetArn: fleetARN(&cmd.Fleet),
		LocationStates: namedLocationStates(&cmd.Fleet, cmd.Locations),
	}, undeclared(err, domain.WrongFleetStatus)
}

// DescribeFleetLocationAttributes shows all locations of a fleet in one page, because a fleet has few.
func (s *Service) DescribeFleetLocationAttributes(ctx context.Context, in *gamelift.DescribeFleetLocationAttributesInput) (*gamelift.DescribeFleetLocationAttributesOutput, error) {
	if _, err := pageCursor("DescribeFleetLocationAttributes", in, in.NextToken); err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, lastPart(*in.FleetId))
	if err != nil {
		return nil, err
	}
	wanted := in.Locations
	if len(wanted) == 0 {
		for _, l := range f.Locations {
			wanted = append(wanted, l.Name)
		}
	}
	out := &gamelift.DescribeFleetLocationAttributesOutput{FleetId: &f.ID, FleetArn: fleetARN(&f), LocationAttributes: []types.LocationAttributes{}}
	for _, name := range wanted {
		if _, ok := f.HasLocation(name); !ok {
			return nil, locationNotFound(&f, name)
		}
		state := namedLocationStates(&f, []string{name})[0]
		out.LocationAttributes = append(out.LocationAttributes, types.LocationAttributes{
			LocationState: &state, StoppedActions: stoppedActions(&f, name), // without UpdateStatus, because changes take effect at once
		})
	}
	return out, nil
}

func locationNotFound(f *fleet.Fleet, name string) error {
	return domain.Refuse(domain.NotFound, "fleet %s has no location %s", f.ID, name)
}

func locationNames(configurations []types.LocationConfiguration) []string {
	var names []string
	for _, c := range configurations {
		names = append(names, value(c.Location))
	}
	return names
}

func locationStates(locations []fleet.FleetLocation) []types.LocationState {
	states := make([]types.LocationState, len(locations))
	for i, l := range locations {
		states[i] = types.LocationState{Location: &l.Name, Status: fleetStatus(l.Status)}
	}
	return states
}

// namedLocationStates returns the states of the locations that a request names.
func namedLocationStates(f *fleet.Fleet, names []string) []types.LocationState {
	named := make([]fleet.FleetLocation, len(names))
	for i, name := range names {
		status, _ := f.HasLocation(name)
		named[i] = fleet.FleetLocation{Name: name, Status: status}
	}
	return locationStates(named)
}
