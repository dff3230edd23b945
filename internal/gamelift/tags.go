package gamelift

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// TagResource adds tags to a resource, or overwrites their values.
func (s *Service) TagResource(ctx context.Context, in *gamelift.TagResourceInput) (*gamelift.TagResourceOutput, error) {
	cmd, err := tagged(*in.ResourceARN)
	if err != nil {
		return nil, err
	}
	cmd.Tags = tagsFromWire(in.Tags)
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &gamelift.TagResourceOutput{}, nil
}

// UntagResource removes tags from a resource. Keys that it does not have are no error.
func (s *Service) UntagResource(ctx context.Context, in *gamelift.UntagResourceInput) (*gamelift.UntagResourceOutput, error) {
	cmd, err := tagged(*in.ResourceARN)
	if err != nil {
		return nil, err
	}
	cmd.Untag = in.TagKeys
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &gamelift.UntagResourceOutput{}, nil
}

// ListTagsForResource lists the tags of a resource by key.
func (s *Service) ListTagsForResource(ctx context.Context, in *gamelift.ListTagsForResourceInput) (*gamelift.ListTagsForResourceOutput, error) {
	named, err := tagged(*in.ResourceARN)
	if err != nil {
		return nil, err
	}
	var tags []fleet.Tag
	err = s.engine.Read(ctx, func(v *cell.View) error {
		if named.Location != "" {
			l, ok := v.Location(named.Location)
			if !ok {
				return domain.Refuse(domain.NotFound, "location %s not found", named.Location)
			}
			tags = l.Tags
			return nil
		}
		f, ok := v.Fleet(named.Fleet)
		if !ok {
			return fleetNotFound(named.Fleet)
		}
		tags = f.Tags
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &gamelift.ListTagsForResourceOutput{Tags: tagsToWire(tags)}, nil
}

// tagged names the resource of an ARN in a command.
func tagged(arn string) (cell.TagResource, error) {
	id := lastPart(arn)
	switch {
	case strings.HasPrefix(arn, "arn:") && strings.HasSuffix(arn, ":fleet/"+id) && id != "":
		return cell.TagResource{Fleet: id}, nil
	case strings.HasPrefix(arn, "arn:") && strings.HasSuffix(arn, ":location/"+id) && id != "":
		return cell.TagResource{Location: id}, nil
	default:
		return cell.TagResource{}, domain.Refuse(domain.NotFound, "resource %s not found", shortened(arn))
	}
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
