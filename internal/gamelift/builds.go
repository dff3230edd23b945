package gamelift

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// sdkDefault is the assumed server SDK of a build that names none. Source: the API reference.
const sdkDefault = "4.0.2"

// CreateBuild records the location of a game server's files. The build is READY at once: the service reads no file. Without a StorageLocation
// it is refused: there is no store to upload to, and `aws gamelift upload-build` would leave a build that never becomes READY.
func (s *Service) CreateBuild(ctx context.Context, in *gamelift.CreateBuildInput) (*gamelift.CreateBuildOutput, error) {
	if in.OperatingSystem == "" {
		return nil, invalid("OperatingSystem: required")
	}
	l := in.StorageLocation
	if l == nil {
		return nil, invalid("StorageLocation: required, " + noBuildStore)
	}
	if value(l.Bucket) == "" || value(l.Key) == "" {
		return nil, invalid("StorageLocation: Bucket and Key are required")
	}
	caller := callerOf(ctx)
	b := fleet.Build{
		ID: "build-" + newID().String(), Region: caller.Region, Account: caller.Account, Name: value(in.Name), Version: value(in.Version),
		OperatingSystem: string(in.OperatingSystem), SDK: *cmp.Or(in.ServerSdkVersion, text(sdkDefault)), Tags: tagsFromWire(in.Tags),
		Storage: fleet.Storage{Bucket: value(l.Bucket), Key: value(l.Key), Version: value(l.ObjectVersion), Role: value(l.RoleArn)},
	}
	cmd := hosting.CreateBuild{Build: b}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.CreateBuildOutput{Build: new(buildToWire(&cmd.Build)), StorageLocation: in.StorageLocation}, err
}

// DescribeBuild shows one build.
func (s *Service) DescribeBuild(ctx context.Context, in *gamelift.DescribeBuildInput) (*gamelift.DescribeBuildOutput, error) {
	b, err := s.build(ctx, *in.BuildId)
	return &gamelift.DescribeBuildOutput{Build: new(buildToWire(&b))}, err
}

func (s *Service) build(ctx context.Context, idOrARN string) (fleet.Build, error) {
	return find(ctx, s, "build", lastPart(idOrARN), (*cell.View).Build)
}

// ListBuilds lists builds in creation order: all, or those of a status.
func (s *Service) ListBuilds(ctx context.Context, in *gamelift.ListBuildsInput) (*gamelift.ListBuildsOutput, error) {
	page, next, err := pageOf(ctx, s, "ListBuilds", in, in.Limit, in.NextToken, func(v *cell.View, after place, limit int) []fleet.Build {
		return v.Builds(after.catalog(), limit, func(b *fleet.Build) bool {
			return in.Status == "" || buildStatus(b) == in.Status
		})
	}, func(x *fleet.Build) place { return place{int64(x.Created), x.ID} })
	return &gamelift.ListBuildsOutput{Builds: wires(page, buildToWire), NextToken: next}, err
}

// UpdateBuild changes a build's name and version.
func (s *Service) UpdateBuild(ctx context.Context, in *gamelift.UpdateBuildInput) (*gamelift.UpdateBuildOutput, error) {
	cmd := hosting.UpdateBuild{ID: lastPart(*in.BuildId), Name: in.Name, Version: in.Version}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateBuildOutput{Build: new(buildToWire(&cmd.Build))}, err
}

// DeleteBuild forgets a build; its files stay where they are.
func (s *Service) DeleteBuild(ctx context.Context, in *gamelift.DeleteBuildInput) (*gamelift.DeleteBuildOutput, error) {
	return &gamelift.DeleteBuildOutput{}, s.engine.Do(ctx, &hosting.DeleteBuild{ID: lastPart(*in.BuildId)})
}

const noBuildStore = "this installation has no store for builds: put the files into one of yours and name it as the StorageLocation of a new build"

// RequestUploadCredentials refuses: the service has no store for uploads.
func (s *Service) RequestUploadCredentials(ctx context.Context, in *gamelift.RequestUploadCredentialsInput) (*gamelift.RequestUploadCredentialsOutput, error) {
	if _, err := s.build(ctx, *in.BuildId); err != nil {
		return nil, err
	}
	return nil, invalid(noBuildStore)
}

func buildToWire(b *fleet.Build) types.Build {
	created, size := b.Created.Std(), int64(0)
	wire := types.Build{
		BuildId: &b.ID, BuildArn: makeARN(b.Region, b.Account, "build/"+b.ID), Name: text(b.Name), Version: text(b.Version),
		OperatingSystem: types.OperatingSystem(b.OperatingSystem), ServerSdkVersion: &b.SDK, Status: buildStatus(b), CreationTime: &created,
	}
	if !b.Ready() {
		wire.SizeOnDisk = &size // unknown for a READY build
	}
	return wire
}

func buildStatus(b *fleet.Build) types.BuildStatus {
	if b.Ready() {
		return types.BuildStatusReady
	}
	return types.BuildStatusInitialized
}
