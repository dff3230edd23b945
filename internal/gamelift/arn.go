package gamelift

import (
	"context"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// ARNs contain the region and account of the principal that created the resource. In ARNs from clients only the last
// part counts: partition, region and account are not checked.

// makeARN concatenates everything at once, because each request makes several. kind ends in a slash.
func makeARN(region, account, kind, name string) *string {
	s := "arn:aws:gamelift:" + region + ":" + account + ":" + kind + name
	return &s
}

func fleetARN(f *fleet.Fleet) *string { return makeARN(f.Region, f.Account, "fleet/", f.ID) }

func computeARN(f *fleet.Fleet, name string) *string {
	return makeARN(f.Region, f.Account, "compute/", name)
}

func locationARN(l *fleet.Location) *string { return makeARN(l.Region, l.Account, "location/", l.Name) }

func queueARN(q *placement.Queue) *string {
	return makeARN(q.Region, q.Account, "gamesessionqueue/", q.Name)
}

// gameSessionARN returns a game session's id in the form that clients know. Unlike in all other ARNs, the account part
// is empty.
func gameSessionARN(region string, id session.ID) *string {
	return new(id.ARN(region))
}

// lastPart returns the id in an ARN; an id is returned unchanged.
func lastPart(idOrARN string) string {
	if !strings.HasPrefix(idOrARN, "arn:") {
		return idOrARN
	}
	return idOrARN[strings.LastIndexByte(idOrARN, '/')+1:]
}

// computeName returns the name in a compute's ARN; the name itself may contain a slash.
func computeName(nameOrARN string) string {
	if _, name, ok := strings.Cut(nameOrARN, ":compute/"); ok {
		return name
	}
	return nameOrARN
}

// gameSessionID parses a game session's ARN. The current form ends in <fleet>/<location>/<id>. The previous form had
// the location in place of the region and ended in <fleet>/<id>; the location is then taken from the fleet.
func (s *Service) gameSessionID(ctx context.Context, arn string) (session.ID, error) {
	prefix, tail, ok := strings.Cut(arn, ":gamesession/")
	switch {
	case !ok || !strings.HasPrefix(prefix, "arn:"):
		return "", domain.Refuse(domain.NotFound, "game session %s not found: want its ARN", excerpt.Short(arn))
	case strings.Count(tail, "/") != 1:
		return session.ID(tail), nil
	}
	fleetID, name, _ := strings.Cut(tail, "/")
	region := ""
	if parts := strings.Split(prefix, ":"); len(parts) > 3 {
		region = parts[3]
	}
	named := session.MakeID(fleetID, region, name)
	f, err := s.fleetByID(ctx, fleetID)
	if err != nil {
		return named, ignoreRefusal(err)
	}
	if _, ok := f.HasLocation(region); ok {
		return named, nil
	}
	for _, l := range f.Locations {
		id := session.MakeID(fleetID, l.Name, name)
		if _, err := s.engine.GameSession(ctx, id); err == nil {
			return id, nil
		} else if err := ignoreRefusal(err); err != nil {
			return named, err
		}
	}
	return named, nil
}
