package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// CreateBuild registers where the files of a game server are stored.
type CreateBuild struct {
	Build fleet.Build // all but Created

	// Result: Build, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateBuild) Hold(h quota.Holder) { cmd.Build.Holder = h }

func (cmd *CreateBuild) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	b := &cmd.Build
	if n, most := t.Fleets.Builds.Len(), t.Config.BuildsMax; n >= most {
		return domain.Refuse(domain.Invalid, "%d builds exist; the limit is %d", n, most) // the API declares no limit here
	}
	if err := t.Take(quota.Builds, t.Fleets.Builds.Held(), &b.Holder, t.Config.BuildsMax); err != nil {
		return err
	}
	if b.Storage != (fleet.Storage{}) && (b.Storage.Bucket == "" || b.Storage.Key == "") {
		return domain.Refuse(domain.Invalid, "StorageLocation: Bucket and Key are required")
	}
	tags, err := t.Tagged(nil, nil, b.Tags)
	if err != nil {
		return err
	}
	b.Created, b.Tags = t.Now, tags
	t.Emit(&BuildChanged{*b})
	return nil
}

func (c *State) buildByID(id string) (*fleet.Build, error) {
	r, ok := c.Fleets.Builds.Find(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "build %s not found", id)
	}
	return c.Fleets.Builds.Get(r), nil
}

// UpdateBuild changes the given fields and keeps the others.
type UpdateBuild struct {
	ID            string
	Name, Version *string

	// Result
	Build fleet.Build
}

func (cmd *UpdateBuild) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.buildByID(cmd.ID)
	if err != nil {
		return err
	}
	b := *old
	kernel.Patch(&b.Name, cmd.Name)
	kernel.Patch(&b.Version, cmd.Version)
	t.Emit(&BuildChanged{b})
	cmd.Build = b
	return nil
}

// FinishBuild records the result of an upload: the files are stored, or they cannot be used. It may be repeated.
type FinishBuild struct {
	ID       string
	Manifest string // of the files that are stored
	Size     int64  // of these files, in bytes
	Failure  string // why the upload cannot be used; the fields above are then empty
}

func (cmd *FinishBuild) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	b, err := t.buildByID(cmd.ID)
	switch {
	case err != nil:
		return err
	case b.Manifest == cmd.Manifest && b.Failure == cmd.Failure:
		return nil
	case !b.Uploadable():
		return domain.Refuse(domain.Conflict, "build %s has its files already; create another build for other files", b.ID)
	case cmd.Failure != "":
		t.Emit(&BuildFailed{cmd.ID, cmd.Failure})
	default:
		t.Emit(&BuildStored{cmd.ID, cmd.Manifest, cmd.Size})
	}
	return nil
}

// DeleteBuild removes a build. Fleets that run it keep its files in the service's own store; files in an operator's store are not touched.
type DeleteBuild struct{ ID string }

func (cmd *DeleteBuild) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, err := t.buildByID(cmd.ID); err != nil {
		return err
	}
	t.Emit(&BuildRemoved{cmd.ID})
	return nil
}
