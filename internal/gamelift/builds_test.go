package gamelift

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

func TestBuilds(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	stored := &types.S3Location{Bucket: aws.String("builds"), Key: aws.String("arena.zip"), RoleArn: aws.String("arn:aws:iam::123456789012:role/r")}
	ready := must(h.sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{
		Name: aws.String("arena"), Version: aws.String("1"), OperatingSystem: types.OperatingSystemAmazonLinux2023, StorageLocation: stored,
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}},
	}))(t)
	if b := ready.Build; b.Status != types.BuildStatusReady || *b.ServerSdkVersion != sdkDefault || ready.UploadCredentials != nil || *ready.StorageLocation.Key != "arena.zip" {
		t.Errorf("got %s", rewritten(t, ready))
	}
	h.later(time.Millisecond)
	_, err := h.sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemWindows2022}) // as upload-build does
	refused(t, err, codeInvalidRequest)
	empty := fleet.Build{ID: "build-of-an-older-version", OperatingSystem: "WINDOWS_2022", SDK: "5.5.0"}
	if err := h.engine.Do(ctx, &hosting.CreateBuild{Build: empty}); err != nil {
		t.Fatal(err)
	}
	if b := must(h.sdk.DescribeBuild(ctx, &gamelift.DescribeBuildInput{BuildId: &empty.ID}))(t).Build; b.Status != types.BuildStatusInitialized || *b.SizeOnDisk != 0 {
		t.Errorf("got %s", rewritten(t, b))
	}
	must(h.sdk.UpdateBuild(ctx, &gamelift.UpdateBuildInput{BuildId: ready.Build.BuildArn, Version: aws.String("2")}))(t)
	if b := must(h.sdk.DescribeBuild(ctx, &gamelift.DescribeBuildInput{BuildId: ready.Build.BuildId}))(t).Build; *b.Version != "2" || *b.Name != "arena" {
		t.Errorf("after the update: %s", rewritten(t, b))
	}
	for status, want := range map[types.BuildStatus]int{"": 2, types.BuildStatusReady: 1, types.BuildStatusInitialized: 1, types.BuildStatusFailed: 0} {
		n := 0
		for pages := gamelift.NewListBuildsPaginator(h.sdk, &gamelift.ListBuildsInput{Status: status, Limit: aws.Int32(1)}); pages.HasMorePages(); {
			n += len(must(pages.NextPage(ctx))(t).Builds)
		}
		if n != want {
			t.Errorf("status %q: %d builds, want %d", status, n, want)
		}
	}
	if tags := must(h.sdk.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: ready.Build.BuildArn}))(t).Tags; len(tags) != 1 {
		t.Errorf("tags: %s", rewritten(t, tags))
	}
	_, err = h.sdk.RequestUploadCredentials(ctx, &gamelift.RequestUploadCredentialsInput{BuildId: &empty.ID})
	refused(t, err, codeInvalidRequest) // without a store
	must(h.sdk.DeleteBuild(ctx, &gamelift.DeleteBuildInput{BuildId: ready.Build.BuildId}))(t)
	for _, call := range []func() error{
		func() error {
			_, err := h.sdk.DescribeBuild(ctx, &gamelift.DescribeBuildInput{BuildId: ready.Build.BuildId})
			return err
		},
		func() error {
			_, err := h.sdk.UpdateBuild(ctx, &gamelift.UpdateBuildInput{BuildId: ready.Build.BuildId})
			return err
		},
		func() error {
			_, err := h.sdk.DeleteBuild(ctx, &gamelift.DeleteBuildInput{BuildId: ready.Build.BuildId})
			return err
		},
	} {
		refused(t, call(), "NotFoundException")
	}
	_, err = h.sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{Name: aws.String("no system")})
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemWindows2022, StorageLocation: &types.S3Location{Bucket: aws.String("b")}})
	refused(t, err, codeInvalidRequest)
}

// uploads is a store that only names its places.
type uploads struct{}

func (uploads) Place(build string) (bucket, key string) { return "bucket", build + ".zip" }
func (uploads) Key(build string) identity.UploadKey {
	return identity.CellSecret{}.UploadKey(build, time.Unix(1e9, 0))
}

