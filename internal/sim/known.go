package sim

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/session"
)

// known has everything that clients ever received, in answers to commands or from reads. Each fact must stay true, or be followed only by
// permitted changes.
type known struct {
	players     map[domain.PlayerSessionID]*knownPlayer
	playerOrder []domain.PlayerSessionID // the order of a map is not repeatable
	games       map[session.ID]*knownGame
	gameOrder   []session.ID
	computes    map[[2]string]*knownCompute
	computeKeys [][2]string
	fleets      map[string]bool // false: a command to delete it was sent
	doubted     map[string]bool // fleets with computes that a command may have removed
	fleetsEver  []string
	repeats     []repetition

	placements     map[string]*knownPlacement
	placementOrder []string
	aliases        map[string]*knownAlias
	aliasOrder     []string
	servers        map[string]*knownServer
	serverOrder    []string
	subscriptions  [][2]string // topic and URL
	accessKeys     map[string]*knownAccessKey
	accessKeyOrder []string
	signInsEnded   []string
	pushes         []push // that were sent
}

type knownPlayer struct {
	game    session.ID
	player  string
	created domain.Time
	status  session.PlayerStatus
	accept  uint64
}

type knownGame struct {
	process, compute string
	created          domain.Time
	status           session.Status
	prompted         bool
	parameters       uint64
}

type knownCompute struct{ generation uint32 }

func newKnown() known {
	return known{
		players: map[domain.PlayerSessionID]*knownPlayer{}, games: map[session.ID]*knownGame{}, computes: map[[2]string]*knownCompute{}, fleets: map[string]bool{}, doubted: map[string]bool{},
		placements: map[string]*knownPlacement{}, aliases: map[string]*knownAlias{}, servers: map[string]*knownServer{},
		accessKeys: map[string]*knownAccessKey{},
	}
}

// learner returns the function for the answer to a command. A command to delete counts from now on, answered or not.
func (k *known) learner(w *World, cmd kernel.Command) func(error) {
	switch cmd := cmd.(type) {
	case *hosting.DeleteFleet:
		k.fleets[cmd.ID], k.doubted[cmd.ID] = false, true
	case *hosting.RemoveFleetLocations:
		k.doubted[cmd.ID] = true
	case *hosting.DeregisterCompute:
		k.doubted[cmd.Fleet] = true
	case *hosting.CreateAlias:
		k.aliases[cmd.Alias.ID] = &knownAlias{}
		k.aliasOrder = append(k.aliasOrder, cmd.Alias.ID)
	case *hosting.DeleteAlias:
		if a := k.aliases[cmd.ID]; a != nil {
			a.doubted = true
		}
	case *access.RevokeAccessKey:
		k.accessKey(cmd.ID).doubted = true
	case *access.EndSecret:
		for _, id := range k.accessKeyOrder {
			k.accessKeys[id].doubted = k.accessKeys[id].doubted || cmd.Revoke
		}
	case *access.FinishRotation:
		k.accessKey(cmd.ID).doubted = true
	case *gameservers.RegisterGameServer:
		k.askedServer(&cmd.Server)
	case *gameservers.DeregisterGameServer:
		k.doubtServers(cmd.Group, cmd.ID)
	case *gameservers.DeleteGameServerGroup:
		if cmd.Force {
			k.doubtServers(cmd.Name, "")
		}
	}
	return func(err error) {
		switch {
		case errors.Is(err, errLost):
		case err == nil:
			w.counts.Acknowledged++
			k.learn(w, cmd)
		default:
			if _, ok := errors.AsType[*domain.Refusal](err); !ok {
				w.violated("%T was answered with %v", cmd, err)
			}
		}
	}
}

