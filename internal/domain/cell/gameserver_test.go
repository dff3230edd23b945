package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
)

// registry makes a group with game servers.
func (w *world) registry(group string, ids ...string) {
	w.must(&CreateGameServerGroup{Group: gameservers.Group{
		Name: group, SizeMax: 1, Template: gameservers.LaunchTemplate{Name: "arena"}, Instances: []gameservers.InstanceType{{Name: "c5.large", Weight: "2"}},
	}})
	for _, id := range ids {
		w.now++
		w.must(&RegisterGameServer{Server: gameservers.Server{ID: id, Group: group, Instance: "i-" + id}})
	}
}

func TestGameServersSurviveRestarts(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	w.must(&CreateAlias{Alias: fleet.Alias{ID: "alias-1", Name: "live", Fleet: testFleet, Tags: []fleet.Tag{{Key: "a", Value: "b"}}}})
	w.must(&CreateAlias{Alias: fleet.Alias{ID: "alias-2", Name: "old", Terminal: true, Message: "bye"}})
	w.must(&DeleteAlias{ID: "alias-1"})
	w.must(&CreateBuild{Build: fleet.Build{ID: "build-1", Name: "arena", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&CreateBuild{Build: fleet.Build{ID: "build-2", OperatingSystem: "AMAZON_LINUX_2023"}})
	w.must(&DeleteBuild{ID: "build-1"})
	w.registry("arena", "s1", "s2", "s3")
	w.registry("ending", "s4")
	w.registry("gone", "s5")
	w.must(&ClaimGameServer{Group: "arena"})
	w.must(&ClaimGameServer{Group: "arena", ID: "s3"})
	utilized := true
	w.must(&UpdateGameServer{Group: "arena", ID: "s3", Utilized: &utilized})
	w.must(&DeleteGameServerGroup{Name: "ending"})
	w.must(&DeleteGameServerGroup{Name: "gone", Force: true})
	w.must(&DeregisterGameServer{Group: "arena", ID: "s2"})
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
	if free, ok := w.cell.gameServers.Free("arena"); ok {
		t.Errorf("%s can be claimed, want none", w.cell.gameServers.Servers.Get(free).ID)
	}
}

// A game server that could not reach us while we were down is not late.
func TestGameServersAreNotLateForAServiceThatWasDown(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.registry("arena", "s1")
	w.must(&ClaimGameServer{Group: "arena"})
	w.now = w.now.Add(time.Hour)
	w.must(&Resume{})
	w.must(&Tick{})
	x, err := w.cell.gameServer("arena", "s1")
	if err != nil || x.ClaimBy == 0 {
		t.Fatalf("the game server is gone or free: %+v %v", x, err)
	}
	w.now = w.now.Add(61 * time.Second)
	w.must(&Tick{})
	if x, err = w.cell.gameServer("arena", "s1"); err != nil || x.ClaimBy != 0 {
		t.Fatalf("a minute later the claim should be over, and the game server there: %+v %v", x, err)
	}
	w.now = w.now.Add(3 * time.Minute)
	w.must(&Tick{})
	if _, err := w.cell.gameServer("arena", "s1"); err == nil {
		t.Error("a silent game server is still there")
	}
}
