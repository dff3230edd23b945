package sessionapi

import (
	"context"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// newID returns an identifier that cannot be guessed: a player session's id is the credential for its seat.
func newID() domain.UUID { return domain.UUID(uuid.New()) }

type configureRequest struct {
	Region string `json:"region"`
}

func (in *configureRequest) check(c *checks) {
	c.form("region", in.Region, regionForm, "1 to 32 letters, digits and dashes")
}

type configureAnswer struct {
	OK bool `json:"ok"`
}

// cloudRegion matches names of the cloud's regions, also future ones, because scripts keep the region that they used there.
var cloudRegion = regexp.MustCompile(`^(us|eu|ap|sa|ca|me|af|il|mx|cn)(-gov|-iso[a-z]?)?-(central|north|south|east|west|northeast|northwest|southeast|southwest)-[1-9]$`)

// configureClient configures nothing, because this service serves all regions. It reports to the script whether its credentials, its
// connection and the name of its region are valid.
func (d *Door) configureClient(ctx context.Context, _ *request, in *configureRequest) (*configureAnswer, error) {
	if in.Region == "" || cloudRegion.MatchString(in.Region) {
		return &configureAnswer{true}, nil
	}
	known := false
	err := d.engine.Read(ctx, func(v *cell.View) error {
		_, known = v.Location(in.Region)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, invalid("region", in.Region, "a region of the cloud, such as us-east-1, or a location of this installation")
	}
	return &configureAnswer{true}, nil
}

type playerIDRequest struct {
	IncludeBrackets bool `json:"includeBrackets"`
	IncludeDashes   bool `json:"includeDashes"`
}

func (*playerIDRequest) check(*checks) {}

type playerIDAnswer struct {
	PlayerID string `json:"playerId"`
}

func (d *Door) createPlayerID(_ context.Context, _ *request, in *playerIDRequest) (*playerIDAnswer, error) {
	id := strings.ToUpper(newID().String()) // in the form of the engine's own ids
	if !in.IncludeDashes {
		id = strings.ReplaceAll(id, "-", "")
	}
	if in.IncludeBrackets {
		id = "{" + id + "}"
	}
	return &playerIDAnswer{id}, nil
}

type resourceNameRequest struct {
	Name string `json:"name"`
}

func (in *resourceNameRequest) check(c *checks) { c.required("name", in.Name, textMax) }

type resourceNameAnswer struct {
	Result  string `json:"result"` // for use as aliasId
	FleetID string `json:"fleetId"`
}

// resourceNameID finds an alias by its name. If several have the same name, it returns the oldest.
func (d *Door) resourceNameID(ctx context.Context, _ *request, in *resourceNameRequest) (*resourceNameAnswer, error) {
	out := &resourceNameAnswer{}
	err := d.engine.Read(ctx, func(v *cell.View) (err error) {
		named := v.Aliases(catalog.Place{}, 1, func(a *fleet.Alias) bool { return a.Name == in.Name })
		if len(named) == 0 {
			return domain.Refuse(domain.NotFound, "there is no alias named %q", excerpt.Short(in.Name))
		}
		out.Result = named[0].ID
		out.FleetID, err = v.ResolveAlias(named[0].ID)
		return err
	})
	return out, err
}

// fleetOf returns the fleet that a request names, or that its alias currently points to.
func (d *Door) fleetOf(ctx context.Context, fleetID, aliasID string) (f fleet.Fleet, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) (err error) {
		id := lastPart(fleetID)
		if aliasID != "" {
			if id, err = v.ResolveAlias(lastPart(aliasID)); err != nil {
				return err
			}
		}
		var ok bool
		if f, ok = v.Fleet(id); !ok {
			return domain.Refuse(domain.NotFound, "fleet %s not found", excerpt.Short(id))
		}
		return nil
	})
	return f, err
}

func locationNames(f *fleet.Fleet) string {
	var names []string
	for _, l := range f.Locations {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}
