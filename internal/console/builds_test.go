package console

import (
	"net/http"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// TestBuildPages: the list has each build with its status; the page of a build has its facts and the fleets that run it, and the search leads there.
func TestBuildPages(t *testing.T) {
	x := furnished(t)
	for _, b := range []fleet.Build{
		{ID: "build-1", Name: "arena", Version: "1.4", OperatingSystem: "AMAZON_LINUX_2023", Storage: fleet.Storage{Bucket: "games", Key: "arena.zip"}},
		{ID: "build-2", Name: "empty", OperatingSystem: "AMAZON_LINUX_2023"},
	} {
		x.do(&hosting.CreateBuild{Build: b})
	}
	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{
		ID: "fleet-2", Name: "arena-eu", CertificateType: "DISABLED", Region: "eu", Account: "1",
		Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 1}}},
	}})
	look := x.signedInAs("LOOK")
	x.wantPage(x.get(Prefix+"/builds", look), http.StatusOK, "arena", `href="/console/builds/build-1"`, "READY", "INITIALIZED", `href="/console/events/build/build-2"`)
	x.wantPage(x.get(Prefix+"/builds/build-1", look), http.StatusOK, "s3://games/arena.zip", "1.4", "arena-eu", "aws gamelift describe-build --build-id build-1", `href="/console/events/build/build-1"`)
	x.wantPage(x.get(Prefix+"/builds/build-2", look), http.StatusOK, "in Muster", "No fleet runs this build.")
	x.wantPage(x.get(Prefix+"/builds/none", look), http.StatusNotFound, "There is no build")
	x.wantPage(x.get(Prefix+"/fleets/fleet-2", look), http.StatusOK, `href="/console/builds/build-1"`)
	if e := x.exported("/builds/build-1?format=json", look); len(e.Rows) != 1 || e.Rows[0]["name"] != "arena-eu" {
		t.Errorf("the fleets of a build are exported as %v", e.Rows)
	}
	for text, want := range map[string]string{"build-1": "build-1", "empty": "build-2"} {
		if hits := x.hitsOf(text, look); len(hits) != 1 || hits[0].URL != Prefix+"/builds/"+want {
			t.Errorf("%s finds %+v", text, hits)
		}
	}
}

// TestBuildsComeInPages: the next page begins after the last build, even if many were made at the same instant.
func TestBuildsComeInPages(t *testing.T) {
	x := newDesk(t)
	const more = 3
	for n := range buildList.most + more {
		x.do(&hosting.CreateBuild{Build: fleet.Build{ID: "build-" + domain.PlayerSessionID{byte(n >> 8), byte(n)}.String(), OperatingSystem: "AMAZON_LINUX_2023"}})
	}
	look := x.signedInAs("LOOK")
	if e := x.exported("/builds?format=json&column=id", look); len(e.Rows) != buildList.most+more {
		t.Errorf("the export has %d builds", len(e.Rows))
	}
	x.wantPage(x.get(Prefix+"/builds", look), http.StatusOK, "Next page")
}
