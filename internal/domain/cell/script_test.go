package cell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// TestScripts plays testdata/scripts: each line is a command, and its effects stand below it. "at" moves the clock to a
// time since the beginning. If a line names no fleet, location or compute, those of the test apply. After each step the
// counts and indexes are checked, and at the end the journal is replayed and a snapshot loaded.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		config := DefaultConfig()
		config.Hosting.PropertiesInGameMax, config.Hosting.LocationsInFleetMax, config.Hosting.ComputesInFleetMax, config.Hosting.ProcessesOnComputeMax = 2, 2, 3, 9
		config.Access.AccessKeysMax = 4
		s := &script{world: newWorld(t, config), names: map[domain.UUID]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := &strings.Builder{}
			for i, line := range append([]string{d.FullCmd()}, strings.Split(d.Input, "\n")...) {
				if i > 0 && line == "" {
					continue
				}
				verb, args, err := datadriven.ParseLine(line)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				s.line(out, verb, arguments{t, d, args})
				if err := checkState(s.cell); err != nil {
					d.Fatalf(t, "after %s: %v", line, err)
				}
			}
			return out.String()
		})
		if err := s.checkRestarts(); err != nil {
			t.Error(err)
		}
	})
}

const scriptBegan = domain.Time(1_700_000_000_000)

type script struct {
	*world
	names map[domain.UUID]string
}

// line executes one line and writes its effects.
func (s *script) line(out *strings.Builder, verb string, a arguments) {
	if at := a.duration("at"); at != 0 {
		s.now = scriptBegan.Add(at)
	}
	if s.look(out, verb, a) {
		return
	}
	cmd := s.command(verb, a)
	for again := true; again; {
		err := s.do(cmd)
		for _, e := range s.events {
			fmt.Fprintln(out, strings.TrimSpace(s.describe(e)))
		}
		if r, ok := errors.AsType[*domain.Refusal](err); ok {
			fmt.Fprintf(out, "refused %s: %s\n", r.Reason, s.readable(r.Detail))
		} else if note := result(cmd); note != "" && len(s.events) == 0 {
			fmt.Fprintln(out, note)
		}
		tick, ok := cmd.(*kernel.Tick)
		again = ok && tick.More
		if again {
			cmd = &kernel.Tick{}
		}
	}
}

// readable replaces the identifiers of player sessions with their names.
func (s *script) readable(text string) string {
	for id, name := range s.names {
		text = strings.ReplaceAll(text, id.String(), name)
	}
	return text
}

// result returns the answer of a command that changed nothing.
func result(cmd kernel.Command) string {
	switch cmd := cmd.(type) {
	case *kernel.Tick:
		return ""
	case *hosting.CreateGameSession:
		return fmt.Sprintf("the same game session, %s", cmd.Game.Status)
	case *hosting.ActivateProcess:
		return "repeated"
	case *hosting.ConnectProcess:
		return fmt.Sprintf("found %s", cmd.Found.State)
	case *hosting.IssueToken:
		return fmt.Sprintf("the same token, generation=%d expires=%s", cmd.Generation, since(int64(cmd.Expires)))
	}
	return "nothing"
}

