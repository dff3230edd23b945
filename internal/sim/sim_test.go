package sim

import (
	"crypto/rand"
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// failedOnce has seeds that once found a failure, also in the simulator itself.
var failedOnce = []uint64{2611020232, 2324282457, 3367901413, 8, 554562523, 2189938680, 4223436543, 3664122376, 142, 1506747566}

// lively has further seeds, besides 4 and 10, where games are really played; see makeLively.
var lively = []uint64{16, 22, 28, 34, 40, 46, 76, 88, 94, 100, 106, 112}

// mustSee has the situations that the fixed seeds must reach to test how players join and leave games.
var mustSee = []string{
	"game ACTIVE", "match ACTIVE", "game ENDING", "game ended by FINISHED with a result", "game ended by HOST_LOST", "game ended by TERMINATED",
	"game ended by ALLOCATION_FAILED",
	"RESERVED to ACTIVE under OFF", "RESERVED to ACTIVE under OPTIONAL", "RESERVED to ACTIVE under REQUIRED",
	"ACTIVE ended by DISCONNECTED under OFF", "ACTIVE to DISCONNECTED under OPTIONAL", "ACTIVE to DISCONNECTED under REQUIRED",
	"DISCONNECTED to RESERVED under OPTIONAL", "DISCONNECTED to RESERVED under REQUIRED",
	"NO_SHOW to RESERVED under OPTIONAL", "NO_SHOW to RESERVED under REQUIRED",
	"RESERVED to DISCONNECTED under OPTIONAL", "RESERVED to DISCONNECTED under REQUIRED",
	"DISCONNECTED ended by RECONNECT_EXPIRED under OPTIONAL", "NO_SHOW ended by NO_SHOW under OPTIONAL", "RESERVED ended by NO_SHOW under OFF",
	"RESERVED ended by DECLINED under OPTIONAL", "ACTIVE ended by RELEASED under REQUIRED",
	"takeover begun", "takeover expired or lost", "takeover accepted under OFF", "takeover accepted under OPTIONAL", "takeover accepted under REQUIRED",
	"ACTIVE to RESERVED under OPTIONAL", "Login while ACTIVE", "Login while DISCONNECTED", "Login while RESERVED",
	"RESERVED anew", "hold over while RESERVED", "hold stopped by a restart", "hold stopped while the host is suspect",
	"joined a game that goes on under OFF", "joined a game that goes on under OPTIONAL", "joined a game that goes on under REQUIRED",
	"AddMembers seated", "AddMembers failed GAME_FULL", "JoinGameInstance", "JoinGameInstance GAME_FULL", "backfilled",
	"EnterBackfill", "EnterBackfill with teams", "EnterBackfill GAME_FULL", "LeaveBackfill ended one",
	"GetHostConnectionDetails again", "GetHostConnectionDetails HOST_NOT_READY", "GetHostConnectionDetails GAME_ENDED", "GetHostConnectionDetails GAME_ENDING",
	"GetHostConnectionDetails SESSION_REPLACED", "GetHostConnectionDetails NOT_DISCONNECTED", "GetHostConnectionDetails seat lost",
	"LeaveGame LEAVE_NOT_ALLOWED", "DeclineReconnect CANNOT_DECLINE_RECONNECT", "DeclineReconnect NOT_DISCONNECTED", "DisconnectMember stale",
	"a node begins", "a node is lost", "a node that was given up attaches nothing", "links and streams outlive a takeover",
}

// TestSim runs fixed seeds, those that once failed, and a few new ones; SIM_SEEDS=n runs n new ones. SIM_SEED=x runs only x. CI, which
// judges one change, draws no new seeds, because that change seldom causes what a new seed finds.
func TestSim(t *testing.T) {
	if one := os.Getenv("SIM_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		run(t, seed, map[string]int{})
		return
	}
	fresh := 4
	if os.Getenv("CI") != "" {
		fresh = 0
	}
	if n, err := strconv.Atoi(os.Getenv("SIM_SEEDS")); err == nil {
		fresh = n
	}
	seen := map[string]int{}
	for seed := range uint64(12) {
		run(t, seed, seen)
	}
	for _, seed := range slices.Concat(failedOnce, lively) {
		run(t, seed, seen)
	}
	for _, what := range mustSee {
		if seen[what] == 0 {
			t.Errorf("%q was never seen in %d seeds", what, 12+len(failedOnce)+len(lively))
		}
	}
	for range fresh {
		var b [8]byte
		_, _ = rand.Read(b[:])
		run(t, binary.LittleEndian.Uint64(b[:])>>32, map[string]int{})
	}
}

// run runs a seed and adds the situations that it reaches to seen.
func run(t *testing.T, seed uint64, seen map[string]int) {
	t.Helper()
	w := New(seed)
	if err := w.Run(4000); err != nil {
		t.Errorf("%v\nagain: SIM_SEED=%d go test ./internal/sim -run TestSim", err, seed)
	}
	for what, n := range w.seen {
		seen[what] += n
	}
	if testing.Verbose() {
		t.Logf("seed %d: %+v, %d entries", seed, w.Counts(), len(w.history.entries))
		for _, what := range slices.Sorted(maps.Keys(w.seen)) {
			t.Logf("%6d %s", w.seen[what], what)
		}
	}
}

// TestSameSeedSameRun: a seed reproduces its finding.
func TestSameSeedSameRun(t *testing.T) {
	for _, seed := range []uint64{7, 28} {
		sameRun(t, seed)
	}
}

func sameRun(t *testing.T, seed uint64) {
	t.Helper()
	var worlds [2]*World
	for i := range worlds {
		worlds[i] = New(seed)
		if err := worlds[i].Run(1500); err != nil {
			t.Fatal(err)
		}
	}
	a, b := worlds[0], worlds[1]
	if a.counts != b.counts || !maps.Equal(a.seen, b.seen) || len(a.history.entries) != len(b.history.entries) || !a.now.Equal(b.now) {
		t.Errorf("seed %d gave %+v and %+v", seed, a.counts, b.counts)
	}
	for i := range a.history.entries {
		if string(a.history.entries[i]) != string(b.history.entries[i]) {
			t.Fatalf("seed %d: entry %d differs", seed, i+1)
		}
	}
}

// cutOnce has seeds whose power cuts once found a failure.
var cutOnce = []uint64{}

// TestPowerCuts runs worlds on the files of the real engines and cuts the power at any write, sync, rename or removal. Any subset of the
// unsynced data survives. POWER_SEED=x runs only x; SIM_SEEDS=n also runs n new seeds.
func TestPowerCuts(t *testing.T) {
	if one := os.Getenv("POWER_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		cutPower(t, seed)
		return
	}
	seeds := slices.Concat([]uint64{1, 2, 3, 4, 16, 28}, cutOnce)
	if testing.Short() {
		seeds = seeds[:2]
	}
	seeds = append(seeds, newSeeds()...)
	cuts := 0
	for _, seed := range seeds {
		cuts += cutPower(t, seed)
	}
	if cuts < 2*len(seeds) {
		t.Errorf("%d power cuts with %d seeds, want more", cuts, len(seeds))
	}
}

func cutPower(t *testing.T, seed uint64) (cuts int) {
	t.Helper()
	w := NewPowerCuts(seed)
	if err := w.Run(4000); err != nil {
		t.Errorf("%v\nmaybe again: POWER_SEED=%d go test ./internal/sim -run TestPowerCuts", err, seed)
	}
	if testing.Verbose() {
		t.Logf("seed %d: %+v, %d entries, %d cuts, %d pushed twice", seed, w.Counts(), len(w.history.entries), w.disk.(*files).cuts, w.chronicle.pushes.twice)
	}
	return w.disk.(*files).cuts
}

// seedsOf returns the seed that a variable names, or the fixed ones, and in both cases the new ones.
func seedsOf(t *testing.T, variable string, fixed ...uint64) []uint64 {
	t.Helper()
	if one := os.Getenv(variable); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		fixed = []uint64{seed}
	}
	return append(fixed, newSeeds()...)
}

