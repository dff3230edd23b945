package service

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/objects"
)

// buildsDir is the part of the data directory that has the files of builds.
const buildsDir = "builds"

// openBuilds opens the store for the files of builds, and its door. A cluster has none: the nodes do not copy such files to each other, and a build
// that only one of them has would be lost with it.
func (x *Service) openBuilds(doors *router, api *gamelift.Service) (err error) {
	s := x.settings
	if x.node != nil || s.BuildsMax == 0 {
		return nil
	}
	// Twice the reserve, so that uploads never bring the service to refuse changes.
	store, err := objects.Open(objects.Options{Dir: filepath.Join(s.Data, buildsDir), Quota: int64(s.BuildsMax), Reserve: 2 * int64(s.DiskReserve), Log: x.log})
	if err != nil {
		return err
	}
	door := builddoor.New(builddoor.Config{
		Engine: x.engine, Secret: x.secret, Objects: store, Private: x.transport.Private, Proxies: s.Proxies(), Signins: x.signins.Door("builds"), Log: x.log,
	})
	api.Uploads, doors.builds, x.builds = door, door, door
	x.metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_builds_bytes", Help: "Bytes of the files of builds in the data directory, uploads included.",
	}, func() float64 { used, _ := store.Used(); return float64(used) }))
	x.metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_builds_bytes_limit", Help: "The most bytes that the files of builds may have, from --builds-max.",
	}, func() float64 { _, quota := store.Used(); return float64(quota) }))
	ctx, stop := context.WithCancel(context.Background())
	x.stopBuilds = stop
	x.building.Go(func() { door.Run(ctx) })
	return nil
}

// buildURLLife is how long hosts may fetch a build with one URL. An agent that takes longer asks for another one.
const buildURLLife = 6 * time.Hour

// buildURL is where hosts fetch the build with a manifest; "" at an installation that stores no builds.
func (x *Service) buildURL(manifest string) string {
	if x.builds == nil {
		return ""
	}
	return strings.TrimRight(webURL(x.publicURL), "/") + x.builds.FetchPath(manifest, buildURLLife)
}

// closeBuilds ends what makes builds of uploads. An upload that it is at is begun again at the next start.
func (x *Service) closeBuilds() {
	if x.stopBuilds != nil {
		x.stopBuilds()
		x.building.Wait()
	}
}