func TestBuildsInTheServicesStore(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	h.service.Uploads = uploads{}
	created := must(h.sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{Name: aws.String("arena"), OperatingSystem: types.OperatingSystemAmazonLinux2023}))(t)
	id := created.Build.BuildId
	if b := created.Build; b.Status != types.BuildStatusInitialized || *b.SizeOnDisk != 0 || *created.StorageLocation.Key != *id+".zip" || *created.UploadCredentials.SessionToken == "" {
		t.Errorf("got %s", rewritten(t, created))
	}
	again := must(h.sdk.RequestUploadCredentials(ctx, &gamelift.RequestUploadCredentialsInput{BuildId: created.Build.BuildArn}))(t)
	if *again.StorageLocation.Bucket != "bucket" || *again.UploadCredentials.AccessKeyId != *created.UploadCredentials.AccessKeyId {
		t.Errorf("got %s", rewritten(t, again))
	}
	// The credentials of an upload are no access key.
	c := created.UploadCredentials
	stranger := sdkClient(h.json.url, identity.AccessKey{ID: *c.AccessKeyId, Secret: *c.SecretAccessKey})
	_, err := stranger.ListBuilds(ctx, &gamelift.ListBuildsInput{})
	refused(t, err, "UnrecognizedClientException")
	managed := func() error {
		_, err := h.sdk.CreateFleet(ctx, &gamelift.CreateFleetInput{
			Name: aws.String("arena"), BuildId: id, EC2InstanceType: types.EC2InstanceTypeC5Large,
			RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: []types.ServerProcess{{LaunchPath: aws.String("/local/game/server"), ConcurrentExecutions: aws.Int32(1)}}},
		})
		return err
	}
	if err := managed(); err == nil {
		t.Error("a fleet runs a build without files")
	}
	manifest := strings.Repeat("ab", 32)
	h.do(&hosting.FinishBuild{ID: *id, Manifest: manifest, Size: 7})
	h.do(&hosting.FinishBuild{ID: *id, Manifest: manifest, Size: 7})
	if err := h.engine.Do(ctx, &hosting.FinishBuild{ID: *id, Failure: "too late"}); err == nil {
		t.Error("a READY build fails")
	}
	if b := must(h.sdk.DescribeBuild(ctx, &gamelift.DescribeBuildInput{BuildId: id}))(t).Build; b.Status != types.BuildStatusReady || *b.SizeOnDisk != 7 {
		t.Errorf("got %s", rewritten(t, b))
	}
	_, err = h.sdk.RequestUploadCredentials(ctx, &gamelift.RequestUploadCredentialsInput{BuildId: id})
	refused(t, err, codeInvalidRequest)
	if err := managed(); err != nil {
		t.Fatal(err)
	}
	must(h.sdk.DeleteBuild(ctx, &gamelift.DeleteBuildInput{BuildId: id}))(t)
	var left []string
	if err := h.engine.Read(ctx, func(v *cell.View) error { left = v.Manifests(); return nil }); err != nil || !slices.Equal(left, []string{manifest}) {
		t.Errorf("files that are needed: %q, %v", left, err)
	}
	failed := must(h.sdk.CreateBuild(ctx, &gamelift.CreateBuildInput{OperatingSystem: types.OperatingSystemAmazonLinux2023}))(t).Build.BuildId
	h.do(&hosting.FinishBuild{ID: *failed, Failure: "no zip"})
	if got := must(h.sdk.ListBuilds(ctx, &gamelift.ListBuildsInput{Status: types.BuildStatusFailed}))(t).Builds; len(got) != 1 || *got[0].BuildId != *failed {
		t.Errorf("got %s", rewritten(t, got))
	}
}

func TestPlayerConnectionDetails(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	fleetID := h.anywhere()
	game, key := h.activeGame(fleetID, "p1")
	must(h.sdk.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")}))(t)
	ask := func(arn *string, players ...string) (*gamelift.GetPlayerConnectionDetailsOutput, error) {
		return h.sdk.GetPlayerConnectionDetails(ctx, &gamelift.GetPlayerConnectionDetailsInput{GameSessionId: arn, PlayerIds: players})
	}
	got := must(ask(game.GameSessionId, "ann"))(t)
	if len(got.PlayerConnectionDetails) != 1 || *got.GameSessionId != *game.GameSessionId {
		t.Fatalf("got %s", rewritten(t, got))
	}
	d := got.PlayerConnectionDetails[0]
	if *d.PlayerId != "ann" || len(d.Endpoints) != 1 || *d.Endpoints[0].IpAddress != "127.0.0.1" || *d.Endpoints[0].Port != 7777 || d.PlayerGatewayToken != nil || d.Expiration != nil {
		t.Errorf("got %s", rewritten(t, d))
	}
	_, err := ask(game.GameSessionId, "ann", "bob")
	refused(t, err, "NotFoundException")
	_, err = ask(aws.String(*game.GameSessionId+"x"), "ann")
	refused(t, err, "NotFoundException")
	_, err = h.sdk.GetGameSessionLogUrl(ctx, &gamelift.GetGameSessionLogUrlInput{GameSessionId: game.GameSessionId})
	refused(t, err, "NotFoundException")
	h.do(&hosting.EndProcess{Process: key, Request: 99})
	_, err = ask(game.GameSessionId, "ann")
	refused(t, err, "InvalidGameSessionStatusException")
}
