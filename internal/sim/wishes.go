package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// Wishes makes random commands: those of operators, backends, players and game servers, honest ones and liars. It reads the state so that
// most commands make sense. It draws from few names, so that commands meet.
type Wishes struct {
	chance  *rand.Rand
	makers  []maker
	weights int
	made    uint64 // numbers identifiers, links and requests
	holders uint64 // counts commands that have a holder
	now     domain.Time

	players        []maker // the makers that player flow adds
	playersWeights int
	lively         bool // see makeLively
	wide           bool // see drawWide
}

type maker struct {
	weight int
	make   func(w *Wishes, v *cell.View) kernel.Command
}

// NewWishes switches off some kinds of commands, so that the others also run alone.
func NewWishes(chance *rand.Rand) *Wishes {
	w := &Wishes{chance: chance}
	for _, m := range makers {
		if chance.IntN(100) < 12 {
			continue
		}
		w.makers = append(w.makers, m)
		w.weights += m.weight
	}
	return w
}

func (w *Wishes) add(more []maker) {
	for _, m := range more {
		w.makers = append(w.makers, m)
		w.weights += m.weight
	}
}

// Next makes a command; nil if the chosen kind has no target.
func (w *Wishes) Next(v *cell.View, now domain.Time) kernel.Command {
	cmd := w.wish(v, now)
	if cmd != nil {
		if x, ok := kernel.Unwrapped(cmd).(quota.Taker); ok { // in turn: no holder, the players, and three keys
			w.holders++
			x.Hold(quota.Holder(w.holders % 5))
		}
	}
	return cmd
}

func (w *Wishes) wish(v *cell.View, now domain.Time) kernel.Command {
	w.now = now
	if cmd := w.begin(v); cmd != nil {
		return cmd
	}
	makers, weights := w.makers, w.weights
	if w.lively && !w.oneIn(16) {
		if !w.oneIn(5) {
			return w.next(v)
		}
		makers, weights = w.players, w.playersWeights
	}
	at := w.chance.IntN(max(weights, 1))
	for _, m := range makers {
		if at -= m.weight; at < 0 {
			return m.make(w, v)
		}
	}
	return nil
}

// begin creates what all other commands need, most of the time if it does not exist.
func (w *Wishes) begin(v *cell.View) kernel.Command {
	if w.oneIn(3) {
		return nil
	}
	fleets := anywhere(v)
	switch {
	case len(v.Locations("", 1)) == 0:
		return createLocation(w, v)
	case len(fleets) == 0:
		return createFleet(w, v)
	case len(v.Computes(fleets[0].ID, "", 0, "", 1)) == 0:
		return registerCompute(w, v)
	}
	return nil
}

// processesOnHost is the number of process ids on each host.
const processesOnHost = 4

var makers = []maker{
	{2, createLocation}, {1, deleteLocation}, {2, createFleet}, {2, updateFleet}, {1, deleteFleet}, {1, addLocations},
	{1, removeLocations}, {1, tagResource}, {3, registerCompute}, {1, deregisterCompute}, {2, issueToken},
	{20, createGame}, {5, updateGame}, {2, terminateGame}, {30, reservePlayers},
	{20, connectProcess}, {3, loseLink}, {20, activateProcess}, {25, reportHealth}, {4, settleProcess}, {4, refreshProcess},
	{14, promptGame}, {20, activateGame}, {3, setPolicy}, {25, acceptPlayer}, {12, removePlayer}, {3, releasePlayer}, {3, endProcess},
	{3, createQueue}, {1, updateQueue}, {1, deleteQueue}, {15, startPlacement}, {3, stopPlacement}, {1, confirmSubscription},
	{3, createAlias}, {6, updateAlias}, {1, deleteAlias}, {4, drainCompute},
	{2, createGroup}, {1, updateGroup}, {1, deleteGroup}, {6, registerGameServer}, {8, claimGameServer}, {8, updateGameServer}, {2, deregisterGameServer},
	{4, createRuleSet}, {1, deleteRuleSet}, {6, createMatchmaker}, {2, updateMatchmaker}, {1, deleteMatchmaker}, {30, startMatchmaking},
	{8, startBackfill}, {5, beginSearch}, {30, proposeMatches}, {20, acceptMatch}, {3, stopMatchmaking}, {2, tellHosted}, {1, failTickets},
	{1, createBuild}, {1, createManagedFleet}, {4, updateRuntime}, {1, setCapacity}, {1, switchScaling}, {1, putScalingPolicy}, {1, deleteScalingPolicy},
	{3, createAccessKey}, {2, revokeAccessKey}, {2, rotateAccessKey}, {1, rotateSecret}, {1, revokeCredentials}, {1, changePolicy}, {2, attachPolicy},
	{3, startSignIn}, {1, renewSignIn}, {1, endSignIn}, {1, noteUses}, {1, addPerson}, {1, changePerson}, {1, removePerson}, {2, issueEnrolment}, {2, addPasskey}, {2, usePasskey},
}

