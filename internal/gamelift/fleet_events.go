package gamelift

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// DescribeFleetEvents shows a fleet's event log, newest first.
func (s *Service) DescribeFleetEvents(ctx context.Context, in *gamelift.DescribeFleetEventsInput) (*gamelift.DescribeFleetEventsOutput, error) {
	cursor, err := pageCursor("DescribeFleetEvents", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	before := uint64(0)
	if cursor != "" {
		if before, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, invalid("NextToken is from another version of Muster")
		}
	}
	from, to := timeFromWire(in.StartTime), timeFromWire(in.EndTime)
	switch {
	case in.EndTime == nil:
	case in.StartTime != nil && to < from:
		return nil, invalid("EndTime is before StartTime")
	case to == 0:
		to = -1 // in the core, zero is no end
	}
	id, size := lastPart(*in.FleetId), pageSize(in.Limit, pageMax)
	page, err := read(ctx, s, func(v *cell.View) ([]fleet.Event, error) {
		if _, ok := v.Fleet(id); !ok {
			return nil, fleetNotFound(id)
		}
		return v.FleetEvents(id, from, to, before, size+1), nil
	})
	page, next := cutPage("DescribeFleetEvents", in, page, size, func(e *fleet.Event) string { return strconv.FormatUint(e.No, 10) })
	return &gamelift.DescribeFleetEventsOutput{Events: wires(page, eventToWire), NextToken: next}, err
}

// timeFromWire converts a time; absent is zero. It rounds, because CBOR clients send milliseconds as a binary fraction, which may be slightly too
// small.
func timeFromWire(t *time.Time) domain.Time {
	if t == nil {
		return 0
	}
	return domain.TimeOf(t.Round(time.Millisecond))
}

func eventToWire(e *fleet.Event) types.Event {
	id, at, count := e.ID.String(), e.At.Std(), e.Times()
	return types.Event{
		EventId: &id, ResourceId: &e.FleetID, EventCode: types.EventCode(e.Code), Message: text(e.Message), EventTime: &at, Count: &count,
	}
}
