package gamelift

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

// sdkDefault is the server SDK assumed for a build that names none. Source: the API reference.
const sdkDefault = "4.0.2"

// Uploads accepts the files of builds.
type Uploads interface {
	// Place returns where to upload the files of a build.
	Place(build string) (bucket, key string)
	// Key returns temporary credentials for that place only.
	Key(build string) identity.UploadKey
}

// CreateBuild creates a build. With a StorageLocation it is READY at once, because the service does not read an operator's store. Otherwise the
// client uploads the files to the service's own store with the credentials in the answer, and the build becomes READY once they have been checked.
func (s *Service) CreateBuild(ctx context.Context, in *gamelift.CreateBuildInput) (*gamelift.CreateBuildOutput, error) {
	if in.OperatingSystem == "" {
		return nil, invalid("OperatingSystem: required")
	}
	l := value(in.StorageLocation)
	switch {
	case in.StorageLocation == nil && s.Uploads == nil:
		return nil, invalid("StorageLocation: required, " + noBuildStore)
	case in.StorageLocation != nil && (value(l.Bucket) == "" || value(l.Key) == ""):
		return nil, invalid("StorageLocation: Bucket and Key are required")
	}
	caller := callerOf(ctx)
	b := fleet.Build{
		ID: s.resourceID("build"), Region: caller.Region, Account: caller.Account, Name: value(in.Name), Version: value(in.Version),
		OperatingSystem: string(in.OperatingSystem), SDK: *cmp.Or(in.ServerSdkVersion, text(sdkDefault)), Tags: tagsFromWire(in.Tags),
		Storage: fleet.Storage{Bucket: value(l.Bucket), Key: value(l.Key), Version: value(l.ObjectVersion), Role: value(l.RoleArn)},
	}
	cmd := hosting.CreateBuild{Build: b}
	err := s.engine.Do(ctx, &cmd)
	out := &gamelift.CreateBuildOutput{Build: new(buildToWire(&cmd.Build)), StorageLocation: in.StorageLocation}
	if in.StorageLocation == nil {
		out.StorageLocation, out.UploadCredentials = uploadTo(s.Uploads, b.ID)
	}
	return out, err
}

// uploadTo returns the place and the credentials for uploading the files of a build.
func uploadTo(to Uploads, build string) (*types.S3Location, *types.AwsCredentials) {
	bucket, object := to.Place(build)
	key := to.Key(build)
	return &types.S3Location{Bucket: &bucket, Key: &object}, &types.AwsCredentials{AccessKeyId: &key.ID, SecretAccessKey: &key.Secret, SessionToken: &key.Token}
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

// DeleteBuild deletes a build. Its files are kept while a fleet runs it.
func (s *Service) DeleteBuild(ctx context.Context, in *gamelift.DeleteBuildInput) (*gamelift.DeleteBuildOutput, error) {
	return &gamelift.DeleteBuildOutput{}, s.engine.Do(ctx, &hosting.DeleteBuild{ID: lastPart(*in.BuildId)})
}

const noBuildStore = "this installation does not store the files of builds (--builds-max is 0): put them into your own store and name it as the StorageLocation of a new build"

// RequestUploadCredentials returns new credentials for a build whose files have not been uploaded.
func (s *Service) RequestUploadCredentials(ctx context.Context, in *gamelift.RequestUploadCredentialsInput) (*gamelift.RequestUploadCredentialsOutput, error) {
	b, err := s.build(ctx, *in.BuildId)
	switch {
	case err != nil:
		return nil, err
	case s.Uploads == nil:
		return nil, invalid(noBuildStore)
	case !b.Uploadable():
		return nil, invalid("BuildId: build %s is %s; its files cannot be uploaded again", b.ID, buildStatus(&b))
	}
	out := &gamelift.RequestUploadCredentialsOutput{}
	out.StorageLocation, out.UploadCredentials = uploadTo(s.Uploads, b.ID)
	return out, nil
}

func buildToWire(b *fleet.Build) types.Build {
	created := b.Created.Std()
	wire := types.Build{
		BuildId: &b.ID, BuildArn: makeARN(b.Region, b.Account, "build/", b.ID), Name: text(b.Name), Version: text(b.Version),
		OperatingSystem: types.OperatingSystem(b.OperatingSystem), ServerSdkVersion: &b.SDK, Status: buildStatus(b), CreationTime: &created,
	}
	if b.Storage == (fleet.Storage{}) {
		wire.SizeOnDisk = &b.Size // unknown for files in another store
	}
	return wire
}

func buildStatus(b *fleet.Build) types.BuildStatus {
	switch {
	case b.Ready():
		return types.BuildStatusReady
	case b.Failure != "":
		return types.BuildStatusFailed
	default:
		return types.BuildStatusInitialized
	}
}
