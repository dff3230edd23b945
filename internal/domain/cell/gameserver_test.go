package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// registry makes a group with game servers.
func (w *world) registry(group string, ids ...string) {
	w.must(&gameservers.CreateGameServerGroup{Group: gameservers.Group{
		Name: group, SizeMax: 1, Template: gameservers.LaunchTemplate{Name: "arena"}, Instances: []gameservers.InstanceType{{Name: "c5.large", Weight: "2"}},
	}})
	for _, id := range ids {
		w.now++
		w.must(&gameservers.RegisterGameServer{Server: gameservers.Server{ID: id, Group: group, Instance: "i-" + id}})
	}
}

func TestGameServersSurviveRestarts(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Name: "live", Fleet: testFleet, Tags: []fleet.Tag{{Key: "a", Value: "b"}}}})
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-2", Name: "old", Terminal: true, Message: "bye"}})
	w.must(&hosting.DeleteAlias{ID: "alias-1"})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Name: "arena", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-2", OperatingSystem: "AMAZON_LINUX_2023"}})
	w.must(&hosting.DeleteBuild{ID: "build-1"})
	w.registry("arena", "s1", "s2", "s3")
	w.registry("ending", "s4")
	w.registry("gone", "s5")
	w.must(&gameservers.ClaimGameServer{Group: "arena"})
	w.must(&gameservers.ClaimGameServer{Group: "arena", ID: "s3"})
	utilized := true
	w.must(&gameservers.UpdateGameServer{Group: "arena", ID: "s3", Utilized: &utilized})
	w.must(&gameservers.DeleteGameServerGroup{Name: "ending"})
	w.must(&gameservers.DeleteGameServerGroup{Name: "gone", Force: true})
	w.must(&gameservers.DeregisterGameServer{Group: "arena", ID: "s2"})
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
	if free, ok := w.cell.gameservers.Records.Free("arena"); ok {
		t.Errorf("%s can be claimed, want none", w.cell.gameservers.Records.Servers.Get(free).ID)
	}
}

// A game server that could not reach us while we were down is not late.
func TestGameServersAreNotLateForAServiceThatWasDown(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.registry("arena", "s1")
	w.must(&gameservers.ClaimGameServer{Group: "arena"})
	w.now = w.now.Add(time.Hour)
	w.must(&kernel.Resume{})
	w.must(&kernel.Tick{})
	x, err := w.cell.gameservers.GameServer("arena", "s1")
	if err != nil || x.ClaimBy == 0 {
		t.Fatalf("the game server is gone or free: %+v %v", x, err)
	}
	w.now = w.now.Add(61 * time.Second)
	w.must(&kernel.Tick{})
	if x, err = w.cell.gameservers.GameServer("arena", "s1"); err != nil || x.ClaimBy != 0 {
		t.Fatalf("a minute later the claim should be over, and the game server there: %+v %v", x, err)
	}
	w.now = w.now.Add(3 * time.Minute)
	w.must(&kernel.Tick{})
	if _, err := w.cell.gameservers.GameServer("arena", "s1"); err == nil {
		t.Error("a silent game server is still there")
	}
}