// command makes the command of a line.
func (s *script) command(verb string, a arguments) kernel.Command {
	key := fleet.Key{Fleet: a.or("fleet", testFleet), Compute: a.or("compute", testCompute), Process: a.or("process", "")}
	game := session.MakeID(key.Fleet, a.or("location", testLocation), a.or("game", ""))
	request := kernel.RequestHash(a.or("request", verb+key.Process+game.Fleet()))
	switch verb {
	case "create-location":
		return &hosting.CreateLocation{Name: a.or("location", testLocation), Tags: a.tags("tags")}
	case "delete-location":
		return &hosting.DeleteLocation{Name: a.or("location", testLocation)}
	case "create-fleet":
		return &hosting.CreateFleet{Fleet: fleet.Fleet{ID: key.Fleet, CreationPolicy: a.policy(), Runtime: a.runtime(), CertificateType: a.or("certificate", "DISABLED"), Tags: a.tags("tags")}, Locations: a.list("locations", testLocation)}
	case "update-fleet":
		return &hosting.UpdateFleetAttributes{ID: key.Fleet, FullProtection: a.flag("protected"), CreationPolicy: a.policy()}
	case "delete-fleet":
		return &hosting.DeleteFleet{ID: key.Fleet}
	case "add-locations":
		return &hosting.AddFleetLocations{ID: key.Fleet, Locations: a.list("locations", testLocation)}
	case "remove-locations":
		return &hosting.RemoveFleetLocations{ID: key.Fleet, Locations: a.list("locations", testLocation)}
	case "tag":
		resource := Resource{FleetResource, key.Fleet}
		if name := a.or("location", ""); name != "" {
			resource = Resource{LocationResource, name}
		}
		if name := a.or("compute", ""); name != "" {
			resource = Resource{ComputeResource, key.Fleet + "/" + name}
		}
		return &TagResource{Resource: resource, Tags: a.tags("add"), Untag: a.list("remove")}
	case "register":
		var registration domain.UUID
		registration[0] = byte(a.number("registration", 0))
		return &hosting.RegisterCompute{Compute: fleet.Compute{
			FleetID: key.Fleet, Name: key.Compute, Location: a.or("location", testLocation), IPAddress: a.or("ip", "127.0.0.1"), Registration: registration,
		}}
	case "deregister":
		return &hosting.DeregisterCompute{Fleet: key.Fleet, Name: key.Compute}
	case "rotate-token":
		return &hosting.RotateToken{Fleet: key.Fleet, Compute: key.Compute, KeepLinks: a.flag("keep-links") != nil}
	case "issue-token":
		return &hosting.IssueToken{Fleet: key.Fleet, Compute: key.Compute}
	case "create-game":
		cmd := &hosting.CreateGameSession{
			Fleet: key.Fleet, Location: a.or("location", testLocation), Name: a.or("game", ""), Title: a.or("title", ""), Properties: a.properties(),
			Creator: a.or("creator", ""), PlayersMax: a.number("players-max", 4), Parameters: uint64(a.number("parameters", 0)), ArchivedAt: uint64(a.number("archived-at", int32(s.cell.Forgotten()))),
		}
		if _, ok := a.find("archived"); ok {
			cmd.Archived = &session.GameSession{ID: game, Status: session.Terminated, Parameters: uint64(a.number("archived", 0))}
		}
		return cmd
	case "update-game":
		cmd := &hosting.UpdateGameSession{ID: game, DenyPlayers: a.flag("deny"), FullProtection: a.flag("protected"), Properties: a.properties()}
		if n := a.number("players-max", -1); n >= 0 {
			cmd.PlayersMax = &n
		}
		return cmd
	case "terminate-game":
		_, force := a.find("force")
		_, agent := a.find("agent")
		return &hosting.TerminateGameSession{ID: game, Force: force, Agent: agent}
	case "reserve":
		cmd := &hosting.ReservePlayers{Game: game}
		players := a.list("player")
		for i, id := range a.list("id") {
			cmd.Players = append(cmd.Players, hosting.NewPlayer{ID: domain.PlayerSessionID(s.namedID(id)), Player: players[i]})
		}
		return cmd
	case "release":
		return &hosting.ReleasePlayer{Player: domain.PlayerSessionID(s.namedID(a.or("id", "")))}
	case "tick":
		return &kernel.Tick{}
	case "resume":
		return &kernel.Resume{}
	case "forget":
		return &kernel.Forget{Count: int(a.number("count", 1))}
	}
	if cmd := s.accessCommand(verb, a); cmd != nil {
		return cmd
	}
	if cmd := s.managedCommand(verb, a, key.Fleet); cmd != nil {
		return cmd
	}
	return s.serverCommand(verb, a, key, game, request)
}

// serverCommand makes a command that a game server sends.
func (s *script) serverCommand(verb string, a arguments, key fleet.Key, game session.ID, request uint64) kernel.Command {
	link := uint64(a.number("link", 1))
	switch verb {
	case "connect":
		return &hosting.ConnectProcess{Process: key, Link: link}
	case "lose-link":
		return &hosting.LoseLink{Process: key, Link: link}
	case "ready":
		return &hosting.ActivateProcess{Process: key, Link: link, Port: uint16(a.number("port", 7777)), Request: request}
	case "health":
		return &hosting.ReportHealth{Process: key, Healthy: *a.flag("good"), LastHealthy: scriptBegan.Add(a.duration("last"))}
	case "settle":
		return &hosting.SettleProcess{Process: key}
	case "refresh":
		return &hosting.RefreshProcess{Process: key, Begin: *a.flag("begin")}
	case "prompt":
		return &hosting.PromptGameSession{Process: key, Game: game}
	case "activate":
		return &hosting.ActivateGameSession{Process: key, Game: game}
	case "policy":
		return &hosting.SetPlayerPolicy{Process: key, Game: game, Deny: *a.flag("deny"), Request: request}
	case "accept":
		return &hosting.AcceptPlayer{Process: key, Game: game, Player: domain.PlayerSessionID(s.namedID(a.or("id", ""))), Request: request}
	case "remove":
		return &hosting.RemovePlayer{Process: key, Game: game, Player: domain.PlayerSessionID(s.namedID(a.or("id", "")))}
	case "end":
		return &hosting.EndProcess{Process: key, Request: request}
	}
	a.d.Fatalf(a.t, "no command %q", verb)
	return nil
}