// learn records the answer to a command.
func (k *known) learn(w *World, cmd kernel.Command) {
	switch cmd := cmd.(type) {
	case *hosting.CreateFleet:
		if _, ok := k.fleets[cmd.Fleet.ID]; !ok {
			k.fleets[cmd.Fleet.ID] = true
		}
	case *hosting.RegisterCompute:
		key := [2]string{cmd.Compute.FleetID, cmd.Compute.Name}
		if k.computes[key] == nil {
			k.computes[key] = &knownCompute{}
			k.computeKeys = append(k.computeKeys, key)
		}
	case *hosting.IssueToken:
		if x := k.computes[[2]string{cmd.Fleet, cmd.Compute}]; x != nil && !k.doubted[cmd.Fleet] {
			if cmd.Generation < x.generation {
				w.violated("token generation %d of %s after %d", cmd.Generation, cmd.Compute, x.generation)
			}
			x.generation = cmd.Generation
		}
	case *hosting.CreateGameSession:
		k.toldGame(w, cmd.Game)
		if k.games[cmd.Game.ID].parameters != cmd.Parameters {
			w.violated("%s was given for parameters %d", cmd.Game.ID, cmd.Parameters)
		}
	case *hosting.UpdateGameSession:
		k.toldGame(w, cmd.Game)
	case *hosting.TerminateGameSession:
		k.toldGame(w, cmd.Game)
	case *hosting.PromptGameSession:
		k.toldGame(w, cmd.Prompted)
		k.toldPush(cmd)
	case *hosting.StartPlacement:
		k.toldPlacement(w, cmd.Placement)
	case *hosting.StopPlacement:
		k.toldPlacement(w, cmd.Placement)
	case *access.CreateAccessKey:
		k.accessKey(cmd.Key.ID).created = true
	case *access.RevokeAccessKey:
		k.accessKey(cmd.ID).revoked = true
	case *people.EndSession:
		k.signInsEnded = append(k.signInsEnded, cmd.ID)
	case *access.FinishRotation:
		k.accessKey(cmd.ID).revoked = true
	case *access.RotateAccessKey:
		k.accessKey(cmd.Successor.ID).created = true
	case *hosting.CreateAlias:
		k.toldAlias(w, &cmd.Alias)
	case *hosting.UpdateAlias:
		k.toldAlias(w, &cmd.Alias)
	case *gameservers.RegisterGameServer:
		k.toldServer(w, &cmd.Server)
	case *gameservers.ClaimGameServer:
		k.toldClaim(w, &cmd.Server)
	case *gameservers.UpdateGameServer:
		k.toldServer(w, &cmd.Server)
	case *notice.ConfirmSubscription:
		k.subscriptions = append(k.subscriptions, [2]string{cmd.Topic, cmd.URL})
	case *hosting.ReservePlayers:
		for i := range cmd.Reserved {
			k.toldPlayer(w, &cmd.Reserved[i])
		}
	case *hosting.AcceptPlayer:
		if p := k.players[cmd.Player]; p != nil {
			p.status, p.accept = max(p.status, session.PlayerActive), cmd.Request
		}
	case *hosting.RemovePlayer:
		if p := k.players[cmd.Player]; p != nil {
			p.status = session.Completed
		}
	case *hosting.ReleasePlayer:
		k.toldPlayer(w, &cmd.Released)
	}
	w.toldCall(cmd)
	k.remember(w, cmd)
}

// toldGame records a game session that a client received, and compares it with earlier answers.
func (k *known) toldGame(w *World, g session.GameSession) {
	if g.Placement != "" {
		return // another attempt of the placement may take the id
	}
	old := k.games[g.ID]
	if old == nil {
		old = &knownGame{process: g.ProcessID, compute: g.ComputeName, created: g.Created, parameters: g.Parameters}
		k.games[g.ID] = old
		k.gameOrder = append(k.gameOrder, g.ID)
	}
	if err := old.mayBe(&g); err != nil {
		w.violated("%s: %v", g.ID, err)
	}
	old.status, old.prompted = g.Status, g.Prompted
}

// sawGame records a game session that a client read a while ago; other clients may have received later changes since.
func (k *known) sawGame(g *session.GameSession) {
	if old := k.games[g.ID]; old != nil {
		old.status, old.prompted = max(old.status, g.Status), old.prompted || g.Prompted
	}
}

// sawPlayer is the same for a player session.
func (k *known) sawPlayer(p *hosting.PlayerSession) {
	if old := k.players[p.ID]; old != nil {
		old.status, old.accept = max(old.status, p.Status), max(old.accept, p.Accept)
	}
}

// mayBe checks that the known state may have become g.
func (k *knownGame) mayBe(g *session.GameSession) error {
	switch {
	case g.ProcessID != k.process || g.ComputeName != k.compute || g.Created != k.created || g.Parameters != k.parameters:
		return fmt.Errorf("it was on %s/%s since %v, is on %s/%s since %v", k.compute, k.process, k.created, g.ComputeName, g.ProcessID, g.Created)
	case g.Status < k.status:
		return fmt.Errorf("it was %s, is %s", k.status, g.Status)
	case k.prompted && !g.Prompted:
		return errors.New("it was pushed to its server, and could be pushed again")
	}
	return nil
}

func (k *known) toldPlayer(w *World, p *hosting.PlayerSession) {
	old := k.players[p.ID]
	if old == nil {
		old = &knownPlayer{game: p.GameID, player: p.Player, created: p.Created}
		k.players[p.ID] = old
		k.playerOrder = append(k.playerOrder, p.ID)
	}
	if err := old.mayBe(p); err != nil {
		w.violated("%s: %v", p.ID, err)
	}
	old.status, old.accept = p.Status, p.Accept
}

