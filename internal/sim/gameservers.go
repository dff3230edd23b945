package sim

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func (w *Wishes) groupName() string { return fmt.Sprint("group-", w.chance.IntN(2)) }

// gameServer names a game server, which may or may not exist.
func (w *Wishes) gameServer(v *cell.View) (group, id string) {
	group = w.groupName()
	if all, _ := v.GameServers(group, catalog.Place{}, false, 10); len(all) > 0 && !w.oneIn(8) {
		return group, all[w.chance.IntN(len(all))].ID
	}
	return group, fmt.Sprint("server-", w.chance.IntN(6))
}

func createGroup(w *Wishes, _ *cell.View) kernel.Command {
	return &gameservers.CreateGameServerGroup{Group: gameservers.Group{
		Name: w.groupName(), Region: "us-east-1", Account: "1", Role: "arn:aws:iam::1:role/r", SizeMax: 1,
		Template: gameservers.LaunchTemplate{ID: "lt-1"}, Instances: []gameservers.InstanceType{{Name: "c5.large"}, {Name: "c4.large"}},
	}}
}

func updateGroup(w *Wishes, _ *cell.View) kernel.Command {
	suspended := w.oneIn(2)
	return &gameservers.UpdateGameServerGroup{Name: w.groupName(), Suspended: &suspended}
}

func deleteGroup(w *Wishes, _ *cell.View) kernel.Command {
	if !w.oneIn(4) {
		return nil
	}
	return &gameservers.DeleteGameServerGroup{Name: w.groupName(), Force: w.oneIn(3)}
}

func registerGameServer(w *Wishes, _ *cell.View) kernel.Command {
	return &gameservers.RegisterGameServer{Server: gameservers.Server{
		ID: fmt.Sprint("server-", w.chance.IntN(6)), Group: w.groupName(), Instance: fmt.Sprint("i-", w.chance.IntN(2)),
		Connection: fmt.Sprint("10.0.0.1:", w.number()), // unique for each registration
	}}
}

func claimGameServer(w *Wishes, v *cell.View) kernel.Command {
	if w.oneIn(2) {
		return &gameservers.ClaimGameServer{Group: w.groupName(), None: w.oneIn(10)}
	}
	group, id := w.gameServer(v)
	data := fmt.Sprint("match-", w.number())
	return &gameservers.ClaimGameServer{Group: group, ID: id, Data: &data}
}

func updateGameServer(w *Wishes, v *cell.View) kernel.Command {
	group, id := w.gameServer(v)
	cmd := &gameservers.UpdateGameServer{Group: group, ID: id, Healthy: !w.oneIn(5)}
	if w.oneIn(4) {
		cmd.Utilized = new(!w.oneIn(4))
	}
	return cmd
}

func deregisterGameServer(w *Wishes, v *cell.View) kernel.Command {
	group, id := w.gameServer(v)
	return &gameservers.DeregisterGameServer{Group: group, ID: id}
}

// knownServer is the acknowledged state of a game server's registration, by its connection, because ids are reused.
type knownServer struct {
	id, group string
	claimBy   domain.ContactTime // until then it belongs to the last claim
	healthBy  domain.ContactTime // until then it stays; 0: its registration was not acknowledged
	utilized  bool
	doubted   bool // a command to remove it, or its group, was sent
}

// askedServer records a game server that is about to be registered, because a command to remove it may precede the answer.
func (k *known) askedServer(x *gameservers.Server) {
	k.servers[x.Connection] = &knownServer{id: x.ID, group: x.Group}
	k.serverOrder = append(k.serverOrder, x.Connection)
}

// toldServer records a game server from the answers to its own requests.
func (k *known) toldServer(w *World, x *gameservers.Server) *knownServer {
	old := k.servers[x.Connection]
	if old.utilized && !x.Utilized {
		w.violated("game server %s was UTILIZED, and is not", x.ID)
	}
	old.utilized, old.healthBy = x.Utilized, max(old.healthBy, x.HealthBy)
	return old
}

// toldClaim records that a caller has claimed a game server, which no other caller may get.
func (k *known) toldClaim(w *World, x *gameservers.Server) {
	old := k.toldServer(w, x)
	claimed := x.ClaimBy - domain.ContactTime(w.cell.GameServers.GameServerClaim.Milliseconds())
	if old.utilized || claimed < old.claimBy {
		w.violated("game server %s is claimed at %v; it was claimed until %v, utilized %t", x.ID, claimed, old.claimBy, old.utilized)
	}
	old.claimBy = x.ClaimBy
}

// doubtServers records a command to remove one game server, or with id "" all of a group.
func (k *known) doubtServers(group, id string) {
	for _, x := range k.servers {
		if x.group == group && (id == "" || x.id == id) {
			x.doubted = true
		}
	}
}

// refusedClaim: no claim is refused while a game server is free.
func (w *World) refusedClaim(cmd *gameservers.ClaimGameServer, reason domain.Reason) {
	v := w.node.seq.Cell().View()
	g, err := v.GameServerGroup(cmd.Group)
	if reason != domain.NoCapacity || cmd.None || err != nil || g.Deleting {
		return
	}
	all, _ := v.GameServers(cmd.Group, catalog.Place{}, false, 1<<20)
	for i := range all {
		if all[i].Free() {
			w.violated("a claim in %s was refused, and %s is free", cmd.Group, all[i].ID)
		}
	}
}

// eachGameServer calls f for every game server.
func eachGameServer(v *cell.View, f func(*gameservers.Group, *gameservers.Server)) {
	for _, g := range v.GameServerGroups(catalog.Place{}, 100) {
		all, _ := v.GameServers(g.Name, catalog.Place{}, false, 1<<20)
		for i := range all {
			f(&g, &all[i])
		}
	}
}

func (w *World) checkGameServers(v *cell.View) {
	eachGameServer(v, func(g *gameservers.Group, x *gameservers.Server) {
		w.waits("game server "+x.ID+" to be healthy", true, x.HealthBy, w.cell.GameServers.GameServerHealth)
		w.waits("game server "+x.ID+" to be utilized", x.ClaimBy != 0, x.ClaimBy, w.cell.GameServers.GameServerClaim)
		if x.Utilized && x.ClaimBy != 0 || x.Group != g.Name {
			w.violated("game server %s in group %s: %+v", x.ID, g.Name, x)
		}
	})
	for _, g := range v.GameServerGroups(catalog.Place{}, 100) {
		if all, _ := v.GameServers(g.Name, catalog.Place{}, false, 1); g.Deleting && len(all) == 0 {
			w.violated("group %s is still being deleted, and has no game server", g.Name)
		}
	}
}

// checkKnownServers: a game server that was acknowledged stays as long as its health is good, unless a command removed it.
func (w *World) checkKnownServers(v *cell.View) {
	contact := domain.ContactTime(w.time() - w.node.down)
	for _, connection := range w.known.serverOrder {
		k := w.known.servers[connection]
		if k.doubted || contact >= k.healthBy {
			continue
		}
		x, err := v.GameServer(k.group, k.id)
		claimHolds := x.Utilized || contact >= k.claimBy || x.ClaimBy >= k.claimBy
		if err != nil || x.Connection != connection || k.utilized && !x.Utilized || !claimHolds {
			w.violated("game server %s of %s was %+v, is %+v, %v", k.id, k.group, *k, x, err)
		}
	}
}