// newSeeds returns as many new seeds as SIM_SEEDS says.
func newSeeds() (seeds []uint64) {
	n, err := strconv.Atoi(os.Getenv("SIM_SEEDS"))
	if err != nil {
		return nil
	}
	for range n {
		var b [8]byte
		_, _ = rand.Read(b[:])
		seeds = append(seeds, binary.LittleEndian.Uint64(b[:])>>32)
	}
	return seeds
}

// TestHosts runs worlds with hosts. HOSTS_SEED=x runs only x; SIM_SEEDS=n also runs n new seeds.
func TestHosts(t *testing.T) {
	seeds := seedsOf(t, "HOSTS_SEED", 1, 2, 3, 4, 5, 6, 7, 24, 27)
	seen := map[string]int{}
	for _, seed := range seeds {
		w := NewHosts(seed)
		if err := w.Run(3000); err != nil {
			t.Errorf("%v\nagain: HOSTS_SEED=%d go test ./internal/sim -run TestHosts", err, seed)
		}
		for what, n := range w.cell.Pool.(*pool).seen {
			seen[what] += n
		}
	}
	for _, what := range []string{"a host assigned", "a host on its way out", "a fleet of a build ACTIVE", "a fleet of a build DELETING",
		"a joined host connected", "a joined host silent", "a joined host revoked",
		"the end of an unknown process", "the end of a game session by an agent", "the end of a process by an agent"} {
		if len(seeds) >= 4 && seen[what] == 0 {
			t.Errorf("%q was never seen", what)
		}
	}
	t.Logf("hosts assigned %d times, on their way out %d times; fleets ACTIVE %d times", seen["a host assigned"], seen["a host on its way out"], seen["a fleet of a build ACTIVE"])
}

// TestRollouts runs worlds in which aliases move from fleet to fleet. ROLLOUTS_SEED=x runs only x; SIM_SEEDS=n also runs n new seeds.
func TestRollouts(t *testing.T) {
	seeds := seedsOf(t, "ROLLOUTS_SEED", 1, 2, 3, 4, 5, 6, 7, 13, 14)
	seen := map[string]int{}
	for _, seed := range seeds {
		w := NewRollouts(seed)
		if err := w.Run(3000); err != nil {
			t.Errorf("%v\nagain: ROLLOUTS_SEED=%d go test ./internal/sim -run TestRollouts", err, seed)
		}
		for what, n := range w.chronicle.rollouts.seen {
			seen[what] += n
		}
	}
	for _, what := range []string{"a rollout MOVING", "a rollout DONE", "a rollout UNDONE", "a rollout RETURNING", "a rollout that failed", "a turn of a placement"} {
		if len(seeds) >= 6 && seen[what] == 0 {
			t.Errorf("%q was never seen", what)
		}
	}
	t.Logf("%v", seen)
}