// oneIn is true with a chance of one in n.
func (w *Wishes) oneIn(n int) bool { return w.chance.IntN(n) == 0 }

func (w *Wishes) number() uint64 { w.made++; return w.made }

func (w *Wishes) request() uint64 { return kernel.RequestHash(fmt.Sprint("request-", w.number())) }

func (w *Wishes) uuid() domain.UUID {
	var id domain.UUID
	binary.BigEndian.PutUint64(id[:8], w.chance.Uint64()|1)
	binary.BigEndian.PutUint64(id[8:], w.number())
	return id
}

func (w *Wishes) locationName() string { return fmt.Sprint("custom-", w.chance.IntN(3)) }

// Commands are about these places. Names of fleets are not reused, so recent fleets are the likely ones.

func (w *Wishes) fleet(v *cell.View) (fleet.Fleet, bool) {
	fleets := v.Fleets(0, "", 100)
	if len(fleets) == 0 {
		return fleet.Fleet{}, false
	}
	return fleets[w.chance.IntN(len(fleets))], true
}

func (w *Wishes) compute(v *cell.View) (fleet.Compute, bool) {
	f, _ := w.fleet(v)
	computes := v.Computes(f.ID, "", 0, "", 100)
	if len(computes) == 0 {
		return fleet.Compute{}, false
	}
	return computes[w.chance.IntN(len(computes))], true
}

func (w *Wishes) process(v *cell.View) (fleet.Key, bool) {
	x, ok := w.compute(v)
	return fleet.Key{Fleet: x.FleetID, Compute: x.Name, Process: fmt.Sprint("p", w.chance.IntN(processesOnHost))}, ok
}

func (w *Wishes) game(v *cell.View) (session.GameSession, bool) {
	f, _ := w.fleet(v)
	games, _, _ := v.GameSessions(f.ID, hosting.GameFilter{}, 0, "", 1000)
	if len(games) == 0 {
		return session.GameSession{}, false
	}
	if live := games[max(0, len(games)-6):]; !w.oneIn(5) {
		games = live
	}
	return games[w.chance.IntN(len(games))], true
}

// host returns the process that hosts a game session, or now and then one that pretends to.
func (w *Wishes) host(v *cell.View, g *session.GameSession) fleet.Key {
	if w.oneIn(12) {
		if liar, ok := w.process(v); ok {
			return liar
		}
	}
	return fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID}
}

// player returns a player session of a game session; zero if there is none.
func (w *Wishes) player(v *cell.View, g *session.GameSession) domain.PlayerSessionID {
	players := v.PlayersIn(g.ID, 0, 0, domain.PlayerSessionID{}, 1000)
	if len(players) == 0 {
		return domain.PlayerSessionID{}
	}
	return players[w.chance.IntN(len(players))].ID
}

func createLocation(w *Wishes, _ *cell.View) kernel.Command {
	return &hosting.CreateLocation{Name: w.locationName(), Region: "us-east-1", Account: "1"}
}

func deleteLocation(w *Wishes, _ *cell.View) kernel.Command {
	return &hosting.DeleteLocation{Name: w.locationName()}
}

func createFleet(w *Wishes, v *cell.View) kernel.Command {
	if len(anywhere(v)) >= 2 {
		return nil
	}
	id := fmt.Sprint("fleet-", w.number())
	cmd := &hosting.CreateFleet{Fleet: fleet.Fleet{ID: id, Region: "us-east-1", Account: "1", Name: id}, Locations: []string{w.locationName()}}
	if w.oneIn(3) {
		cmd.Locations = []string{"custom-0", "custom-1"}
	}
	return cmd
}

