package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// computeActive is the status of every registered compute. Its spelling differs from the enum's; see B017.
const computeActive = types.ComputeStatus("Active")

// RegisterCompute adds a host to a fleet, or refreshes the address of one.
func (s *Service) RegisterCompute(ctx context.Context, in *gamelift.RegisterComputeInput) (*gamelift.RegisterComputeOutput, error) {
	cmd := hosting.RegisterCompute{Compute: fleet.Compute{
		FleetID: lastPart(*in.FleetId), Name: *in.ComputeName, Location: value(in.Location), IPAddress: value(in.IpAddress),
		DNSName: value(in.DnsName), CertificatePath: value(in.CertificatePath), Registration: domain.UUID(uuid.New()),
	}}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, undeclared(err, domain.NotFound) // B016
	}
	f, err := s.fleetByID(ctx, cmd.Compute.FleetID)
	if err != nil {
		return nil, undeclared(err, domain.NotFound)
	}
	return &gamelift.RegisterComputeOutput{Compute: new(s.computeToWire(&f, &cmd.Compute))}, nil
}

// DeregisterCompute removes a host with everything that runs on it.
func (s *Service) DeregisterCompute(ctx context.Context, in *gamelift.DeregisterComputeInput) (*gamelift.DeregisterComputeOutput, error) {
	return &gamelift.DeregisterComputeOutput{}, s.engine.Do(ctx, &hosting.DeregisterCompute{Fleet: lastPart(*in.FleetId), Name: computeName(*in.ComputeName)})
}

// DescribeCompute shows one host.
func (s *Service) DescribeCompute(ctx context.Context, in *gamelift.DescribeComputeInput) (*gamelift.DescribeComputeOutput, error) {
	fleetID, name := lastPart(*in.FleetId), computeName(*in.ComputeName)
	var f fleet.Fleet
	var x fleet.Compute
	err := s.engine.Read(ctx, func(v *cell.View) error {
		var ok bool
		if f, ok = v.Fleet(fleetID); !ok {
			return fleetNotFound(fleetID)
		}
		if x, ok = v.Compute(fleetID, name); !ok {
			return domain.Refuse(domain.NotFound, "compute %s not found in fleet %s", name, fleetID)
		}
		return nil
	})
	return &gamelift.DescribeComputeOutput{Compute: new(s.computeToWire(&f, &x))}, err
}

// ListCompute lists the hosts of a fleet in creation order.
func (s *Service) ListCompute(ctx context.Context, in *gamelift.ListComputeInput) (*gamelift.ListComputeOutput, error) {
	after, err := pagePlace("ListCompute", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, lastPart(*in.FleetId))
	if err != nil {
		return nil, undeclared(err, domain.NotFound) // B016
	}
	out := &gamelift.ListComputeOutput{ComputeList: []types.Compute{}}
	if in.ContainerGroupDefinitionName != nil || in.ComputeStatus == types.ListComputeInputStatusImpaired {
		return out, nil // no compute of an ANYWHERE fleet is in a container group or impaired
	}
	size := pageSize(in.Limit, pageMax)
	page, err := read(ctx, s, func(v *cell.View) ([]fleet.Compute, error) {
		return v.Computes(f.ID, value(in.Location), domain.Time(after.created), after.id, size+1), nil
	})
	page, out.NextToken = cutPage("ListCompute", in, page, size, func(x *fleet.Compute) string { return place{int64(x.Created), x.Name}.String() })
	out.ComputeList = wires(page, func(x *fleet.Compute) types.Compute { return s.computeToWire(&f, x) })
	return out, err
}

// GetComputeAuthToken returns the token with which the server processes of a compute connect. It returns the same token
// while enough of its life is left.
func (s *Service) GetComputeAuthToken(ctx context.Context, in *gamelift.GetComputeAuthTokenInput) (*gamelift.GetComputeAuthTokenOutput, error) {
	cmd := hosting.IssueToken{Fleet: lastPart(*in.FleetId), Compute: computeName(*in.ComputeName)}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, cmd.Fleet)
	if err != nil {
		return nil, err
	}
	token, expires := s.secret.ProcessToken(cmd.Fleet, cmd.Compute, cmd.Registered.Registration, cmd.Generation), cmd.Expires.Std()
	return &gamelift.GetComputeAuthTokenOutput{
		FleetId: &f.ID, FleetArn: fleetARN(&f), ComputeName: &cmd.Compute, ComputeArn: computeARN(&f, cmd.Compute),
		AuthToken: &token, ExpirationTimestamp: &expires,
	}, nil
}

func (s *Service) computeToWire(f *fleet.Fleet, x *fleet.Compute) types.Compute {
	created := x.Created.Std()
	return types.Compute{
		FleetId: &f.ID, FleetArn: fleetARN(f), ComputeName: &x.Name, ComputeArn: computeARN(f, x.Name),
		IpAddress: text(x.IPAddress), DnsName: text(x.DNSName), ComputeStatus: computeActive, Location: &x.Location,
		CreationTime: &created, GameLiftServiceSdkEndpoint: &s.serverEndpoint, GameLiftAgentEndpoint: &s.agentEndpoint,
	}
}
