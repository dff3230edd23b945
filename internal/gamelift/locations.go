package gamelift

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// CreateLocation makes a custom location.
func (s *Service) CreateLocation(ctx context.Context, in *gamelift.CreateLocationInput) (*gamelift.CreateLocationOutput, error) {
	caller := callerOf(ctx)
	cmd := hosting.CreateLocation{
		Name: *in.LocationName, Region: caller.Region, Account: caller.Account, Tags: tagsFromWire(in.Tags),
	}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.CreateLocationOutput{Location: new(locationToWire(&cmd.Location))}, err
}

// DeleteLocation removes a custom location that no fleet uses.
func (s *Service) DeleteLocation(ctx context.Context, in *gamelift.DeleteLocationInput) (*gamelift.DeleteLocationOutput, error) {
	return &gamelift.DeleteLocationOutput{}, s.engine.Do(ctx, &hosting.DeleteLocation{Name: lastPart(*in.LocationName)})
}

// ListLocations lists the custom locations, which are the only ones.
func (s *Service) ListLocations(ctx context.Context, in *gamelift.ListLocationsInput) (*gamelift.ListLocationsOutput, error) {
	after, err := pageCursor("ListLocations", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &gamelift.ListLocationsOutput{Locations: []types.LocationModel{}}
	if len(in.Filters) > 0 && !slices.Contains(in.Filters, types.LocationFilterCustom) {
		return out, nil
	}
	size := pageSize(in.Limit, locationPageMax)
	page, err := read(ctx, s, func(v *cell.View) ([]fleet.Location, error) { return v.Locations(after, size+1), nil })
	page, out.NextToken = cutPage("ListLocations", in, page, size, func(l *fleet.Location) string { return l.Name })
	out.Locations = wires(page, locationToWire)
	return out, err
}

func locationToWire(l *fleet.Location) types.LocationModel {
	return types.LocationModel{LocationName: &l.Name, LocationArn: locationARN(l)}
}
