package gamelift

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// TagResource adds tags to a resource, or overwrites their values.
func (s *Service) TagResource(ctx context.Context, in *gamelift.TagResourceInput) (*gamelift.TagResourceOutput, error) {
	resource, err := tagged(*in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &gamelift.TagResourceOutput{}, s.engine.Do(ctx, &cell.TagResource{Resource: resource, Tags: tagsFromWire(in.Tags)})
}

// UntagResource removes tags from a resource. Keys that it does not have are ignored.
func (s *Service) UntagResource(ctx context.Context, in *gamelift.UntagResourceInput) (*gamelift.UntagResourceOutput, error) {
	resource, err := tagged(*in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &gamelift.UntagResourceOutput{}, s.engine.Do(ctx, &cell.TagResource{Resource: resource, Untag: in.TagKeys})
}

// ListTagsForResource lists the tags of a resource by key.
func (s *Service) ListTagsForResource(ctx context.Context, in *gamelift.ListTagsForResourceInput) (*gamelift.ListTagsForResourceOutput, error) {
	named, err := tagged(*in.ResourceARN)
	if err != nil {
		return nil, err
	}
	tags, err := read(ctx, s, func(v *cell.View) ([]fleet.Tag, error) { return v.Tags(named) })
	return &gamelift.ListTagsForResourceOutput{Tags: tagsToWire(tags)}, err
}

// taggable maps the part of an ARN before the name to the kinds of resources that can have tags.
var taggable = map[string]cell.ResourceKind{
	"fleet":           cell.FleetResource,
	"location":        cell.LocationResource,
	"alias":           cell.AliasResource,
	"compute":         cell.ComputeResource,
	"build":           cell.BuildResource,
	"gameservergroup": cell.GameServerGroupResource,

	"gamesessionqueue":         cell.QueueResource,
	"matchmakingruleset":       cell.RuleSetResource,
	"matchmakingconfiguration": cell.ConfigurationResource,
}

// tagged parses the ARN of a resource.
func tagged(arn string) (cell.Resource, error) {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 && parts[0] == "arn" {
		kind, id, _ := strings.Cut(parts[5], "/")
		if k, ok := taggable[kind]; ok && id != "" {
			return cell.Resource{Kind: k, ID: id}, nil
		}
	}
	return cell.Resource{}, domain.Refuse(domain.NotFound, "resource %s not found", excerpt.Short(arn))
}

func tagsFromWire(wire []types.Tag) []fleet.Tag {
	tags := make([]fleet.Tag, len(wire))
	for i, t := range wire {
		tags[i] = fleet.Tag{Key: value(t.Key), Value: value(t.Value)}
	}
	return tags
}

func tagsToWire(tags []fleet.Tag) []types.Tag {
	wire := make([]types.Tag, len(tags))
	for i := range tags {
		wire[i] = types.Tag{Key: &tags[i].Key, Value: &tags[i].Value}
	}
	return wire
}
