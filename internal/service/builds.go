package service

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/objects/bucket"
	"github.com/musterhq/muster/internal/objects/copies"
)

// buildsDir is the subdirectory of the data directory with the files of builds.
const buildsDir = "builds"

// openBuilds opens the store for the files of builds, and its door. The nodes of a cluster replicate them to each
// other.
func (x *Service) openBuilds(doors *router, api *gamelift.Service) (err error) {
	s := x.settings
	if s.BuildsMax == 0 {
		return nil
	}
	// Twice the reserve, so that uploads never bring the service to refuse changes.
	store, err := objects.Open(objects.Options{Dir: filepath.Join(s.Data, buildsDir), Quota: int64(s.BuildsMax), Reserve: 2 * int64(s.DiskReserve), Log: x.log})
	if err != nil {
		return err
	}
	config := builddoor.Config{
		Engine: x.engine, Secret: x.secret, Objects: store, Private: x.private, Proxies: x.proxies, Signins: x.signins.Door("builds"), Log: x.log,
	}
	ctx, stop := context.WithCancel(context.Background())
	x.stopBuilds = stop
	if x.node != nil {
		config.Net = x.node.Requests()
	}
	switch {
	case x.bucket != nil:
		config.Parts = bucket.New(bucket.Config{Client: x.bucket, Local: store, Decides: x.decides, Log: x.log})
	case x.node != nil:
		config.Parts = x.openCopies(ctx, store)
	}
	door := builddoor.New(config)
	x.parts = store
	api.Uploads, doors.builds, x.builds = door, door, door
	x.questions.Handle(builddoor.QuestionPrefix, http.HandlerFunc(door.ServeQuestion))
	x.metrics.Register(
		gauge("muster_builds_bytes", "Bytes of the files of builds in the data directory, uploads included.", func() float64 { used, _ := store.Used(); return float64(used) }),
		gauge("muster_builds_bytes_limit", "Maximum size in bytes of the files of builds, from --builds-max.", func() float64 { _, quota := store.Used(); return float64(quota) }),
	)
	x.building.Go(func() { door.Run(ctx) })
	return nil
}

// openCopies makes this node and the others replicate the files of builds to each other.
func (x *Service) openCopies(ctx context.Context, store *objects.Store) *copies.Copies {
	c := copies.New(copies.Config{Store: store, Net: x.node.Requests(), Log: x.log, InUse: func(ctx context.Context) (all []buildfiles.Digest, err error) {
		err = x.engine.ReadHere(ctx, func(v *cell.View) error { all, err = builddoor.Manifests(v); return err })
		return all, err
	}})
	x.questions.Handle(copies.Prefix, c)
	x.metrics.Register(gauge("muster_builds_lacking", "Builds in use whose files this node of a cluster does not have completely and is copying from other nodes.",
		func() float64 { return float64(c.Lacks()) }))
	x.building.Go(func() { c.Run(ctx) })
	return c
}

// buildURLLife is how long hosts can download a build from one URL. An agent that needs longer asks for another URL.
const buildURLLife = 6 * time.Hour

// buildURL returns the URL from which hosts download the build with a manifest; "" if the installation stores no
// builds.
func (x *Service) buildURL(manifest string) string {
	if x.builds == nil {
		return ""
	}
	return strings.TrimRight(webURL(x.publicURL), "/") + x.builds.FetchPath(manifest, buildURLLife)
}

// closeBuilds stops the processing of uploads into builds. An interrupted upload is processed again after the next
// start.
func (x *Service) closeBuilds() {
	if x.stopBuilds != nil {
		x.stopBuilds()
		x.building.Wait()
	}
}