// look answers a line that only reads, and executes lines that only prepare a script.
func (s *script) look(out *strings.Builder, verb string, a arguments) bool {
	v := s.cell.View()
	key := fleet.Key{Fleet: a.or("fleet", testFleet), Compute: a.or("compute", testCompute), Process: a.or("process", "")}
	game := session.MakeID(key.Fleet, a.or("location", testLocation), a.or("game", ""))
	switch verb {
	case "hall": // a location, a fleet and a compute
		s.hall()
	case "server": // a process that is ready and healthy
		s.server(key.Process)
	case "game": // an ACTIVE game session on a process of its own, named "p-" and the game's name
		s.game(a.or("game", ""), a.number("players-max", 4))
	case "show-game":
		g, ok := v.GameSession(game)
		fmt.Fprintf(out, "%s %s%s, %d of %d seats held%s\n", gameName(game), g.Status, when(!ok, " (not found)"), g.SeatsHeld, g.PlayersMax, when(g.DenyPlayers, ", DENY_ALL"))
		for _, p := range v.PlayersIn(game, 0, 0, domain.PlayerSessionID{}, 100) {
			fmt.Fprintf(out, "  %s %s %s\n", s.names[domain.UUID(p.ID)], p.Player, p.Status)
		}
	case "show-process":
		p, ok := v.Process(key)
		fmt.Fprintf(out, "%s %s%s life=%d%s%s%s\n", key.Process, p.State, when(!ok, " (not found)"), p.Life, when(p.Linked, " linked"), when(p.Eligible(), " eligible"), when(p.Session != 0, " hosting"))
	case "show-secrets":
		s.showSecrets(out)
	case "show-keys":
		s.showKeys(out)
	case "show-utilization":
		u := v.Utilization(key.Fleet, a.or("location", ""))
		fmt.Fprintf(out, "games=%d seats=%d/%d processes=%d idle=%d computes=%d\n", u.GameSessions, u.SeatsHeld, u.SeatsMax, u.Processes, u.IdleProcesses, u.Computes)
	default:
		return false
	}
	return true
}

// arguments are those of one line.
type arguments struct {
	t    *testing.T
	d    *datadriven.TestData
	args []datadriven.CmdArg
}

func (a arguments) find(key string) ([]string, bool) {
	for _, x := range a.args {
		if x.Key == key {
			return x.Vals, true
		}
	}
	return nil, false
}

func (a arguments) or(key, otherwise string) string {
	if vals, ok := a.find(key); ok && len(vals) > 0 {
		return vals[0]
	}
	return otherwise
}

func (a arguments) list(key string, otherwise ...string) []string {
	if vals, ok := a.find(key); ok {
		return vals
	}
	return otherwise
}

func (a arguments) number(key string, otherwise int32) int32 {
	text := a.or(key, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		a.d.Fatalf(a.t, "%s: %v", key, err)
	}
	return int32(n)
}

func (a arguments) duration(key string) time.Duration {
	text := a.or(key, "0s")
	d, err := time.ParseDuration(text)
	if err != nil {
		a.d.Fatalf(a.t, "%s: %v", key, err)
	}
	return d
}

func (a arguments) flag(key string) *bool {
	text := a.or(key, "")
	if text == "" {
		return nil
	}
	yes := text == "true"
	return &yes
}

func (a arguments) pairs(key string) (pairs [][2]string) {
	for _, pair := range a.list(key) {
		name, value, _ := strings.Cut(pair, ":")
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs
}

func (a arguments) tags(key string) (tags []fleet.Tag) {
	for _, tag := range a.list(key) {
		at := strings.LastIndexByte(tag, ':')
		tags = append(tags, fleet.Tag{Key: tag[:at], Value: tag[at+1:]})
	}
	return tags
}

func (a arguments) properties() (properties []session.Property) {
	for _, p := range a.pairs("properties") {
		properties = append(properties, session.Property{Key: p[0], Value: p[1]})
	}
	return properties
}

// policy parses "policy=3/10m": three game sessions in ten minutes.
func (a arguments) policy() *fleet.CreationPolicy {
	text := a.or("policy", "")
	if text == "" {
		return nil
	}
	sessions, period, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(sessions)
	d, err2 := time.ParseDuration(period)
	if err := errors.Join(err, err2); err != nil {
		a.d.Fatalf(a.t, "policy: %v", err)
	}
	return &fleet.CreationPolicy{Sessions: int32(n), Period: d}
}