func (k *knownPlayer) mayBe(p *hosting.PlayerSession) error {
	possible := map[session.PlayerStatus]string{
		session.Reserved: "RESERVED ACTIVE COMPLETED TIMEDOUT", session.PlayerActive: "ACTIVE COMPLETED",
		session.Completed: "COMPLETED", session.TimedOut: "TIMEDOUT",
	}
	switch {
	case p.GameID != k.game || p.Player != k.player || p.Created != k.created:
		return fmt.Errorf("it was %s in %s since %v, is %s in %s since %v", k.player, k.game, k.created, p.Player, p.GameID, p.Created)
	case k.status != 0 && !contains(possible[k.status], p.Status.String()):
		return fmt.Errorf("it was %s, is %s", k.status, p.Status)
	case k.accept != 0 && p.Accept != k.accept:
		return fmt.Errorf("it was accepted by request %x, now by %x", k.accept, p.Accept)
	}
	return nil
}

// look reads a known record, which must be as in earlier answers or a permitted change of it, and returns a function that learns it once
// it is durable.
func (k *known) look(w *World, v *cell.View) func() {
	if w.oneIn(2) && len(k.gameOrder) > 0 {
		id := k.gameOrder[w.chance.IntN(len(k.gameOrder))]
		g, ok := v.GameSession(id)
		if !ok {
			return func() {}
		}
		if err := k.games[id].mayBe(&g); err != nil {
			w.violated("%s: %v", id, err)
		}
		return func() { k.sawGame(&g) }
	}
	if len(k.playerOrder) == 0 {
		return func() {}
	}
	id := k.playerOrder[w.chance.IntN(len(k.playerOrder))]
	p, ok := v.PlayerSession(id)
	if !ok {
		return func() {}
	}
	if err := k.players[id].mayBe(&p); err != nil {
		w.violated("%s: %v", id, err)
	}
	return func() { k.sawPlayer(&p) }
}

// checkKnown compares everything acknowledged with memory and archive.
func (w *World) checkKnown() {
	n, k := w.node, &w.known
	v := n.seq.Cell().View()
	for _, id := range k.gameOrder {
		g, ok := v.GameSession(id)
		if !ok {
			g, ok = w.archivedGame(n.archive, id)
		}
		if !ok {
			w.violated("%s is gone; it was %s", id, k.games[id].status)
		}
		if err := k.games[id].mayBe(&g); err != nil {
			w.violated("%s: %v", id, err)
		}
	}
	for _, id := range k.playerOrder {
		p, ok := v.PlayerSession(id)
		if !ok {
			p, ok = w.archivedPlayer(n.archive, id)
		}
		if !ok {
			w.violated("%s is gone; it was %s", id, k.players[id].status)
		}
		if err := k.players[id].mayBe(&p); err != nil {
			w.violated("%s: %v", id, err)
		}
	}
	for _, key := range k.computeKeys {
		x, ok := v.Compute(key[0], key[1])
		if fact := k.computes[key]; !k.doubted[key[0]] && (!ok || x.TokenGeneration < fact.generation) {
			w.violated("compute %v is gone, or its token generation %d is behind %d", key, x.TokenGeneration, fact.generation)
		}
	}
	for _, id := range k.fleetsEver {
		if f, ok := v.Fleet(id); k.fleets[id] && (!ok || f.Status == fleet.Deleting) {
			w.violated("fleet %s is gone, and no command deleted it", id)
		}
	}
	w.checkPushes()
	w.checkAliases(&v)
	w.checkAccessKeys(&v)
	w.checkPolicies(&v)
	w.checkSignIns(&v)
	w.checkAuditLog(&v)
	w.checkKnownServers(&v)
	for _, s := range k.subscriptions {
		if !v.Subscribed(s[0], s[1]) {
			w.violated("%s has confirmed that it wants to hear of %s, and is forgotten", s[1], s[0])
		}
	}
}

// archived returns the archive's record of an id, or nil.
func (w *World) archived(a archive.Archive, kind archive.Kind, id string) []byte {
	record, ok, err := a.Get(background, kind, id)
	if err != nil {
		w.unreadable("archive", err)
	}
	if !ok {
		return nil
	}
	return record.Data
}

func (w *World) archivedGame(a archive.Archive, id session.ID) (session.GameSession, bool) {
	data := w.archived(a, archive.GameSession, string(id))
	if data == nil {
		return session.GameSession{}, false
	}
	g, err := hosting.DecodeGameSession(data)
	if err != nil || g.Live() {
		w.violated("archive: %s is %s, %v", id, g.Status, err)
	}
	return g, true
}

func (w *World) archivedPlayer(a archive.Archive, id domain.PlayerSessionID) (hosting.PlayerSession, bool) {
	data := w.archived(a, archive.PlayerSession, string(id[:]))
	if data == nil {
		return hosting.PlayerSession{}, false
	}
	p, err := hosting.DecodePlayerSession(data)
	if err != nil || p.Status.Live() {
		w.violated("archive: %s is %s, %v", id, p.Status, err)
	}
	return p, true
}