func updateFleet(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	protected := w.oneIn(2)
	cmd := &hosting.UpdateFleetAttributes{ID: f.ID, FullProtection: &protected}
	if w.oneIn(2) {
		cmd.CreationPolicy = &fleet.CreationPolicy{Sessions: int32(w.chance.IntN(3)), Period: time.Duration(w.chance.IntN(3)) * time.Minute}
	}
	return cmd
}

func deleteFleet(w *Wishes, v *cell.View) kernel.Command {
	if f, ok := w.fleet(v); ok && w.oneIn(4) {
		return &hosting.DeleteFleet{ID: f.ID}
	}
	return nil
}

func addLocations(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	return &hosting.AddFleetLocations{ID: f.ID, Locations: []string{w.locationName()}}
}

func removeLocations(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	return &hosting.RemoveFleetLocations{ID: f.ID, Locations: []string{w.locationName()}}
}

func tagResource(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	return &cell.TagResource{Resource: cell.Resource{Kind: cell.FleetResource, ID: f.ID}, Tags: []fleet.Tag{{Key: fmt.Sprint(w.chance.IntN(3)), Value: fmt.Sprint(w.number())}}, Untag: []string{"0"}}
}

// drainCompute keeps new game sessions away from a compute, or allows them again.
func drainCompute(w *Wishes, v *cell.View) kernel.Command {
	x, ok := w.compute(v)
	if !ok {
		return nil
	}
	cmd := &cell.TagResource{Resource: cell.Resource{Kind: cell.ComputeResource, ID: x.FleetID + "/" + x.Name}}
	switch {
	case !x.Draining():
		cmd.Tags = []fleet.Tag{{Key: fleet.DrainTag, Value: "true"}}
	case w.oneIn(2):
		cmd.Tags = []fleet.Tag{{Key: fleet.DrainTag, Value: "false"}}
	default:
		cmd.Untag = []string{fleet.DrainTag}
	}
	return cmd
}

func registerCompute(w *Wishes, v *cell.View) kernel.Command {
	f, ok := w.fleet(v)
	if !ok || len(f.Locations) == 0 {
		return nil
	}
	at := f.Locations[w.chance.IntN(len(f.Locations))].Name
	return &hosting.RegisterCompute{Compute: fleet.Compute{FleetID: f.ID, Name: fmt.Sprint("host-", w.chance.IntN(2)), Location: at, IPAddress: fmt.Sprint("10.0.0.", w.chance.IntN(9))}}
}

func deregisterCompute(w *Wishes, v *cell.View) kernel.Command {
	x, ok := w.compute(v)
	if !ok || !w.oneIn(4) {
		return nil
	}
	return &hosting.DeregisterCompute{Fleet: x.FleetID, Name: x.Name}
}

func issueToken(w *Wishes, v *cell.View) kernel.Command {
	x, _ := w.compute(v)
	if w.oneIn(8) {
		return &hosting.RotateToken{Fleet: x.FleetID, Compute: x.Name, KeepLinks: w.oneIn(2)}
	}
	return &hosting.IssueToken{Fleet: x.FleetID, Compute: x.Name}
}

func createGame(w *Wishes, v *cell.View) kernel.Command {
	f, alias, ok := w.fleetOrAlias(v)
	if !ok || len(f.Locations) == 0 {
		return nil
	}
	cmd := &hosting.CreateGameSession{
		Fleet: f.ID, Alias: alias, Location: f.Locations[w.chance.IntN(len(f.Locations))].Name, Title: "game", PlayersMax: int32(w.chance.IntN(4)),
		Properties: []session.Property{{Key: "mode", Value: fmt.Sprint(w.chance.IntN(3))}},
	}
	if w.oneIn(4) {
		cmd.Creator = fmt.Sprint("creator-", w.chance.IntN(3))
	}
	if w.oneIn(3) { // a token: the name may be repeated, mostly with the same parameters
		cmd.Name, cmd.Parameters = fmt.Sprint("token-", w.chance.IntN(int(4+w.made/200))), 7
		if w.oneIn(8) {
			cmd.Parameters = 8
		}
	} else {
		cmd.Name = fmt.Sprint("gsess-", w.number())
	}
	return cmd
}

