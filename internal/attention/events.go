package attention

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/plural"
)

// eventSteps are the codes of the fleet events that are counted, with what to do.
var eventSteps = map[string]string{
	"SERVER_PROCESS_CRASHED":                    "Read the last output of the server process: muster explain process shows it.",
	"SERVER_PROCESS_INVALID_PATH":               "Compare the launch path of the runtime configuration with the files of the build.",
	"SERVER_PROCESS_SDK_INITIALIZATION_TIMEOUT": "The game server must call InitSDK within five minutes of its start.",
	"SERVER_PROCESS_PROCESS_READY_TIMEOUT":      "The game server must call ProcessReady within five minutes of InitSDK.",
	"SERVER_PROCESS_TERMINATED_UNHEALTHY":       "Check what OnHealthCheck returns, and whether the process was overloaded.",
	"SERVER_PROCESS_FORCE_TERMINATED":           "The game server must end within the grace period after OnProcessTerminate.",
	"GAME_SESSION_ACTIVATION_TIMEOUT":           "The game server must call ActivateGameSession after OnStartGameSession.",
	"FLEET_BINARY_DOWNLOAD_FAILED":              "Read the reason in the fleet's events, and check the host's disk and network.",
}

const (
	eventsLooked = 200 // of a fleet, the newest
	eventShown   = 400 // bytes of an event's message
)

// counted is the events of one code.
type counted struct {
	times, players int64
	newest         string // message
}

// fleetEvents are what a fleet's events of the last minutes tell, one item for each code; lost are those by which players lost their game.
func fleetEvents(v *cell.View, f *fleet.Fleet, now domain.Time) (lost, others []Item) {
	by := map[string]*counted{}
	for _, e := range v.FleetEvents(f.ID, now-domain.Time(lately.Milliseconds()), 0, 0, eventsLooked) { // the newest first
		if _, ok := eventSteps[e.Code]; !ok {
			continue
		}
		x := by[e.Code]
		if x == nil {
			x = &counted{newest: e.Message}
			by[e.Code] = x
		}
		x.times, x.players = x.times+e.Times(), x.players+e.Players
	}
	for _, code := range slices.Sorted(maps.Keys(by)) { // the items must not change places with every look
		x := by[code]
		next := eventSteps[code]
		if portTaken(x.newest) {
			next = portStep
		}
		times := fmt.Sprintf("%s, %d in the last %d minutes. The newest: %s", inWords(code), x.times, lately/time.Minute, middleOut(x.newest, eventShown))
		if x.players == 0 {
			others = append(others, Item{"Fleet " + f.Name + ": " + times, next, "fleet", f.ID})
			continue
		}
		who := plural.Of(x.players, "player", "players")
		lost = append(lost, Item{fmt.Sprintf("%s lost their game in fleet %s: %s", who, f.Name, times), next + " Place the players in a new game session: their seats ended with this one.", "fleet", f.ID})
	}
	return lost, others
}

// inWords turns a code into words: SERVER_PROCESS_CRASHED into "server process crashed".
func inWords(code string) string { return strings.ToLower(strings.ReplaceAll(code, "_", " ")) }

// middleOut returns a text of at most so many bytes, without its middle if it is longer: the beginning says which process, and the end of its output why.
func middleOut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}
