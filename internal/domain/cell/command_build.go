package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// CreateBuild notes where a game server's files lie.
type CreateBuild struct {
	Build fleet.Build // all but Created

	// Result: Build as it was stored.
}

func (cmd *CreateBuild) decide(t *tx) error {
	b := &cmd.Build
	if n, most := t.c.fleets.Builds.Len(), t.c.config.BuildsMax; n >= most {
		return domain.Refuse(domain.Invalid, "%d builds exist; the limit is %d", n, most) // the API declares no limit here
	}
	if b.Storage != (fleet.Storage{}) && (b.Storage.Bucket == "" || b.Storage.Key == "") {
		return domain.Refuse(domain.Invalid, "StorageLocation: Bucket and Key are required")
	}
	tags, err := t.tagged(BuildResource, nil, b.Tags)
	if err != nil {
		return err
	}
	b.Created, b.Tags = t.now, tags
	t.emit(&BuildChanged{*b})
	return nil
}

func (c *Cell) buildByID(id string) (*fleet.Build, error) {
	r, ok := c.fleets.Builds.Find(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "build %s not found", id)
	}
	return c.fleets.Builds.Get(r), nil
}

// UpdateBuild changes what is given and keeps the rest.
type UpdateBuild struct {
	ID            string
	Name, Version *string

	// Result
	Build fleet.Build
}

func (cmd *UpdateBuild) decide(t *tx) error {
	old, err := t.c.buildByID(cmd.ID)
	if err != nil {
		return err
	}
	b := *old
	set(&b.Name, cmd.Name)
	set(&b.Version, cmd.Version)
	t.emit(&BuildChanged{b})
	cmd.Build = b
	return nil
}

// DeleteBuild forgets a build; its files stay where they are.
type DeleteBuild struct{ ID string }

func (cmd *DeleteBuild) decide(t *tx) error {
	if _, err := t.c.buildByID(cmd.ID); err != nil {
		return err
	}
	t.emit(&BuildRemoved{cmd.ID})
	return nil
}