func updateGame(w *Wishes, v *cell.View) kernel.Command {
	g, ok := w.game(v)
	if !ok {
		return nil
	}
	cmd := &hosting.UpdateGameSession{ID: g.ID}
	if w.oneIn(2) {
		cmd.PlayersMax = new(int32(w.chance.IntN(5)))
	}
	if w.oneIn(2) {
		cmd.DenyPlayers = new(w.oneIn(3))
	}
	if w.oneIn(3) {
		cmd.Properties = []session.Property{{Key: fmt.Sprint("k", w.chance.IntN(3)), Value: "v"}}
	}
	return cmd
}

func terminateGame(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	return &hosting.TerminateGameSession{ID: g.ID, Force: w.oneIn(5), Agent: w.oneIn(2)}
}

func reservePlayers(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	cmd := &hosting.ReservePlayers{Game: g.ID}
	for range 1 + w.chance.IntN(2) {
		cmd.Players = append(cmd.Players, hosting.NewPlayer{ID: domain.PlayerSessionID(w.uuid()), Player: fmt.Sprint("player-", w.chance.IntN(20))})
	}
	return cmd
}

func connectProcess(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	if p, ok := v.Process(key); ok && p.Linked && p.State != fleet.Ended && !w.oneIn(10) {
		return nil
	}
	return &hosting.ConnectProcess{Process: key, Link: w.number(), SDK: "Go 5.5.0"}
}

func loseLink(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	p, _ := v.Process(key)
	if w.oneIn(4) {
		p.Link = w.number()
	}
	return &hosting.LoseLink{Process: key, Link: p.Link}
}

func activateProcess(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	p, _ := v.Process(key)
	if p.State == fleet.ProcessReady && !w.oneIn(15) {
		return nil
	}
	return &hosting.ActivateProcess{Process: key, Link: p.Link, Port: uint16(7000 + w.chance.IntN(9)), Request: w.request(), SDK: "Go 5.5.0"}
}

func reportHealth(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	return &hosting.ReportHealth{Process: key, Healthy: !w.oneIn(6), LastHealthy: w.now.Add(-time.Duration(w.chance.IntN(100)) * time.Second)}
}

func settleProcess(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	return &hosting.SettleProcess{Process: key}
}

func refreshProcess(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	return &hosting.RefreshProcess{Process: key, Begin: w.oneIn(3)}
}

func promptGame(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	return &hosting.PromptGameSession{Process: w.host(v, &g), Game: g.ID}
}

func activateGame(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	return &hosting.ActivateGameSession{Process: w.host(v, &g), Game: g.ID}
}

func setPolicy(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	return &hosting.SetPlayerPolicy{Process: w.host(v, &g), Game: g.ID, Deny: w.oneIn(3), Request: w.request()}
}

func acceptPlayer(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	p := w.player(v, &g)
	return &hosting.AcceptPlayer{Process: w.host(v, &g), Game: g.ID, Player: p, Request: w.request()}
}

func removePlayer(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	p := w.player(v, &g)
	return &hosting.RemovePlayer{Process: w.host(v, &g), Game: g.ID, Player: p}
}

func releasePlayer(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	p := w.player(v, &g)
	return &hosting.ReleasePlayer{Player: p}
}

// endProcess makes a process end normally, or an agent report its end.
func endProcess(w *Wishes, v *cell.View) kernel.Command {
	key, _ := w.process(v)
	request := w.request()
	reasons := []string{"SERVER_PROCESS_CRASHED", "NORMAL_TERMINATION", "SERVER_PROCESS_PROCESS_READY_TIMEOUT"}
	at := w.made % 6 // not random, so that the other wishes of a seed stay the same
	if int(at) >= len(reasons) {
		return &hosting.EndProcess{Process: key, Request: request}
	}
	cmd := &hosting.ReportExit{Process: key, Exit: exit.Report{Reason: reasons[at], HasCode: true, Output: "bye"}}
	if reasons[at] != "NORMAL_TERMINATION" {
		cmd.Event = reasons[at]
	}
	return cmd
}
