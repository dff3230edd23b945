package gamelift

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

func TestComputeIsDrainedByItsTag(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	fleetID := h.anywhere()
	compute := must(h.sdk.DescribeCompute(ctx, &gamelift.DescribeComputeInput{FleetId: &fleetID, ComputeName: aws.String("DesktopPC")}))(t).Compute
	h.serverReady(fleetID, "p1")
	tag := func(value string) error {
		_, err := h.sdk.TagResource(ctx, &gamelift.TagResourceInput{
			ResourceARN: compute.ComputeArn, Tags: []types.Tag{{Key: aws.String("muster:drain"), Value: &value}},
		})
		return err
	}
	create := func() error {
		_, err := h.sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
			FleetId: &fleetID, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2),
		})
		return err
	}
	refused(t, tag("yes"), codeInvalidRequest)
	if err := tag("true"); err != nil {
		t.Fatal(err)
	}
	refused(t, create(), "FleetCapacityExceededException")
	if tags := must(h.sdk.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: compute.ComputeArn}))(t).Tags; len(tags) != 1 || *tags[0].Value != "true" {
		t.Errorf("tags: %s", rewritten(t, tags))
	}
	must(h.sdk.UntagResource(ctx, &gamelift.UntagResourceInput{ResourceARN: compute.ComputeArn, TagKeys: []string{"muster:drain"}}))(t)
	if err := create(); err != nil {
		t.Errorf("after the drain: %v", err)
	}
	_, err := h.sdk.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: aws.String(*compute.ComputeArn + "x")})
	refused(t, err, "NotFoundException")
}
