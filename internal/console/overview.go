package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// attention is something that an operator should look at.
type attention struct {
	What string // is wrong, in a sentence
	Next string // step
	Link string
}

type overview struct {
	Attention []attention
	Others    int  // that are not in Attention, because there are so many
	More      bool // fleets were left out
	Fleets    int
	Runs      hosting.Utilization
	Tickets   int // that wait
}

const (
	overviewFleets = 500
	catalogMost    = 1000             // aliases, queues and configurations that a page looks at
	lately         = 15 * time.Minute // of events that the overview counts
	attentionMost  = 50
)

// troubles are the fleet events that the overview counts, with what to do.
var troubles = map[string]string{
	"SERVER_PROCESS_CRASHED":                    "Look at the last output of the server process on its page.",
	"SERVER_PROCESS_INVALID_PATH":               "Compare the launch path of the runtime configuration with the files of the build.",
	"SERVER_PROCESS_SDK_INITIALIZATION_TIMEOUT": "The game server must call InitSDK within five minutes of its start.",
	"SERVER_PROCESS_PROCESS_READY_TIMEOUT":      "The game server must call ProcessReady within five minutes of InitSDK.",
	"SERVER_PROCESS_TERMINATED_UNHEALTHY":       "Look at what OnHealthCheck returns, and whether the process was overloaded.",
	"SERVER_PROCESS_FORCE_TERMINATED":           "The game server must end within the grace after OnProcessTerminate.",
	"GAME_SESSION_ACTIVATION_TIMEOUT":           "The game server must call ActivateGameSession after OnStartGameSession.",
	"FLEET_BINARY_DOWNLOAD_FAILED":              "Look at the fleet's events for the reason, and at the host's disk and network.",
}

func (d *Door) overview(r *http.Request) (*content, error) {
	var x overview
	now := domain.TimeOf(d.engine.Now())
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		all := v.Fleets(0, "", overviewFleets+1)
		if x.More = len(all) > overviewFleets; x.More {
			all = all[:overviewFleets]
		}
		x.Fleets = v.Totals().Fleets
		for i := range all {
			x.addFleet(v, &all[i], now)
		}
		for _, a := range v.Aliases(catalog.Place{}, catalogMost, func(*fleet.Alias) bool { return true }) {
			x.addAlias(v, &a)
		}
		for _, q := range v.Queues("", catalogMost) {
			if len(q.Destinations) == 0 {
				x.add("Queue "+q.Name+" has no destination, so its placements wait until they time out.", "Add a fleet or an alias with aws gamelift update-game-session-queue.", "queues")
			}
		}
		for _, h := range v.Hosts() {
			if h.Revoked == 0 && h.Seen != 0 && h.Silent() {
				x.add("Host "+h.Name+" has been silent since "+h.Seen.Std().UTC().Format(time.DateTime)+" UTC.", "Look at the machine, its network and muster agent; muster hosts revoke takes it out for good.", "hosts")
			}
		}
		for _, m := range v.Configurations("", "", catalogMost) {
			x.Tickets += v.TicketCounts(m.Name).Active
		}
		return nil
	})
	if err := d.engine.Short(); err != nil {
		x.first("The service refuses changes: "+err.Error()+".", "Make room on the disk of the data directory; the service goes on by itself.")
	}
	for _, place := range d.config.Damage() {
		x.first("The archive is damaged at "+place+": records there cannot be read.", "muster archive --help says how to repair it.")
	}
	return &content{Title: "Overview", Section: "overview", page: "overview", Data: &x}, err
}

func (x *overview) add(what, next, link string) {
	if len(x.Attention) >= attentionMost {
		x.Others++
		return
	}
	x.Attention = append(x.Attention, attention{what, next, Prefix + "/" + link})
}

// first adds what concerns the whole service.
func (x *overview) first(what, next string) {
	x.Attention = append([]attention{{what, next, ""}}, x.Attention...)
}

func (x *overview) addFleet(v *cell.View, f *fleet.Fleet, now domain.Time) {
	link := "fleets/" + f.ID
	for _, p := range v.Places(f.ID) {
		x.Runs.Add(&p.Sessions)
		x.Runs.Computes += p.Hosts.Computes
		x.Runs.ComputesWithGame += p.Hosts.ComputesWithGame
		x.Runs.Processes += p.Hosts.Processes
		x.Runs.IdleProcesses += p.Hosts.Idle
		if why := v.WhyNoProcess(f.ID, p.Location); why != "" {
			x.add(fmt.Sprintf("Fleet %s can start no game session in %s: %s.", f.Name, p.Location, why), nextFor(&p, f), link)
		}
	}
	counts := map[string]int64{}
	for _, e := range v.FleetEvents(f.ID, now-domain.Time(lately.Milliseconds()), 0, 0, 200) {
		if _, ok := troubles[e.Code]; ok {
			counts[e.Code] += e.Times()
		}
	}
	for _, code := range slices.Sorted(maps.Keys(counts)) { // the lines must not change places whenever the page is fetched again
		x.add(fmt.Sprintf("Fleet %s: %s, %d in the last %d minutes.", f.Name, inWords(code), counts[code], lately/time.Minute), troubles[code], link+"#events")
	}
}

// nextFor is the next step where no server process is free.
func nextFor(p *hosting.PlaceCounts, f *fleet.Fleet) string {
	switch {
	case p.Hosts.Computes == 0 && f.Managed != nil:
		return "Raise the capacity with aws gamelift update-fleet-capacity, and let a host of this location join with muster hosts join-token."
	case p.Hosts.Computes == 0:
		return "Register a machine with aws gamelift register-compute, or start muster agent on it."
	case p.Hosts.Running() == 0:
		return "Start a game server there: it must call InitSDK and ProcessReady."
	case p.Hosts.Of(fleet.Hosting) == p.Hosts.Running():
		return "All are in use. Start more server processes, or add machines."
	}
	return "The page of the fleet lists its server processes with their state."
}

// inWords turns a code into words: SERVER_PROCESS_CRASHED into "server process crashed".
func inWords(code string) string { return strings.ToLower(strings.ReplaceAll(code, "_", " ")) }

func (x *overview) addAlias(v *cell.View, a *fleet.Alias) {
	if a.Terminal {
		return
	}
	if _, ok := v.Fleet(a.Fleet); !ok {
		x.add("Alias "+a.Name+" leads to fleet "+a.Fleet+", which does not exist.", "Point it to another fleet with aws gamelift update-alias.", "fleets")
	}
}
